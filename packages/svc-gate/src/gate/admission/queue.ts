import { limits } from "../../wire/mod.ts";
import { Pace } from "./pace.ts";

/** A call that can wait in the queue. */
export interface QueuedCall {
  /** The key of the caller. */
  readonly caller: { readonly keyName: string };
  /** The size of the body, which is in memory until the call is decided. */
  readonly bytes: number;
}

/** Undecided calls of one key. */
interface KeyQueue<Call> {
  readonly name: string;
  /** In order of arrival; calls before `head` were taken. */
  calls: Call[];
  head: number;
  /** Waiting and being decided. */
  undecided: number;
  bytes: number;
  /** Calls that were taken lately, as `AdmissionQueue` weighs them. */
  taken: number;
}

/** The memory that the bodies of waiting calls may use, over all queues of the process. */
export class Budget {
  readonly max: number;
  /** The number of bytes in use. */
  held = 0;
  /** The number of queues that have calls. */
  holders = 0;

  constructor(max: number = limits.queueBytesMax) {
    this.max = max;
  }
}

/**
 * The calls of one ledger that wait for a verdict. The queue is bounded in calls, in bytes and in time, and it is fair: a
 * batch takes one call of each key in turn, and the oldest call of that key. As the queue fills up, a key with more than an
 * equal share finds it full first. A key that asked for clearly less than the others lately finds room for a burst.
 *
 * A call that was let in is never dropped: it leaves only through `takeBatch`.
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
  /** Calls that were taken lately, of all keys in the queue. Later calls weigh more, as if earlier ones faded. */
  #taken = 0;
  #weight = 1;
  #weighedAt = 0;
  #bytes = 0;
  /** Did the last batch leave nothing waiting? */
  #wasIdle = true;
  /** When the oldest waiting call arrived, or earlier. */
  #oldestAt = 0;

  /** @param now a monotonic clock in milliseconds */
  constructor(budget: Budget, now: () => number = () => performance.now()) {
    this.#budget = budget;
    this.#now = now;
  }

  /** The number of calls that wait. */
  get waiting(): number {
    return this.#waiting;
  }

  /** The bytes of the calls that wait or are being decided. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Returns true if the queue has room for another call of this key. The length of the body is enough to know. */
  hasRoom(keyName: string, bytes: number): boolean {
    const key = this.#keys.get(keyName);
    const { held, holders, max } = this.#budget;
    const keys = this.#keys.size + (key === undefined ? 1 : 0);
    const queues = holders + (this.#bytes === 0 ? 1 : 0);
    const waiting = key === undefined ? 0 : key.calls.length - key.head;
    return (
      this.#waiting < limits.queueCallsMax &&
      held + bytes <= max &&
      isWithinShare(this.#waiting, waiting, limits.queueCallsMax, keys) &&
      (isWithinShare(this.#undecided, key?.undecided ?? 0, this.#pace.callsMax, keys) ||
        this.#hasRoomForModest(key?.taken ?? 0, keys)) &&
      isWithinShare(this.#bytes, key?.bytes ?? 0, max / queues, keys) &&
      isWithinShare(held, this.#bytes, max, queues)
    );
  }

  /** A key that took clearly less than an equal share lately does not cause the load. */
  #hasRoomForModest(taken: number, keys: number): boolean {
    return taken * keys < this.#taken * 0.75 && this.#undecided < this.#pace.burstCallsMax;
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
    if (this.#waiting === 0) this.#oldestAt = this.#now();
    this.#waiting += 1;
  }

  /**
   * Takes the next calls for one batch: at most `max`, up to the first that does not fit. Call `release` when it has ended.
   *
   * @param fits called once for each call, in order; the first call that does not fit stays in the queue
   */
  takeBatch(max: number, fits: (call: Call) => boolean = () => true): Batch<Call> {
    const ring = this.#ring;
    const calls: Call[] = [];
    while (calls.length < max && ring.length > 0) {
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
    return { calls, oldestAt: this.#oldestAt, wasIdle: this.#wasIdle };
  }

  /** The calls of a batch are decided or refused: frees their room. */
  release({ calls, oldestAt, wasIdle }: Batch<Call>): void {
    if (calls.length === 0) return;
    const now = this.#now();
    this.#weigh(now);
    for (const { caller, bytes } of calls) {
      const key = this.#keyOf(caller.keyName);
      key.taken += this.#weight;
      this.#taken += this.#weight;
      key.undecided -= 1;
      key.bytes -= bytes;
      if (key.undecided === 0) this.#forget(key);
      this.#hold(-bytes);
    }
    this.#undecided -= calls.length;
    this.#wasIdle = this.#waiting === 0;
    this.#pace.note(calls.length, oldestAt, wasIdle, now);
  }

  #forget(key: KeyQueue<Call>): void {
    this.#keys.delete(key.name);
    this.#taken = this.#keys.size === 0 ? 0 : this.#taken - key.taken;
  }

  #weigh(now: number): void {
    const weight = this.#weight * Math.exp((now - this.#weighedAt) / limits.lineBurstFadeMs);
    this.#weighedAt = now;
    this.#weight = weight;
    if (weight < 1e100) return;
    for (const key of this.#keys.values()) key.taken /= weight;
    this.#taken /= weight;
    this.#weight = 1;
  }

  /** None of these calls will be decided: frees their bytes for the other queues of the process. */
  abandon(): void {
    this.#hold(-this.#bytes);
  }

  #keyOf(name: string): KeyQueue<Call> {
    const known = this.#keys.get(name);
    if (known !== undefined) return known;
    const key = { name, calls: [], head: 0, undecided: 0, bytes: 0, taken: 0 };
    this.#keys.set(name, key);
    return key;
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

/** Calls that are decided together. */
export interface Batch<Call> {
  readonly calls: readonly Call[];
  /** When the oldest of them arrived, or earlier. */
  readonly oldestAt: number;
  /** Did it begin when nothing was being decided? */
  readonly wasIdle: boolean;
}

/** A key that never empties drops its taken calls in portions of this size. */
const takenMax = 1024;

function forgetTaken<Call>(key: KeyQueue<Call>): void {
  key.calls = key.calls.slice(key.head);
  key.head = 0;
}

/** A holder of less than an equal share finds room. Others find room while a quarter of the total is free. */
function isWithinShare(total: number, held: number, max: number, holders: number): boolean {
  return held < max / holders || total < max * 0.75;
}
