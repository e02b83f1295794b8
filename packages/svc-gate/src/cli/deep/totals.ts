import { addDecimals } from "../../wire/mod.ts";
import type { EventPosition } from "../../ledger/mod.ts";

/** The positions before and after an event: the difference of their totals is its amount. */
export function placesOf({ counter, key, at, seq }: EventPosition): readonly [EventPosition, EventPosition] {
  return [
    { counter, key, at, seq },
    { counter, key, at, seq: seq + 1 },
  ];
}

/** The amount between two totals; undefined if one does not exist, or is not a decimal because somebody changed it. */
export function between(before: string | undefined, after: string | undefined): string | undefined {
  return isDecimal(before) && isDecimal(after) ? addDecimals(after, `-${before}`) : undefined;
}

function isDecimal(text: string | undefined): text is string {
  return text !== undefined && /^[0-9]+(?:\.[0-9]+)?$/.test(text);
}
