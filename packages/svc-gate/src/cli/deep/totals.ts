import { addDecimals } from "../../wire/mod.ts";
import type { EventPosition } from "../../ledger/mod.ts";

/** The two places between which an event stands, if it is there: the difference of their totals is its amount. */
export function placesOf({ counter, key, at, seq }: EventPosition): readonly [EventPosition, EventPosition] {
  return [
    { counter, key, at, seq },
    { counter, key, at, seq: seq + 1 },
  ];
}

/** What was counted between two totals; undefined where one is not there, or is no decimal because somebody changed it. */
export function between(before: string | undefined, after: string | undefined): string | undefined {
  return isDecimal(before) && isDecimal(after) ? addDecimals(after, `-${before}`) : undefined;
}

function isDecimal(text: string | undefined): text is string {
  return text !== undefined && /^[0-9]+(?:\.[0-9]+)?$/.test(text);
}
