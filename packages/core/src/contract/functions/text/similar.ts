import { editDistance } from "../../../wire/mod.ts";
import { EvaluationError } from "../../value/rational.ts";
import { boolean } from "../../value/type.ts";
import type { Value } from "../../value/value.ts";
import type { ContractFunction } from "../../core/function.ts";
import { skeleton } from "./look-alikes.ts";

const lengthMax = 256;

/** Texts that are similar, but not equal, to a listed text. */
export const similarFunctions: readonly ContractFunction[] = [
  {
    name: "similar",
    style: "function",
    parameters: ["string", "list"],
    result: boolean,
    doc:
      "Is the text none of the listed ones, but like one: by look-alike letters, case, invisible characters, or by one slip of " +
      "the pen (two from eight characters on, none below four)? For names; numbers are alike too easily.",
    examples: [
      ['similar("paypa1.com", ["paypal.com"])', "true"],
      ['similar("paypal.com", ["paypal.com"])', "false"],
    ],
    cost: ([text, list]) => costOfSimilar(text as string, list as readonly Value[]),
    run: ([text, list]) => isSimilar(text as string, list as readonly Value[]),
  },
];

function isSimilar(text: string, list: readonly Value[]): boolean {
  if (text.length > lengthMax) throw new EvaluationError(`a text of over ${lengthMax} characters, too long to compare`);
  if (list.includes(text)) return false;
  const seen = Array.from(skeleton(text));
  return list.some((item) => {
    if (typeof item !== "string") throw new EvaluationError("a list with a value that is not a text");
    return item.length <= lengthMax * 2 && isNear(seen, Array.from(skeleton(item)));
  });
}

/**
 * A step is about half a microsecond. Folding is slow for texts that expand to many letters, comparing for similar
 * texts.
 */
function costOfSimilar(text: string, list: readonly Value[]): number {
  const own = costOfFolding(text);
  return list.reduce<number>((steps, item) => {
    if (typeof item !== "string" || item.length > lengthMax * 2) return steps + 1;
    return steps + 2 + costOfFolding(item) + Math.min(text.length, item.length);
  }, own);
}

function costOfFolding(text: string): number {
  return /^[ -~]*$/.test(text) ? text.length >> 1 : text.length * 4;
}

function isNear(a: readonly string[], b: readonly string[]): boolean {
  const shorter = Math.min(a.length, b.length);
  const most = shorter < 4 ? 0 : shorter < 8 ? 1 : 2;
  return editDistance(a, b, most) <= most;
}
