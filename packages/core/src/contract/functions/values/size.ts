import { size } from "../../value/type.ts";
import type { Value } from "../../value/value.ts";
import type { ContractFunction } from "../../core/function.ts";

export const sizeFunctions: readonly ContractFunction[] = [
  {
    name: "size",
    style: "method",
    parameters: ["string"],
    result: size,
    doc: "How many characters (Unicode code points) a text has.",
    examples: [['size("naïve")', "5"]],
    run: ([text]) => Array.from(text as string).length,
  },
  {
    name: "size",
    style: "method",
    parameters: ["list"],
    result: size,
    doc: "How many items a list has.",
    examples: [["size([1, 2, 3])", "3"]],
    run: ([list]) => (list as readonly Value[]).length,
  },
  {
    name: "size",
    style: "method",
    parameters: ["record"],
    result: size,
    doc: "How many members an object has.",
    examples: [['{"a": 1}.size()', "1"]],
    run: ([map]) => (map as ReadonlyMap<string, Value>).size,
  },
];
