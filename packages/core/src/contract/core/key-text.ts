import { canonical, utf8Bytes, type Canonical } from "../../wire/mod.ts";
import { EvaluationError, exactText, isExact } from "../value/rational.ts";
import type { Value } from "../value/value.ts";

/**
 * The longest path has 4,096 characters (Linux's PATH_MAX), each of at most four bytes. The ledger stores a digest of the
 * key, so a long key takes no more room than a short one.
 */
const keyBytesMax = 16_384;

/** Distinct values that one call may look up in a counter, or add to it: each is a lookup, or an event. */
export const rememberedMax = 256;

/**
 * The values, as texts that are equal only for equal values. @throws {EvaluationError} if they are too many or too long
 */
export function toValueTexts(values: Iterable<Value>): ReadonlySet<string> {
  const found = new Set<string>();
  for (const value of values) {
    found.add(valueText(value));
    if (found.size > rememberedMax) throw new EvaluationError(`over ${rememberedMax} values for one counter`);
  }
  return found;
}

export function valueText(value: Value): string {
  return canonical(keyValue(value));
}

/** The text of a counter's key, with a remembered value appended. */
export function keyText(key: readonly Canonical[], value?: string): string {
  const text = canonical(key);
  return value === undefined ? text : `${text.slice(0, -1)},["value",${value}]]`;
}

/** A value as a part of a key, with its type: the text "1" is not the number 1. @throws {EvaluationError} */
export function keyValue(value: Value): Canonical {
  const [type, text] =
    typeof value === "string"
      ? ["text", value]
      : isExact(value)
        ? ["number", exactText(value)]
        : ["boolean", value === true ? "true" : "false"];
  if (text.length > keyBytesMax || utf8Bytes(text) > keyBytesMax)
    throw new EvaluationError(`its key is over ${keyBytesMax} bytes`);
  return [type, text];
}
