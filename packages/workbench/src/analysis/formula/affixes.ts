import type { Core } from "../../../../readers/src/ir.ts";
import type { Choice, Test } from "./formula.ts";
import { keyOf } from "./key.ts";

/** A `startsWith`, `endsWith` or `contains` with a literal text, true or false. */
interface Affix {
  /** The method of JavaScript's texts that tests it. */
  readonly test: "endsWith" | "includes" | "startsWith";
  readonly of: string;
  readonly text: string;
  readonly positive: boolean;
}

/** Do the prefixes, suffixes, parts or possible values of one text exclude each other? */
export function contradictoryTexts(tests: readonly Test[], choices: readonly Choice[]): boolean {
  const affixes = tests.flatMap(affixOf);
  for (const one of affixes) {
    if (!one.positive) continue;
    if (affixes.some((other) => one.of === other.of && excludes(one, other))) return true;
  }
  return choices.some(
    ({ core, values, positive }) =>
      positive &&
      affixes.length > 0 &&
      values.every((value) => typeof value === "string" && !suits(value, keyOf(core), affixes)),
  );
}

function affixOf({ core, positive }: Test): readonly Affix[] {
  const test = core.op === "call" ? methods.get(core.entry.name) : undefined;
  if (core.op !== "call" || test === undefined) return [];
  const [of, text] = core.args as readonly [Core, Core];
  if (text.op !== "constant" || typeof text.value !== "string") return [];
  return [{ test, of: keyOf(of), text: text.value, positive }];
}

const methods = new Map<string, Affix["test"]>([
  ["startsWith", "startsWith"],
  ["endsWith", "endsWith"],
  ["contains", "includes"],
]);

/** Does the first one exclude the other if it is true? */
function excludes(one: Affix, other: Affix): boolean {
  if (!other.positive)
    return (other.test === "includes" || one.test === other.test) && one.text[other.test](other.text);
  if (one.test !== other.test || one.test === "includes") return false;
  return !one.text[one.test](other.text) && !other.text[one.test](one.text);
}

function suits(value: string, of: string, affixes: readonly Affix[]): boolean {
  return affixes.every((affix) => affix.of !== of || value[affix.test](affix.text) === affix.positive);
}
