import { limits } from "../../wire/mod.ts";
import { Places } from "./places.ts";
import { Rates } from "../keys/rate.ts";

/** The explanations that a process makes, by gate. */
export function explainPlaces(): Places {
  return new Places({
    ofKeyMax: limits.explainsMax,
    max: limits.explainsMax,
    refusal: (_ofGate, all) => `${all} explanations are being made: ask again soon`,
  });
}

/** The reports that a process makes, by gate. */
export function reportPlaces(): Places {
  return new Places({
    ofKeyMax: 1,
    max: limits.reportsMax,
    refusal: (ofGate, all) =>
      ofGate > 0
        ? "a report of this gate is being made: ask again soon"
        : `${all} reports are being made: ask again soon`,
  });
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
