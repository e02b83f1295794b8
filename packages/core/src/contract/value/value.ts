import { Decimal, quote, visible } from "../../wire/mod.ts";
import { compare, exactText, isExact, type Exact } from "./rational.ts";

/** The values of expressions: JSON as it was sent, fractions, times, and a member that may be absent. */
export type Value = null | boolean | string | Exact | Duration | Timestamp | Optional | ValueList | ValueMap;
export type ValueList = readonly Value[];
export type ValueMap = ReadonlyMap<string, Value>;

/** A duration in seconds, exact. */
export class Duration {
  readonly seconds: Exact;
  constructor(seconds: Exact) {
    this.seconds = seconds;
  }
}

/** A time in seconds since the Unix epoch, exact. */
export class Timestamp {
  readonly seconds: Exact;
  constructor(seconds: Exact) {
    this.seconds = seconds;
  }
}

/** A member that may be absent: `input.?x`. `value` is undefined if it is. */
export class Optional {
  readonly value: Value | undefined;
  constructor(value: Value | undefined) {
    this.value = value;
  }
}

/** Equal by value: numbers by their numeric value, lists and maps by their members. Values of two types differ. */
export function equals(a: Value, b: Value): boolean {
  if (a === b) return true;
  if (typeof a !== "object" && typeof b !== "object") return false;
  if (a === null || b === null) return false;
  if (isExact(a)) return isExact(b) && compare(a, b) === 0;
  if (a instanceof Map) return b instanceof Map && equalMaps(a, b);
  if (isList(a)) return isList(b) && a.length === b.length && a.every((item, at) => equals(item, b[at] as Value));
  if (a instanceof Duration) return b instanceof Duration && compare(a.seconds, b.seconds) === 0;
  if (a instanceof Timestamp) return b instanceof Timestamp && compare(a.seconds, b.seconds) === 0;
  return false;
}

function equalMaps(a: ValueMap, b: ValueMap): boolean {
  if (a.size !== b.size) return false;
  for (const [name, value] of a) {
    const other = b.get(name);
    if (other === undefined || !equals(value, other)) return false;
  }
  return true;
}

export function isList(value: Value): value is ValueList {
  return Array.isArray(value);
}

/** A value as a reason shows it: numbers as they were sent, text quoted and truncated. */
export function show(value: Value): string {
  if (value === null || typeof value === "boolean" || typeof value === "number") return String(value);
  if (typeof value === "string") return quote(value);
  if (value instanceof Decimal) return value.text;
  if (isExact(value)) return cut(exactText(value));
  if (value instanceof Duration) return `${cut(exactText(value.seconds))}s`;
  if (value instanceof Timestamp) return cut(exactText(value.seconds));
  if (value instanceof Optional) return value.value === undefined ? "nothing" : show(value.value);
  if (isList(value)) return cut(`[${value.slice(0, 8).map(show).join(", ")}${value.length > 8 ? ", …" : ""}]`);
  return `an object of ${value.size} members`;
}

/** A sentence of the gate's own as a reason shows it: without quotes, with hidden characters escaped. */
export function showSentence(value: Value): string {
  return typeof value === "string" ? cut(visible(value.slice(0, 2 * sentenceMax)), sentenceMax) : show(value);
}

const sentenceMax = 300;

function cut(text: string, most = 64): string {
  const characters = Array.from(text);
  return characters.length > most ? `${characters.slice(0, most).join("")}…` : text;
}
