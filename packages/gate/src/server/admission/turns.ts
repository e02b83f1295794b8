import { setImmediate, setTimeout } from "node:timers/promises";

/** How long a slice works before others have their turn, in milliseconds, if its work can pause then. */
const sliceMs = 1;
/** While checks wait, reads rest so many times as long as a slice has worked. */
const restFactor = 4;
/** A slice that took longer has mostly waited, for a database or for another thread, in milliseconds. */
const mostWorkMs = 20;

/**
 * The slices of all reads of a process. They run one after the other, because most of their work is in one thread. After each
 * the gate takes the requests that have come, and while checks wait, no slice starts: but at most four times as long as the
 * slice before has worked, so that reads go on under any load.
 */
export class Turns {
  readonly #checksWait: () => boolean;
  readonly #waiting: (() => void)[] = [];
  #isFree = true;
  #startedCount = 0;

  /** @param checksWait says whether a check waits or is being decided */
  constructor(checksWait: () => boolean) {
    this.#checksWait = checksWait;
  }

  /** The number of slices so far. */
  get started(): number {
    return this.#startedCount;
  }

  /** Waits for the next turn. Call `end` after the slice. */
  async start(): Promise<Turn> {
    if (this.#isFree) this.#isFree = false;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#startedCount += 1;
    return new Turn((workedMs) => void this.#passOn(workedMs));
  }

  async run<Value>(slice: () => Promise<Value> | Value): Promise<Value> {
    const turn = await this.start();
    try {
      return await slice();
    } finally {
      turn.end();
    }
  }

  /** Rests after work, so that checks go first. Work of another thread rests without a turn. */
  async rest(workedMs: number): Promise<void> {
    await setImmediate(); // The gate takes the requests that have come.
    const until = performance.now() + Math.min(workedMs, mostWorkMs) * restFactor;
    while (this.#checksWait() && performance.now() < until) await setTimeout(1);
  }

  async #passOn(workedMs: number): Promise<void> {
    await this.rest(workedMs);
    const next = this.#waiting.shift();
    if (next === undefined) this.#isFree = true;
    else next();
  }
}

/** A slice that runs. */
export class Turn {
  readonly #since = performance.now();
  readonly #ended: (workedMs: number) => void;

  constructor(ended: (workedMs: number) => void) {
    this.#ended = ended;
  }

  /** True if it has worked long enough to let others go on. */
  get isOver(): boolean {
    return performance.now() - this.#since >= sliceMs;
  }

  end(): void {
    this.#ended(performance.now() - this.#since);
  }
}
