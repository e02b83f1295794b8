import { limits } from "../../../../core/src/wire/mod.ts";
import { KeyQueue, type PausedConnection } from "./key-queue.ts";
import { BatchPace } from "./pace.ts";

/** A call that can wait in the queue. */
export interface QueuedCall {
  readonly caller: { readonly keyName: string };
  /** The size of the body, which is in memory until the call is decided. */
  readonly bytes: number;
}

/** How long a batch took for its decisions, and how long it waited for the store. */
export interface BatchTimes {
  readonly decideMs: number;
  readonly storeMs: number;
}

/** The bounds of waiting, over all queues of the process. */
export class QueueBudget {
  /** The memory that the bodies of waiting calls may use. */
  readonly max: number;
  /** A call that would wait longer is refused, in milliseconds. */
  readonly waitMsMax: number;
  /** The number of bytes in use. */
  bytesUsed = 0;
  /** The number of queues that have calls. */
  queues = 0;

  constructor({ max = limits.queueBytesMax, waitMsMax = 1000 }: { max?: number; waitMsMax?: number } = {}) {
    this.max = max;
    this.waitMsMax = waitMsMax;
  }
}

/**
 * The calls of one ledger that wait for a verdict. The queue is bounded in time and in memory, and it is fair: a batch
 * takes one call of each key in turn, and the oldest call of that key. So a key with few calls waits for few others, and
 * the key with the most calls is the first that is refused.
 *
 * A call that was let in is never dropped: it leaves only through `takeBatch`.
 *
 * While more calls wait than a batch needs, the connections of a key that has its share of them are paused: their next
 * requests wait in the network, where they cost the gate nothing.
 */
export class AdmissionQueue<Call extends QueuedCall> {
  readonly #budget: QueueBudget;
  readonly #now: () => number;
  readonly #pace = new BatchPace();
  readonly #keys = new Map<string, KeyQueue<Call>>();
  /** The keys that have calls waiting, in the order of their turns. */
  readonly #ring: KeyQueue<Call>[] = [];
  #turn = 0;
  #waiting = 0;
  #undecided = 0;
  #bytes = 0;
  /** The number of batches so far. */
  #batch = 0;
  /** The last one, if it left calls, or had as many as a batch may have; else 0. */
  #fullBatch = 0;
  /** The most calls of the next batch. */
  #batchMax: number = limits.quickBatchCallsMax;
  #paused = 0;
  #willResume = false;
  /** How often in a row nothing was undecided when paused connections were looked at. */
  #idleLooks = 0;
  #isEnding = false;

  /** @param now a monotonic clock in milliseconds */
  constructor(budget: QueueBudget, now: () => number = () => performance.now()) {
    this.#budget = budget;
    this.#now = now;
  }

  /** The number of calls that wait. */
  get waiting(): number {
    return this.#waiting;
  }

  get paused(): number {
    return this.#paused;
  }

