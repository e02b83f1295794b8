import { bad, good, type Result } from "../../wire/mod.ts";

/** A wall clock may part from the monotonic one, or lie behind the last receipt, by this much. */
const driftMaxMs = 60_000;

/** The two clocks of a machine, in milliseconds; replaced in tests. */
export interface TimeSource {
  readonly wall: () => number;
  readonly monotonic: () => number;
}

export const systemTime: TimeSource = { wall: () => Date.now(), monotonic: () => performance.now() };

/**
 * The gate's clock: one reading per check, never less than in the row before. A clock that jumps could reset a window
 * or freeze one, so checks stop until it is right again.
 */
export class Clock {
  readonly #source: TimeSource;
  readonly #offset: number;
  #sharedOffset: number | undefined;

  /** @param source where the two clocks agree from now on */
  constructor(source: TimeSource) {
    this.#source = source;
    this.#offset = source.wall() - source.monotonic();
  }

  /**
   * @param last `at` of the last row
   * @param shared the time that gates share, where they share a ledger: the wall clock is then no matter
   * @returns milliseconds since the epoch, or a sentence that says why the clock is not to be trusted
   */
  read(last: number, shared?: number): Result<number, string> {
    const wall = Math.floor(shared ?? this.#source.wall());
    const drift = wall - this.#source.monotonic() - (shared === undefined ? this.#offset : this.#offsetOf(shared));
    if (Math.abs(drift) > driftMaxMs)
      return bad(
        `the clock has moved by ${Math.round(drift / 1000)} s while the gate was running (restart it if the machine slept)`,
      );
    if (last - wall > driftMaxMs)
      return bad(`the clock is ${Math.round((last - wall) / 1000)} s behind the last receipt`);
    return good(Math.max(wall, last));
  }

  #offsetOf(shared: number): number {
    this.#sharedOffset ??= shared - this.#source.monotonic();
    return this.#sharedOffset;
  }
}
