import { setImmediate as nextTurn, setTimeout as after } from "node:timers/promises";
import { bad, refuse, type Refusal, type Result } from "../../../../core/src/wire/mod.ts";
import { AdmissionQueue, type BatchTimes, type QueueBudget, type QueuedCall } from "./queue.ts";

/** Work inside a transaction: it ends the transaction. */
export type TransactionWork<Transaction> = (transaction: Transaction) => Promise<void>;

export interface WaitingCall extends QueuedCall {
  /** Called by the batcher if the call cannot be decided; `decide` settles all others. */
  readonly settle: (result: Result<never, Refusal>) => void;
}

export interface BatcherOptions<Call extends WaitingCall, Transaction> {
  /** Shared with the other ledgers of the process. */
  readonly budget: QueueBudget;
  /**
   * Runs the work in a transaction of the ledger.
   *
   * @param anyClock the work does not need the right time
   * @returns a refusal if the work was not done
   * @throws a fault, after which the batcher does nothing more
   */
  readonly transact: (work: TransactionWork<Transaction>, anyClock: boolean) => Promise<Result<void, Refusal>>;
  /**
   * Takes the calls of one batch with `take`, then decides and answers them.
   *
   * @returns how long that took; undefined if no call was decided
   */
  readonly decide: (transaction: Transaction, take: TakeCalls<Call>) => Promise<BatchTimes | undefined>;
}

/** Takes the next calls in their order, up to the first that does not fit. */
export type TakeCalls<Call> = (fits: (call: Call) => boolean) => readonly Call[];

/** What callers may know of a batcher, and ask of it. */
export type Admission = Pick<Batcher<never, never>, "endPauses" | "pause" | "queued" | "refusalFor">;

interface WaitingWork<Transaction> {
  readonly work: TransactionWork<Transaction>;
  readonly anyClock: boolean;
  readonly isUrgent: boolean;
  readonly settle: (result: Result<void, Refusal>) => void;
  readonly reject: (fault: unknown) => void;
}

/**
 * Turns a queue of calls into batches, each in a transaction of its own. All calls that arrive during one transaction share
 * the next. Exclusive work has a transaction for itself, between two batches. If both wait, they take turns, so that callers
 * that ask for much of it delay no check for longer than one work.
 */
export class Batcher<Call extends WaitingCall, Transaction> {
  readonly #options: BatcherOptions<Call, Transaction>;
  /** Rejects with the fault that ended the batcher; never resolves. */
  readonly failed: Promise<never>;
  #fail: (error: unknown) => void = () => undefined;
  readonly #queue: AdmissionQueue<Call>;
  #works: WaitingWork<Transaction>[] = [];
  #running = false;
  /** Does the first work run? */
  #isWorking = false;
  #hasFailed = false;
  #stopping = false;
  #onIdle: (() => void)[] = [];

