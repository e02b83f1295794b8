import type { Logger } from "pino";
import type { Ledger, PinReading } from "../ledger/mod.ts";
import type { AnchorReading } from "./anchors.ts";
import type { Watch } from "./telemetry/watch.ts";

/** What the head pin is called among the anchors. */
const by = "head pin";

/**
 * A pin is due within a second, and a slow flush on a busy disk takes a few. A pin that is behind for longer does not
 * follow: whoever can write the data folder could cut off the rows after it, and no start would notice.
 */
export const pinBehindMaxMs = 10_000;

interface Told {
  readonly tenant: string | null;
  readonly log: Logger;
  readonly watch: Watch;
}

/** Logs once that the pin of a ledger cannot be written, and once that it can be again; counts each failure. */
export function tellOfPin(ledger: Pick<Ledger, "pin" | "watchPin">, { tenant, log, watch }: Told): void {
  let isFailing = false;
  ledger.watchPin((failure) => {
    if (failure !== undefined) watch.anchorFailed(by);
    if (isFailing === (failure !== undefined)) return;
    isFailing = failure !== undefined;
    const seq = ledger.pin?.seq ?? 0;
    if (failure === undefined) return log.info({ tenant, seq }, `the head pin is written again, and holds row ${seq}`);
    const { what, file, why } = failure;
    log.error(
      { tenant, file, why, seq },
      `the ${what} ${file} cannot be written (${why}): rows after row ${seq} could be cut off unseen. Make room, or let ` +
        "this user write it. Checks are answered meanwhile, and GET /ready says not-ready after " +
        `${pinBehindMaxMs / 1000} seconds`,
    );
  });
}

/** Why a gate whose pin does not follow is not ready; undefined where it follows. */
export function pinTrails(pin: PinReading | undefined): string | undefined {
  if (pin === undefined || pin.behindMs <= pinBehindMaxMs) return undefined;
  const { what, why } = pin.failure ?? { what: by, why: "no answer" };
  return `the ${what} cannot be written (${why}): rows after row ${pin.seq} could be cut off unseen`;
}

/** How the pin stands, as one of the anchors. */
export function pinReading(pin: PinReading, rows: number): AnchorReading {
  return { by, lagRows: Math.max(0, rows - pin.seq), behindMs: pin.behindMs, isParted: false };
}
