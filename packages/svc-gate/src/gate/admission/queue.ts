import { limits } from "../../wire/mod.ts";
import { Pace } from "./pace.ts";

/** A call that can wait in the queue. */
export interface QueuedCall {
  /** The key of the caller. */
  readonly caller: { readonly keyName: string };
  /** The size of the body, which is in memory until the call is decided. */
  readonly bytes: number;
}

/** What a key has in the queue. */
interface KeyQueue<Call> {
  readonly name: string;
  /** Its waiting calls, in order of arrival; calls before `head` were taken. */
  calls: Call[];
  head: number;
  /** The number of calls that wait or are being decided. */
  undecided: number;
  bytes: number;
  /** Reads the next request of each of its paused connections, in the order of their answers. */
  readonly paused: (() => void)[];
}

/** The bounds of waiting, over all queues of the process. */
export class Budget {
  /** The memory that the bodies of waiting calls may use. */
  readonly max: number;
  /** A call that would wait longer is refused, in milliseconds. */
  readonly waitMsMax: number;
  /** The number of bytes in use. */
  held = 0;
  /** The number of queues that have calls. */
  holders = 0;

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
  readonly #budget: Budget;
  readonly #now: () => number;
  readonly #pace = new Pace();
  readonly #keys = new Map<string, KeyQueue<Call>>();
  /** The keys that have calls waiting, in the order of their turns. */
  readonly #ring: KeyQueue<Call>[] = [];
  #turn = 0;
  #waiting = 0;
  #undecided = 0;
  #bytes = 0;
  /** The most calls of the next batch. */
  #batchMax: number = limits.quickBatchCallsMax;
  #paused = 0;
  #resuming: NodeJS.Timeout | undefined;
  #isEnding = false;

  /** @param now a monotonic clock in milliseconds */
  constructor(budget: Budget, now: () => number = () => performance.now()) {
    this.#budget = budget;
    this.#now = now;
  }

  /** The number of calls that wait. */
  get waiting(): number {
    return this.#waiting;
  }

  /** The number of connections that are paused. */
  get paused(): number {
    return this.#paused;
  }

