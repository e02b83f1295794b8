import { setImmediate, setTimeout } from "node:timers/promises";

/** How long a slice works before others have their turn, in milliseconds, if its work can pause then. */
const sliceMs = 1;
/** While checks wait, reads rest so many times as long as a slice has worked. */
const restFactor = 4;

/**
 * The slices of all reads of a process. Few run at once. After each slice the gate takes the requests that have come, and
 * while checks wait, no slice begins: but at most four times as long as the slice before has worked, so that reads go on
 * under any load.
 */
export class Turns {
  readonly #checksWait: () => boolean;
  readonly #waiting: (() => void)[] = [];
  #free: number;
  #begun = 0;

  /**
   * @param checksWait says whether a check waits or is being decided
   * @param atOnce how many slices run at once
   */
  constructor(checksWait: () => boolean, atOnce: number) {
    this.#checksWait = checksWait;
    this.#free = atOnce;
  }

  /** The number of slices so far. */
  get begun(): number {
    return this.#begun;
  }

  /** Waits for the next turn. Call `end` after the slice. */
  async begin(): Promise<Turn> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#begun += 1;
    return new Turn((workedMs) => void this.#passOn(workedMs));
  }

  /** Runs one slice. */
  async run<Value>(slice: () => Promise<Value> | Value): Promise<Value> {
    const turn = await this.begin();
    try {
      return await slice();
    } finally {
      turn.end();
    }
  }

  async #passOn(workedMs: number): Promise<void> {
    await setImmediate(); // The gate takes the requests that have come.
    const until = performance.now() + workedMs * restFactor;
    while (this.#checksWait() && performance.now() < until) await setTimeout(1);
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
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
