import type { Checker } from "./checker.ts";
import { same, type TypedCore, type Facts } from "./facts.ts";
import { isExact } from "../value/rational.ts";
import type { Syntax } from "../text/syntax.ts";
import { any, boolean, broken, join, listType, string, typeText, type Field, type Type } from "../value/type.ts";
import { isList, type Value } from "../value/value.ts";

export function checkLiteral({ value, span }: Syntax & { kind: "literal" }, facts: Facts): TypedCore {
  return same({ op: "constant", value, type: literalType(value), span }, facts);
}

function literalType(value: Value): Type {
  if (value === null) return { kind: "null" };
  if (typeof value === "boolean") return boolean;
  if (typeof value === "string") return string;
  if (isExact(value)) return { kind: "number", notNegative: true };
  return isList(value) ? listType(any) : any;
}

export function checkList(checker: Checker, syntax: Syntax & { kind: "list" }, facts: Facts): TypedCore {
  const items = syntax.items.map((item) => checker.check(item, facts).core);
  let of = items[0]?.type ?? any;
  for (const item of items) {
    const joined = join(of, item.type);
    if (joined === undefined)
      checker.scope.report.add(
        "type",
        item.span,
        `a list of ${typeText(of)} and ${typeText(item.type)}`,
        "a list has values of one type",
      );
    of = joined ?? broken;
  }
  return same({ op: "list", items, type: listType(of, items.length), span: syntax.span }, facts);
}

export function checkMap(checker: Checker, syntax: Syntax & { kind: "map" }, facts: Facts): TypedCore {
  const entries = syntax.entries.map(
    ([key, value]) => [checker.check(key, facts).core, checker.check(value, facts).core] as const,
  );
  const fields = new Map<string, Field>();
  let others = entries[0]?.[1].type ?? any;
  for (const [key, value] of entries) {
    checker.demand(key, "string", "a key");
    others = join(others, value.type) ?? any;
    if (key.op !== "constant" || typeof key.value !== "string") continue;
    if (fields.has(key.value))
      checker.scope.report.add("type", key.span, `the key ${JSON.stringify(key.value)} appears twice`);
    fields.set(key.value, { type: value.type, required: true });
  }
  return same({ op: "map", entries, type: { kind: "record", fields, others, open: false }, span: syntax.span }, facts);
}
