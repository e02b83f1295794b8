import { setImmediate } from "node:timers/promises";

/** Runs one slice of a long read when it may, and returns its result. */
export type InTurn = <Value>(slice: () => Promise<Value>) => Promise<Value>;

/** Lets others go on between two slices of a long read. */
export type Pause = () => Promise<unknown>;

/** How long a step works at least, in milliseconds: a message to the other thread takes a tenth of one. */
const stepMs = 5;

/** Work that another thread asks for step by step. Between two steps it pauses for as long as that thread likes. */
export class Steps<Result> {
  readonly #work: (pause: Pause) => Promise<Result>;
  #since = 0;
  #go: (() => void) | undefined;
  /** The answer to the last call of `next`. */
  #answer = Promise.withResolvers<{ readonly result: Result } | undefined>();

  /** @param work calls `pause` between two slices */
  constructor(work: (pause: Pause) => Promise<Result>) {
    this.#work = work;
  }

  /** Works for some milliseconds, or to the end. One call at a time. @returns undefined if the work has not ended */
  next(): Promise<{ readonly result: Result } | undefined> {
    this.#answer = Promise.withResolvers();
    this.#since = performance.now();
    if (this.#go === undefined) this.#start();
    else this.#go();
    return this.#answer.promise;
  }

  #start(): void {
    this.#work(() => this.#pause()).then(
      (result) => this.#answer.resolve({ result }),
      (error: unknown) => this.#answer.reject(error),
    );
  }

  #pause(): Promise<unknown> {
    if (performance.now() - this.#since < stepMs) return setImmediate();
    return new Promise<void>((go) => {
      this.#go = go;
      this.#answer.resolve(undefined);
    });
  }
}

/** Takes all steps of work in another thread. @param next takes one; undefined if there are more */
export async function inSteps<Result>(
  next: () => Promise<{ readonly result: Result } | undefined>,
  inTurn: InTurn = (slice) => slice(),
): Promise<Result> {
  for (;;) {
    const ended = await inTurn(next);
    if (ended !== undefined) return ended.result;
  }
}
