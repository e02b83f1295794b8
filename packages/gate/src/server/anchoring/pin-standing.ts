import type { Logger } from "pino";
import type { Ledger, PinReading } from "../../ledger/mod.ts";
import type { AnchorReading } from "./mod.ts";
import type { GateObserver } from "../telemetry/observer.ts";

/** The name of the head pin among the anchors. */
const by = "head pin";

/**
 * A pin follows within a second, or a few seconds if the disk is busy. While it is behind for longer, anyone who can write
 * the data folder could remove the rows after it, and no start would notice.
 */
export const pinBehindMaxMs = 10_000;

interface PinLogOptions {
  readonly tenant: string | null;
  readonly log: Logger;
  readonly observer: GateObserver;
}

/** Logs once that the pin of a ledger cannot be written, and once that it can be again; counts each failure. */
export function logPinFailures({ pin }: Pick<Ledger, "pin">, { tenant, log, observer }: PinLogOptions): void {
  let isFailing = false;
  pin?.watch((failure) => {
    if (failure !== undefined) observer.countAnchorFailure(by);
    if (isFailing === (failure !== undefined)) return;
    isFailing = failure !== undefined;
    const { seq } = pin.reading;
    if (failure === undefined) return log.info({ tenant, seq }, `the head pin is written again, and has row ${seq}`);
    const { what, file, why } = failure;
    log.error(
      { tenant, file, why, seq },
      `the ${what} ${file} cannot be written (${why}): rows after row ${seq} could be removed unnoticed. Make room, or let ` +
        "this user write the file. Checks are answered meanwhile, and GET /ready answers not-ready after " +
        `${pinBehindMaxMs / 1000} seconds`,
    );
  });
}

/** Returns why a gate is not ready because its pin is behind; undefined if the pin follows. */
export function pinTrails(pin: PinReading | undefined): string | undefined {
  if (pin === undefined || pin.behindMs <= pinBehindMaxMs) return undefined;
  const { what, why } = pin.failure ?? { what: by, why: "no answer" };
  return `the ${what} cannot be written (${why}): rows after row ${pin.seq} could be removed unnoticed`;
}

/** Returns the state of the pin, as one of the anchors. */
export function pinReading(pin: PinReading, rows: number): AnchorReading {
  return { by, lagRows: Math.max(0, rows - pin.seq), behindMs: pin.behindMs, isDiverged: false };
}
