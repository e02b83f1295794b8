/** The batches that count. */
const rememberedMax = 15;

/** If so many batches together were slow, the store is slow. */
const togetherMin = 3;

/**
 * Estimates waits from the times of the last batches. One slow flush of a disk does not count: it would refuse calls that
 * could wait. All times are milliseconds of a monotonic clock.
 */
export class Pace {
  readonly #lately: number[] = [];
  #batchMs = 0;
  #runningSince: number | undefined;

  /** Work begins that calls wait for: a batch, or other work in its place. */
  begin(now: number): void {
    this.#runningSince = now;
  }

  /** @param isBatch true if the work was a batch that had calls */
  end(now: number, isBatch: boolean): void {
    const lately = this.#lately;
    if (isBatch && this.#runningSince !== undefined) {
      if (lately.push(now - this.#runningSince) > rememberedMax) lately.shift();
      const median = lately.toSorted((a, b) => a - b)[lately.length >> 1] as number;
      this.#batchMs = Math.max(median, Math.min(...lately.slice(-togetherMin)));
    }
    this.#runningSince = undefined;
  }

  /**
   * Estimates how long the rest of what runs takes, and then so many batches. If it runs for longer than a batch, the rest is
   * as long again, because nobody knows better.
   */
  waitMs(batches: number, now: number): number {
    const batchMs = this.#batchMs;
    return batches * batchMs + (this.#runningSince === undefined ? 0 : restMs(now - this.#runningSince, batchMs));
  }
}

function restMs(runningMs: number, batchMs: number): number {
  return runningMs < batchMs ? batchMs - runningMs : runningMs;
}
