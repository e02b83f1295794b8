import { limits } from "../../../../core/src/wire/mod.ts";
import { Places } from "./places.ts";
import { Rates } from "../keys/rate.ts";

/**
 * The requests of a process that wait for a person.
 *
 * @param connections the most connections; a quarter of them may wait
 */
export function waitPlaces(connections: number): Places {
  return new Places({
    ofKeyMax: limits.waitersOfKeyMax,
    max: quarterOf(connections),
    refusal: (ofKey, all) => `${ofKey} requests of this key and ${all} in all wait: ask again soon`,
  });
}

/**
 * The open streams of events of a process.
 *
 * @param connections the most connections; a quarter of them may be streams
 */
export function streamPlaces(connections: number): Places {
  return new Places({
    ofKeyMax: limits.streamsOfKeyMax,
    max: quarterOf(connections),
    refusal: (ofKey, all) => `${ofKey} streams of this key and ${all} in all are open: close one, or ask again soon`,
  });
}

/** A gate of one connection has no place for a request that stays open. */
function quarterOf(connections: number): number {
  return connections === 1 ? 0 : Math.max(1, Math.floor(connections / 4));
}

/**
 * The rate of explanations, by gate.
 *
 * @param now a monotonic clock in milliseconds
 */
export function explainRates(now?: () => number): Rates {
  const rate = { perSecond: limits.explainsPerSecond, burst: limits.explainsBurst };
  return new Rates({ fallback: () => rate, ...(now && { now }) });
}