  constructor(options: BatcherOptions<Call, Transaction>) {
    this.#options = options;
    this.#queue = new AdmissionQueue(options.budget);
    this.failed = new Promise((_, reject) => {
      this.#fail = reject;
    });
    this.failed.catch((fault: unknown) => this.#abandon(fault));
  }

  /** Puts a call into the queue, or refuses it if the queue is full or the gate is stopping. */
  submit(call: Call): void {
    if (this.#hasFailed) return; // No caller gets an answer.
    const refusal = this.refusalFor(call.caller.keyName, call.bytes);
    if (refusal !== undefined) return call.settle(bad(refusal));
    this.#queue.enqueue(call);
    this.#wake();
  }

  /**
   * Runs work in a transaction of its own, between two batches.
   *
   * @param isUrgent it goes before other work, and before the next batch
   * @throws the fault that ended the batcher, so that no caller waits forever
   */
  exclusive(
    work: TransactionWork<Transaction>,
    { anyClock = false, isUrgent = false }: { readonly anyClock?: boolean; readonly isUrgent?: boolean } = {},
  ): Promise<Result<void, Refusal>> {
    if (this.#stopping) return Promise.resolve(bad(stopping));
    if (this.#hasFailed) return this.failed;
    return new Promise((settle, reject) => {
      const running = this.#isWorking ? 1 : 0;
      const urgent = this.#works.findLastIndex((each) => each.isUrgent) + 1;
      const at = isUrgent ? Math.max(running, urgent) : this.#works.length;
      this.#works.splice(at, 0, { work, anyClock, isUrgent, settle, reject });
      this.#wake();
    });
  }

  /** Says why a call of this key and of that many bytes cannot wait in the queue now; undefined if it can. */
  refusalFor(keyName: string, bytes: number): Refusal | undefined {
    if (this.#stopping) return stopping;
    if (this.#queue.hasRoom(keyName, bytes)) return undefined;
    const sentence = `${this.#queue.waiting} calls wait: another would wait longer than SVC_QUEUE_MS, or find no memory`;
    return refuse("queue-full", `${sentence}; nothing was decided, ask again in a moment`);
  }

  /**
   * Pauses a connection of a key until there is room for its next check.
   *
   * @param resume reads its next request
   * @returns false if that may be read now
   */
  pause(keyName: string, resume: () => void): boolean {
    return this.#queue.pause(keyName, resume);
  }

  /** How many calls wait, how many bytes their bodies have, and how many connections are paused. */
  get queued(): { readonly calls: number; readonly bytes: number; readonly paused: number } {
    return { calls: this.#queue.waiting, bytes: this.#queue.bytes, paused: this.#queue.paused };
  }

  /** Is nothing waiting, and nothing being decided? */
  get isIdle(): boolean {
    return !this.#running;
  }

  /** Pauses no connection from now on, and resolves when the requests of those that were paused are read. */
  async endPauses(): Promise<void> {
    if (this.#queue.endPauses()) await haveBeenRead();
  }

  /** Takes no more calls but those of paused connections, and resolves when all waiting calls are answered. */
  async drain(): Promise<void> {
    if (this.#queue.endPauses()) await haveBeenRead();
    this.#stopping = true;
    if (this.#running) await Promise.race([this.failed, new Promise<void>((resolve) => this.#onIdle.push(resolve))]);
  }

  #wake(): void {
    if (this.#running) return;
    this.#running = true;
    setImmediate(() => this.#run().catch(this.#fail));
  }

  async #run(): Promise<void> {
    let isBatchNext = false;
    while (this.#works.length + this.#queue.waiting > 0) {
      const [next] = this.#works;
      this.#queue.start();
      if (next === undefined || (isBatchNext && !next.isUrgent && this.#queue.waiting > 0)) {
        await this.#decideNext();
        isBatchNext = false;
      } else {
        this.#isWorking = true;
        const done = await this.#options.transact(next.work, next.anyClock);
        this.#works.shift();
        this.#isWorking = false;
        this.#queue.release([]);
        next.settle(done);
        isBatchNext = true;
      }
    }
    this.#running = false;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  #abandon(fault: unknown): void {
    this.#hasFailed = true;
    this.#queue.abandon();
    for (const { reject } of this.#works.splice(0)) reject(fault);
  }

  async #decideNext(): Promise<void> {
    let taken: readonly Call[] | undefined;
    let times: BatchTimes | undefined;
    const since = performance.now();
    const take: TakeCalls<Call> = (fits) => {
      taken = this.#queue.takeBatch(fits);
      return taken;
    };
    const done = await this.#options.transact(async (transaction) => {
      const startMs = performance.now() - since;
      const found = await this.#options.decide(transaction, take);
      times = found && { ...found, storeMs: found.storeMs + startMs };
    }, false);
    taken ??= this.#queue.takeBatch();
    this.#queue.release(taken, times);
    if (!done.ok) for (const { settle } of taken) settle(done);
  }
}

/** Resolves when the event loop has read what connections have received. */
async function haveBeenRead(): Promise<void> {
  await after(5);
  await nextTurn();
}

/** The refusal of everything that a gate which stops does not start any more. */
export const stopping: Refusal = refuse("stopping", "the gate is stopping; ask again in a moment");
