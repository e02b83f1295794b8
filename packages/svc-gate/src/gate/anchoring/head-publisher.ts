/** When something newer is brought. */
export interface Pace {
  /** From the beginning of one delivery to the next at least, in milliseconds. */
  readonly betweenMs: number;
  /** After one that failed, doubled with each that follows it. */
  readonly retryMs: number;
  readonly retryMaxMs: number;
}

export const usualPace: Pace = { betweenMs: 1000, retryMs: 1000, retryMaxMs: 60_000 };

/**
 * Brings the newest there is. It rejects where that failed, and ends soon after its signal.
 *
 * @returns milliseconds after which to come again though there may be nothing newer; undefined where that is not needed
 */
export type Delivery = (signal: AbortSignal) => Promise<number | undefined>;

/**
 * Brings what is newest to one receiver, one delivery at a time. What came meanwhile is brought by the next one, and one
 * that failed is tried again: nothing is queued, however long the receiver is away.
 */
export class HeadPublisher {
  readonly #deliver: Delivery;
  readonly #pace: Pace;
  readonly #stop = new AbortController();
  #isWanted = false;
  #isClosing = false;
  #failures = 0;
  #notBefore = 0;
  #timer: NodeJS.Timeout | undefined;
  #again: NodeJS.Timeout | undefined;
  #delivering: Promise<void> | undefined;

  constructor(deliver: Delivery, pace: Pace) {
    this.#deliver = deliver;
    this.#pace = pace;
  }

  /** There is something newer. Nothing is done before the caller's turn of the event loop is over. */
  publish(): void {
    this.#isWanted = true;
    this.#schedule();
  }

  /** Brings what is newest once more, unless the receiver is away, and ends; after so long in any case. */
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
    const began = performance.now();
    this.#isWanted = false;
    try {
      const again = await this.#deliver(this.#stop.signal);
      this.#failures = 0;
      this.#notBefore = began + betweenMs;
      clearTimeout(this.#again);
      if (again !== undefined && !this.#isClosing) this.#again = setTimeout(() => this.publish(), again).unref();
    } catch {
      // Whose business it is has been told by what delivers; here it only counts.
      this.#isWanted = true;
      this.#notBefore = performance.now() + Math.min(retryMaxMs, retryMs * 2 ** this.#failures);
      this.#failures += 1;
    }
  }
}
