import { availableParallelism } from "node:os";
import { good, limits, type Refusal, type Result } from "../../../../core/src/wire/mod.ts";
import type { KeyOwner } from "./shares.ts";
import { RequestQueue, type Ticket } from "./line.ts";
import { Turns, type Turn } from "./turns.ts";

/**
 * What a request reads: some rows, much of a ledger, the events that a stream has missed, or a contract that a thread must
 * compile.
 */
export type ReadKind = "explanation" | "long" | "replay" | "short";

/**
 * How long a read keeps its place while its client does not take what was read, and also while it does, if reads of other
 * keys wait; in milliseconds.
 */
const placeMs = 1000;

/** The requests of a process that read. Checks go first. */
export class ReadAdmission {
  readonly turns: Turns;
  readonly lines: Readonly<Record<ReadKind, RequestQueue>>;

  /** @param checksWait says whether a check waits or is being decided */
  constructor(checksWait: () => boolean, processors: number = availableParallelism()) {
    const explanations = Math.min(limits.explainsMax, Math.max(1, processors - 1));
    this.turns = new Turns(checksWait);
    this.lines = {
      short: new RequestQueue({ ofKeyMax: limits.readsOfKeyMax, ofTenantMax: limits.readsOfTenantMax }),
      long: new RequestQueue({ ofKeyMax: limits.longReadsOfKeyMax, ofTenantMax: limits.longReadsOfTenantMax }),
      // A stream waits neither for reports nor for pages: the inbox of the console is as new as its stream.
      replay: new RequestQueue({ ofKeyMax: limits.longReadsOfKeyMax, ofTenantMax: limits.readsOfTenantMax }),
      explanation: new RequestQueue({ ofKeyMax: explanations, ofTenantMax: explanations, max: explanations }),
    };
  }

  /**
   * Waits for a place.
   *
   * @param gone aborts when the client has left
   */
  async enter(kind: ReadKind, owner: KeyOwner, gone: AbortController): Promise<Result<SlicedRead, Refusal>> {
    const line = this.lines[kind];
    const entered = await line.enter(owner, gone.signal);
    if (!entered.ok) return entered;
    const read = new SlicedRead(this.turns, line, entered.value, gone);
    if (gone.signal.aborted) read.leave();
    return good(read);
  }

  /** How many reads wait for a place. */
  get waiting(): number {
    return Object.values(this.lines).reduce((total, { waiting }) => total + waiting, 0);
  }

  /** Refuses the reads that wait for a place. */
  close(): void {
    for (const line of Object.values(this.lines)) line.close();
  }
}

export class SlicedRead {
  /** Those of the process, for work that takes its turns itself. */
  readonly turns: Turns;
  readonly #line: RequestQueue;
  readonly #ticket: Ticket;
  readonly #gone: AbortController;
  #hasPlace = true;
  #placedAt = performance.now();
  #isStreamed = false;
  #turn: Turn | undefined;

  constructor(turns: Turns, line: RequestQueue, ticket: Ticket, gone: AbortController) {
    this.turns = turns;
    this.#line = line;
    this.#ticket = ticket;
    this.#gone = gone;
    // Before its handler has ended, it may still read for a client that has left.
    this.signal.addEventListener("abort", () => this.#isStreamed && this.leave(), { once: true });
  }

  /** Aborts when nobody waits for the answer any more. */
  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  /** Ends it as if its client had left. */
  abandon(): void {
    this.#gone.abort();
  }

  /** Reads in a turn. Work of more than a millisecond calls `next` at times. */
  async run<Value>(work: () => Promise<Value> | Value): Promise<Value> {
    this.#turn = await this.turns.start();
    try {
      this.signal.throwIfAborted();
      return await work();
    } finally {
      this.#endTurn();
    }
  }

  /** Rests after work of another thread; rejects if the client has left. Not within `run`. */
  async rest(workedMs: number): Promise<void> {
    await this.turns.rest(workedMs);
    this.signal.throwIfAborted();
  }

  /** Lets others go on if the slice has worked long enough; rejects if the client has left. Within `run` only. */
  next(): Promise<void> | undefined {
    return this.#turn?.isOver === true ? this.#nextTurn() : undefined;
  }

  async #nextTurn(): Promise<void> {
    this.#endTurn();
    this.#turn = await this.turns.start();
    this.signal.throwIfAborted();
  }

  #endTurn(): void {
    this.#turn?.end();
    this.#turn = undefined;
  }

  /**
   * Yields what a source yields, each item made in a turn. It has a place until the end, but not while its client takes
   * nothing; and if others want it, for a second at a time.
   */
  through<Item>(source: AsyncIterable<Item>): AsyncGenerator<Item> {
    this.#isStreamed = true;
    return this.#through(source);
  }

  async *#through<Item>(source: AsyncIterable<Item>): AsyncGenerator<Item> {
    const items = source[Symbol.asyncIterator]();
    try {
      for (;;) {
        if (performance.now() - this.#placedAt > placeMs && this.#line.isWanted(this.#ticket.owner)) this.leave();
        await this.again();
        if (this.signal.aborted) return;
        const item = await this.turns.run(() => items.next());
        if (item.done === true) return;
        const stalled = setTimeout(() => this.leave(), placeMs).unref();
        try {
          yield item.value;
        } finally {
          clearTimeout(stalled);
        }
      }
    } finally {
      this.leave();
      await items.return?.();
    }
  }

  /** Waits for a place again, after `leave`. */
  async again(): Promise<void> {
    if (this.#hasPlace) return;
    await this.#line.again(this.#ticket, this.signal);
    this.#hasPlace = true;
    this.#placedAt = performance.now();
  }

  /** The answer is made, but for what `through` yields. Others go on while it is sent. */
  end(): void {
    this.#endTurn();
    if (!this.#isStreamed) this.leave();
  }

  /** Gives its place back. */
  leave(): void {
    if (!this.#hasPlace) return;
    this.#hasPlace = false;
    this.#line.leave(this.#ticket);
  }
}