  /** The bytes of the calls that wait or are being decided. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Returns true if the queue has room for another call of this key. The length of the body is enough to know. */
  hasRoom(keyName: string, bytes: number): boolean {
    const key = this.#keys.get(keyName);
    const { held, holders, max, waitMsMax } = this.#budget;
    const keys = this.#keys.size + (key === undefined ? 1 : 0);
    const queues = holders + (this.#bytes === 0 ? 1 : 0);
    const waiting = waitingOf(key);
    return (
      this.#waiting < limits.queueCallsMax &&
      held + bytes <= max &&
      isWithinShare(this.#waiting, waiting, limits.queueCallsMax, keys) &&
      isWithinShare(this.#bytes, key?.bytes ?? 0, max / queues, keys) &&
      isWithinShare(held, this.#bytes, max, queues) &&
      this.#waitMs(key, waiting + (key?.paused.length ?? 0)) <= waitMsMax
    );
  }

  /**
   * Estimates how long the next call of a key waits for its answer. Its place in each batch is what the others leave, or an
   * equal share if that is more.
   *
   * @param own the calls of its key before it, also those that paused connections may have sent
   * @param more batches that it lets go first
   */
  #waitMs(key: KeyQueue<Call> | undefined, own: number, more = 0): number {
    const keys = this.#keys.size + (key === undefined ? 1 : 0);
    if (own * keys < limits.queueCallsMin) return 0;
    const others = this.#undecided + this.#paused - (key?.undecided ?? 0) - (key?.paused.length ?? 0);
    const inBatch = Math.max(this.#batchMax / keys, this.#batchMax - others);
    return this.#pace.waitMs(Math.floor(own / inBatch) + 1 + more, this.#now());
  }

  /** Adds a call. Call `hasRoom` first. */
  enqueue(call: Call): void {
    const { bytes } = call;
    const key = this.#keyOf(call.caller.keyName);
    if (key.head === key.calls.length) this.#ring.push(key);
    key.calls.push(call);
    key.undecided += 1;
    key.bytes += bytes;
    this.#hold(bytes);
    this.#undecided += 1;
    this.#waiting += 1;
  }

  /** Work begins that calls must wait for: a batch, or other work in its place. */
  begin(): void {
    this.#pace.begin(this.#now());
  }

  /**
   * Takes the next calls for one batch, up to the first that does not fit. Call `release` when it has ended.
   *
   * @param fits called once for each call, in order; the first call that does not fit stays in the queue
   */
  takeBatch(fits: (call: Call) => boolean = () => true): readonly Call[] {
    const ring = this.#ring;
    const calls: Call[] = [];
    while (calls.length < this.#batchMax && ring.length > 0) {
      if (this.#turn >= ring.length) this.#turn = 0;
      const key = ring[this.#turn] as KeyQueue<Call>;
      const call = key.calls[key.head] as Call;
      if (!fits(call)) break;
      calls.push(call);
      key.head += 1;
      this.#waiting -= 1;
      if (key.head === key.calls.length) this.#emptied(key);
      else this.#turn += 1;
      if (key.head === takenMax) forgetTaken(key);
    }
    return calls;
  }

  /**
   * What ran has ended. The calls of a batch are decided or refused: frees their room.
   *
   * @param calls those of the batch; empty if it was other work
   * @param isStoreSlow true if the batch mostly waited for the store; if it was full, the next ones may be large
   */
  release(calls: readonly Call[], isStoreSlow: boolean): void {
    this.#pace.end(this.#now(), calls.length > 0);
    if (calls.length === 0) return;
    if (calls.length >= limits.quickBatchCallsMax)
      this.#batchMax = isStoreSlow ? limits.batchCallsMax : limits.quickBatchCallsMax;
    for (const { caller, bytes } of calls) {
      const key = this.#keyOf(caller.keyName);
      key.undecided -= 1;
      key.bytes -= bytes;
      this.#forgetIdle(key);
      this.#hold(-bytes);
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
    const { undecided, paused } = key;
    const hasRoom = this.#undecided < this.#readMax || undecided < this.#readShare;
    if ((hasRoom && paused.length === 0) || this.#isTooLong(key, paused.length)) return false;
    paused.push(resume);
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
    return this.#batchMax * readAhead;
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
    return this.#waitMs(key, waitingOf(key) + paused, 1) > this.#budget.waitMsMax;
  }

  #resume(): void {
    if (this.#paused === 0) return;
    const share = this.#readShare;
    let room = this.#readMax - this.#undecided;
    for (const key of this.#keys.values()) {
      const { paused, undecided } = key;
      const count = this.#isEnding ? paused.length : Math.max(0, Math.ceil(share) - undecided, room);
      const resumed = paused.splice(0, count);
      while (paused.length > 0 && this.#isTooLong(key, paused.length)) resumed.push(paused.pop() as () => void);
      this.#paused -= resumed.length;
      room -= resumed.length;
      for (const resume of resumed) resume();
      this.#forgetIdle(key);
    }
  }

  /** A connection that is read may have no request, so its key cannot wait for the end of a batch. */
  #resumeSoon(): void {
    this.#resuming ??= setTimeout(() => {
      this.#resuming = undefined;
      this.#resume();
      if (this.#paused > 0) this.#resumeSoon();
    }, resumeMs).unref();
  }

  #forgetIdle({ name, undecided, paused }: KeyQueue<Call>): void {
    if (undecided + paused.length === 0) this.#keys.delete(name);
  }

  /** None of these calls will be decided: frees their bytes for the other queues of the process. */
  abandon(): void {
    this.#hold(-this.#bytes);
    this.endPauses();
  }

  #keyOf(name: string): KeyQueue<Call> {
    return this.#keys.getOrInsertComputed(name, () => {
      return { name, calls: [], head: 0, undecided: 0, bytes: 0, paused: [] };
    });
  }

  /** Removes the key from the ring; the next key moves to its index. */
  #emptied(key: KeyQueue<Call>): void {
    key.calls = [];
    key.head = 0;
    this.#ring.splice(this.#turn, 1);
  }

  #hold(bytes: number): void {
    if (bytes === 0) return;
    const before = this.#bytes;
    this.#bytes += bytes;
    this.#budget.held += bytes;
    if (before === 0) this.#budget.holders += 1;
    else if (this.#bytes === 0) this.#budget.holders -= 1;
  }
}

/** A key that never empties drops its taken calls in portions of this size. */
const takenMax = 1024;

/**
 * A batch is decided while the next calls are read. With 1, a loop of 256 connections was answered 10 % less often; with 2, each
 * call of a loop of 1,024 took a fifth more of the processor, because more calls survive the garbage collector.
 */
const readAhead = 1.25;

/** How often paused connections are looked at between batches, in milliseconds. */
export const resumeMs = 5;

function waitingOf<Call>(key: KeyQueue<Call> | undefined): number {
  return key === undefined ? 0 : key.calls.length - key.head;
}

function forgetTaken<Call>(key: KeyQueue<Call>): void {
  key.calls = key.calls.slice(key.head);
  key.head = 0;
}

/** A holder of less than an equal share finds room. Others find room while a quarter of the total is free. */
function isWithinShare(total: number, held: number, max: number, holders: number): boolean {
  return held < max / holders || total < max * 0.75;
}