  /** The bytes of the calls that wait or are being decided. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Returns true if the queue has room for another call of this key. The length of its body is known before the body itself. */
  hasRoom(keyName: string, bytes: number): boolean {
    const key = this.#keys.get(keyName);
    const { bytesUsed, queues: others, max, waitMsMax } = this.#budget;
    const keys = this.#keys.size + (key === undefined ? 1 : 0);
    const queues = others + (this.#bytes === 0 ? 1 : 0);
    const waiting = key?.waiting ?? 0;
    return (
      this.#waiting < limits.queueCallsMax &&
      bytesUsed + bytes <= max &&
      isWithinShare(this.#waiting, waiting, limits.queueCallsMax, keys) &&
      isWithinShare(this.#bytes, key?.bytes ?? 0, max / queues, keys) &&
      isWithinShare(bytesUsed, this.#bytes, max, queues) &&
      this.#waitMs(key, waiting + (key?.paused.length ?? 0)) <= waitMsMax
    );
  }

  /**
   * Estimates how long the next call of a key waits for its answer. If the last batch was full and has left calls of the key,
   * the next ones have as many of them; else the other keys have one call before each of its own.
   *
   * @param own the calls of its key before it, also those that paused connections may have sent
   * @param more the number of batches that go first
   */
  #waitMs(key: KeyQueue<Call> | undefined, own: number, more = 0): number {
    const keys = this.#keys.size + (key === undefined ? 1 : 0);
    const before = Math.min(this.#waiting + this.#paused, own * keys + keys - 1);
    if (before < limits.queueCallsMin) return 0;
    const part = key !== undefined && key.batch === this.#fullBatch ? key.part : Infinity;
    const batches = part === Infinity ? before / this.#batchMax : own / part;
    return this.#pace.waitMs(Math.floor(batches) + 1 + more, this.#now());
  }

  /** Adds a call. Call `hasRoom` first. */
  enqueue(call: Call): void {
    const key = this.#keyOf(call.caller.keyName);
    if (key.waiting === 0) this.#ring.push(key);
    key.add(call);
    this.#countBytes(call.bytes);
    this.#undecided += 1;
    this.#waiting += 1;
    this.#pace.countArrival();
  }

  /** Work starts that calls must wait for: a batch, or other work instead. */
  start(): void {
    this.#pace.start(this.#now());
  }

  /**
   * Takes the next calls for one batch, up to the first that does not fit. Call `release` when it has ended.
   *
   * @param fits called once for each call, in order; the first call that does not fit stays in the queue
   */
  takeBatch(fits: (call: Call) => boolean = () => true): readonly Call[] {
    const ring = this.#ring;
    const calls: Call[] = [];
    this.#batch += 1;
    while (calls.length < this.#batchMax && ring.length > 0) {
      if (this.#turn >= ring.length) this.#turn = 0;
      const key = ring[this.#turn] as KeyQueue<Call>;
      const call = key.next as Call;
      if (!fits(call)) break;
      calls.push(call);
      key.take(this.#batch);
      this.#waiting -= 1;
      if (key.waiting > 0) this.#turn += 1;
      else ring.splice(this.#turn, 1); // The next key moves to its index.
    }
    this.#fullBatch = calls.length === this.#batchMax || ring.length > 0 ? this.#batch : 0;
    return calls;
  }

  /**
   * What ran has ended. The calls of a batch are decided or refused: frees their room.
   *
   * @param calls those of the batch; empty if it was other work
   * @param times of the batch, if any of its calls was decided. If it waited for the store most of the time, the next one may be
   *   large
   */
  release(calls: readonly Call[], times?: BatchTimes): void {
    if (times !== undefined) {
      const quickMs = (times.decideMs / calls.length) * limits.quickBatchCallsMax;
      this.#batchMax = times.storeMs > slowStore * quickMs ? limits.batchCallsMax : limits.quickBatchCallsMax;
    }
    this.#pace.end(this.#now(), calls.length, this.#batchMax);
    for (const { caller, bytes } of calls) {
      const key = this.#keyOf(caller.keyName);
      key.settle(bytes);
      this.#forgetIdle(key);
      this.#countBytes(-bytes);
    }
    this.#undecided -= calls.length;
    this.#resume();
  }

  /**
   * Pauses a connection whose last request is answered, if enough calls are undecided and its key has its share of them.
   *
   * @param resume reads its next request; called once, when there is room for it
   * @returns false if the next request may be read now; then `resume` is never called
   */
  pause(keyName: string, resume: () => void): boolean {
    const key = this.#keys.get(keyName);
    if (key === undefined || this.#isEnding) return false;
    const hasRoom = this.#undecided < this.#readMax || key.undecided < this.#readShare;
    if ((hasRoom && key.paused.length === 0) || this.#isTooLong(key, key.paused.length)) return false;
    key.paused.push({ at: this.#now(), resume });
    this.#paused += 1;
    this.#resumeSoon();
    return true;
  }

  /**
   * Reads on from all paused connections, and pauses none from now on.
   *
   * @returns true if any was paused
   */
  endPauses(): boolean {
    const any = this.#paused > 0;
    this.#isEnding = true;
    this.#resume();
    return any;
  }

  /** How many undecided calls the gate has before it pauses connections. */
  get #readMax(): number {
    return this.#batchMax * (this.#batchMax === limits.batchCallsMax ? slowReadAhead : readAhead);
  }

  /** How many of them each key may have. */
  get #readShare(): number {
    return Math.max(1, this.#readMax / this.#keys.size);
  }

  /**
   * Would a connection wait so long for its turn that its call could be refused then? It is read instead, so that its caller
   * learns it at once.
   *
   * @param paused the paused connections of its key before it
   */
  #isTooLong(key: KeyQueue<Call>, paused: number): boolean {
    return this.#waitMs(key, key.waiting + paused, 1) > this.#budget.waitMsMax;
  }

  /**
   * Reads on from the connections of each key that has less than its share. A key may also have calls that no pause stops, such
   * as those on new connections, so a pause ends in any case before a call would be refused for its wait.
   */
  #resume(): void {
    if (this.#paused === 0) return;
    const isIdle = this.#isEnding || this.#idleLooks > 1;
    const share = this.#readShare;
    const since = this.#now() - this.#budget.waitMsMax / 2;
    let room = this.#readMax - this.#undecided;
    for (const key of this.#keys.values()) {
      const { paused, undecided } = key;
      let count = isIdle ? paused.length : Math.ceil(Math.max(0, share - undecided, room));
      while (count < paused.length && (paused[count] as PausedConnection).at < since) count += 1;
      const resumed = paused.splice(0, count);
      while (paused.length > 0 && this.#isTooLong(key, paused.length)) resumed.push(paused.pop() as PausedConnection);
      this.#paused -= resumed.length;
      room -= resumed.length;
      for (const { resume } of resumed) resume();
      this.#forgetIdle(key);
    }
  }

  /** A connection that is read may have no request, so its key cannot wait for the end of a batch. */
  #resumeSoon(): void {
    if (this.#willResume) return;
    this.#willResume = true;
    setTimeout(() => {
      this.#willResume = false;
      this.#idleLooks = this.#undecided === 0 ? this.#idleLooks + 1 : 0;
      this.#resume();
      if (this.#paused > 0) this.#resumeSoon();
    }, resumeMs).unref();
  }

  #forgetIdle({ name, undecided, paused }: KeyQueue<Call>): void {
    if (undecided + paused.length === 0) this.#keys.delete(name);
  }

  /** None of these calls will be decided: frees their bytes for the other queues of the process. */
  abandon(): void {
    this.#countBytes(-this.#bytes);
    this.endPauses();
  }

  #keyOf(name: string): KeyQueue<Call> {
    const known = this.#keys.get(name);
    if (known !== undefined) return known;
    const key = new KeyQueue<Call>(name);
    this.#keys.set(name, key);
    return key;
  }

  #countBytes(bytes: number): void {
    const before = this.#bytes;
    this.#bytes += bytes;
    this.#budget.bytesUsed += bytes;
    this.#budget.queues += Number(this.#bytes > 0) - Number(before > 0);
  }
}

/**
 * A batch is decided while the next calls are read. With 1, a loop of 256 connections was answered 10 % less often; with 2, each
 * call of a loop of 1,024 took a fifth more of the processor, because more calls survive the garbage collector.
 */
const readAhead = 1.25;

/** If the store is slow, the processor is not the limit, and with 1.25 every second batch was half empty. */
const slowReadAhead = 2;

/** A store is slow if it takes so many times as long as the decisions of a small batch. Then larger batches are worth it. */
const slowStore = 8;

/** How often paused connections are looked at between batches, in milliseconds. */
export const resumeMs = 5;

/** An owner of less than an equal share finds room. Others find room while a quarter of the total is free. */
function isWithinShare(total: number, used: number, max: number, owners: number): boolean {
  return used < max / owners || total < max * 0.75;
}
