export interface DeliveryPace {
  /** The least time from the start of one delivery to the next, in milliseconds. */
  readonly betweenMs: number;
  /** The wait after a failed delivery. It doubles with each further failure. */
  readonly retryMs: number;
  readonly retryMaxMs: number;
}

export const usualPace: DeliveryPace = { betweenMs: 1000, retryMs: 1000, retryMaxMs: 60_000 };

/**
 * Delivers the newest head. Rejects if that fails, and ends soon after its signal.
 *
 * @returns milliseconds after which to deliver again even without a newer head; undefined if that is not needed
 */
export type Delivery = (signal: AbortSignal) => Promise<number | undefined>;

/**
 * Delivers the newest head to one receiver, one delivery at a time. Heads that come meanwhile are covered by the next
 * delivery, and a failed delivery is repeated. So nothing is queued, however long the receiver is away.
 */
export class HeadPublisher {
  readonly #deliver: Delivery;
  readonly #pace: DeliveryPace;
  readonly #stop = new AbortController();
  #isWanted = false;
  #isClosing = false;
  #failures = 0;
  #notBefore = 0;
  #timer: NodeJS.Timeout | undefined;
  #again: NodeJS.Timeout | undefined;
  #delivering: Promise<void> | undefined;

  constructor(deliver: Delivery, pace: DeliveryPace) {
    this.#deliver = deliver;
    this.#pace = pace;
  }

  /** Notes that a newer head exists. Delivery starts after the caller's turn of the event loop. */
  publish(): void {
    this.#isWanted = true;
    this.#schedule();
  }

  /** Delivers the newest head once more, unless the receiver is away. Ends after the given time in any case. */
  async close(boundMs: number): Promise<void> {
    this.#isClosing = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#again);
    const bound = Promise.withResolvers<void>();
    const timer = setTimeout(() => {
      this.#stop.abort();
      bound.resolve();
    }, boundMs);
    await Promise.race([this.#last(), bound.promise]);
    clearTimeout(timer);
    this.#stop.abort();
  }

  async #last(): Promise<void> {
    await this.#delivering;
    if (this.#isWanted && this.#failures === 0) await this.#run();
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#delivering !== undefined || this.#isClosing) return;
    const wait = Math.max(0, this.#notBefore - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#delivering = this.#run().finally(() => {
        this.#delivering = undefined;
        if (this.#isWanted) this.#schedule();
      });
    }, wait);
    this.#timer.unref();
  }

  async #run(): Promise<void> {
    const { betweenMs, retryMs, retryMaxMs } = this.#pace;
    const startedAt = performance.now();
    this.#isWanted = false;
    try {
      const again = await this.#deliver(this.#stop.signal);
      this.#failures = 0;
      this.#notBefore = startedAt + betweenMs;
      clearTimeout(this.#again);
      if (again !== undefined && !this.#isClosing) this.#again = setTimeout(() => this.publish(), again).unref();
    } catch {
      // `#deliver` has already reported the failure; here it only counts.
      this.#isWanted = true;
      this.#notBefore = performance.now() + Math.min(retryMaxMs, retryMs * 2 ** this.#failures);
      this.#failures += 1;
    }
  }
}
