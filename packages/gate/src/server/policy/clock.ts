import { bad, good, type Result } from "../../../../core/src/wire/mod.ts";

/**
 * The greatest difference between the wall clock and the monotonic clock, or between the wall clock and the last
 * receipt.
 */
const driftMaxMs = 60_000;

/** The two clocks of a machine, in milliseconds; replaced in tests. */
export interface TimeSource {
  readonly wall: () => number;
  readonly monotonic: () => number;
}

export const systemTime: TimeSource = { wall: () => Date.now(), monotonic: () => performance.now() };

/**
 * The gate's clock. Its time is never earlier than the last row. A clock that jumps could reset or freeze a window, so
 * checks stop until the clock is right again.
 */
export class Clock {
  readonly #source: TimeSource;
  readonly #offset: number;
  #sharedOffset: number | undefined;

  /** @param source clocks whose difference must not change from now on */
  constructor(source: TimeSource) {
    this.#source = source;
    this.#offset = source.wall() - source.monotonic();
  }

  /**
   * Reads the time.
   *
   * @param last `at` of the last row
   * @param shared the time of the database, if gates share a ledger; then the wall clock is not used
   * @returns milliseconds since the epoch, or a sentence that says why the clock cannot be trusted
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
