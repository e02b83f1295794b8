import type { Core } from "../../../../readers/src/ir.ts";
import type { Choice, Test } from "./formula.ts";
import { keyOf } from "./key.ts";

/** A `startsWith`, `endsWith` or `contains` with a literal text, true or false. */
interface Affix {
  readonly kind: string;
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
  if (core.op !== "call" || !["startsWith", "endsWith", "contains"].includes(core.entry.name)) return [];
  const [of, text] = core.args as readonly [Core, Core];
  if (text.op !== "constant" || typeof text.value !== "string") return [];
  return [{ kind: core.entry.name, of: keyOf(of), text: text.value, positive }];
}

/** Does the first one exclude the other if it holds? */
function excludes(one: Affix, other: Affix): boolean {
  if (other.positive) {
    if (one.kind !== other.kind) return false;
    if (one.kind === "startsWith") return !one.text.startsWith(other.text) && !other.text.startsWith(one.text);
    return one.kind === "endsWith" && !one.text.endsWith(other.text) && !other.text.endsWith(one.text);
  }
  if (other.kind === "contains") return one.text.includes(other.text);
  if (one.kind !== other.kind) return false;
  return one.kind === "startsWith" ? one.text.startsWith(other.text) : one.text.endsWith(other.text);
}

function suits(value: string, of: string, affixes: readonly Affix[]): boolean {
  return affixes.every((affix) => {
    if (affix.of !== of) return true;
    const holds =
      affix.kind === "startsWith"
        ? value.startsWith(affix.text)
        : affix.kind === "endsWith"
          ? value.endsWith(affix.text)
          : value.includes(affix.text);
    return holds === affix.positive;
  });
}
