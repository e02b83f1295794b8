/** The batches that count. */
const rememberedMax = 15;

/** If so many batches together were slow, the store is slow; if so many were quick, it is quick. */
const togetherMin = 3;

/** After so long without work an earlier pace may be wrong. */
const idleMs = 1000;

/** A batch that has ended. Times are in milliseconds. */
interface EndedBatch {
  readonly ms: number;
  readonly calls: number;
  /** Did so few calls come meanwhile that reading them did not make it slow? */
  readonly isCalm: boolean;
}

/**
 * Estimates waits from the times of the last batches. One slow flush of a disk does not count: it would refuse calls that
 * could wait. All times are milliseconds of a monotonic clock.
 */
export class BatchPace {
  readonly #lately: EndedBatch[] = [];
  /** Undefined until somebody asks for it: most batches end while nobody waits. */
  #batchMs: number | undefined = 0;
  /** The most calls of the next batch. */
  #nextMax = Infinity;
  /** The longest batch since the last idle time. */
  #longestMs = 0;
  #runningSince: number | undefined;
  #endedAt = -Infinity;
  #arrived = 0;

  /** Work starts that calls wait for: a batch, or other work instead. */
  start(now: number): void {
    if (now - this.#endedAt > idleMs) this.#longestMs = 0;
    this.#runningSince = now;
    this.#arrived = 0;
  }

  /** A call has come. */
  countArrival(): void {
    this.#arrived += 1;
  }

  /**
   * The work has ended.
   *
   * @param calls of the batch; 0 if it was other work
   * @param nextMax the most calls of the next batch
   */
  end(now: number, calls: number, nextMax: number): void {
    const ms = now - (this.#runningSince ?? now);
    this.#runningSince = undefined;
    this.#endedAt = now;
    if (calls === 0) return;
    if (this.#lately.push({ ms, calls, isCalm: this.#arrived <= 2 * calls }) > rememberedMax) this.#lately.shift();
    this.#longestMs = Math.max(this.#longestMs, ms);
    this.#batchMs = undefined;
    this.#nextMax = nextMax;
  }

  #estimate(): number {
    const times = this.#lately.map(({ ms, calls }) => ms * Math.min(1, this.#nextMax / calls));
    const last = times.slice(-togetherMin);
    const isCalm = this.#lately.slice(-togetherMin).every((batch) => batch.isCalm);
    const ascending = times.toSorted((a, b) => a - b);
    // The median; of few batches the least, because the first ones are slow in any case.
    const usual = ascending[Math.max(0, ascending.length - (rememberedMax >> 1) - 1)] as number;
    return Math.min(isCalm ? Math.max(usual, Math.min(...last)) : usual, Math.max(...last));
  }

  /**
   * Estimates how long the rest of what runs takes, and then so many batches. If it runs for longer than a batch, the rest is
   * as long again, because nobody knows better.
   */
  waitMs(batches: number, now: number): number {
    const isIdle = this.#runningSince === undefined && now - this.#endedAt > idleMs;
    const batchMs = isIdle ? 0 : Math.min((this.#batchMs ??= this.#estimate()), this.#longestMs);
    const runningMs = now - (this.#runningSince ?? now);
    const restMs = this.#runningSince !== undefined && runningMs < batchMs ? batchMs - runningMs : runningMs;
    return restMs + batches * batchMs;
  }
}
