import { limits } from "../../wire/mod.ts";
import { Pace } from "../core/pace.ts";

/** What a waiting call shows to the line. */
export interface Queued {
  /** Whose key asks. */
  readonly caller: { readonly keyName: string };
  /** The size of its body: what it holds of memory until it is decided. */
  readonly bytes: number;
}

/** Undecided calls of one key. */
interface Held<Call> {
  readonly name: string;
  /** In the order in which they came; those before `head` were taken. */
  calls: Call[];
  head: number;
  /** Waiting and being decided. */
  undecided: number;
  bytes: number;
  /** Calls that were taken lately, as `Line` weighs them. */
  taken: number;
}

/** What the bodies of waiting calls may hold of the process's memory, over all of its lines. */
export class Budget {
  readonly max: number;
  /** What is held now, in bytes. */
  held = 0;
  /** Lines that hold something. */
  holders = 0;

  constructor(max: number = limits.queueBytesMax) {
    this.max = max;
  }
}

/**
 * The calls of one ledger that wait for a verdict. It is bounded in calls, in bytes and in time, and fair: a batch takes
 * one call of each key in turn, and of a key's own calls the one that came first. Where it fills up, who holds more than
 * an equal share finds it full first, and who holds less finds room; who asked for clearly less than the others of late finds
 * room for a burst.
 *
 * A call that was let in is never dropped: it leaves through `take` alone.
 */
export class Line<Call extends Queued> {
  readonly #budget: Budget;
  readonly #now: () => number;
  readonly #pace = new Pace();
  readonly #keys = new Map<string, Held<Call>>();
  /** The keys that have calls waiting, in the order of their turns. */
  readonly #ring: Held<Call>[] = [];
  #turn = 0;
  #waiting = 0;
  #undecided = 0;
  /** Calls that were taken lately, of all keys that are here. A later one weighs more, which is as if earlier ones faded. */
  #taken = 0;
  #weight = 1;
  #weighedAt = 0;
  #bytes = 0;
  /** Did the last batch leave nothing waiting? */
  #wasIdle = true;
  /** No call that waits came before. */
  #oldestAt = 0;

  /** @param now a monotonic clock in milliseconds */
  constructor(budget: Budget, now: () => number = () => performance.now()) {
    this.#budget = budget;
    this.#now = now;
  }

  /** Calls that wait. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Bytes of the calls that wait or are being decided. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Is there room for one more call of this key? Says so from its headers alone. */
  hasRoom(keyName: string, bytes: number): boolean {
    const key = this.#keys.get(keyName);
    const { held, holders, max } = this.#budget;
    const keys = this.#keys.size + (key === undefined ? 1 : 0);
    const lines = holders + (this.#bytes === 0 ? 1 : 0);
    const waiting = key === undefined ? 0 : key.calls.length - key.head;
    return (
      this.#waiting < limits.queueCallsMax &&
      held + bytes <= max &&
      isWithinShare(this.#waiting, waiting, limits.queueCallsMax, keys) &&
      (isWithinShare(this.#undecided, key?.undecided ?? 0, this.#pace.callsMax, keys) ||
        this.#hasRoomForModest(key?.taken ?? 0, keys)) &&
      isWithinShare(this.#bytes, key?.bytes ?? 0, max / lines, keys) &&
      isWithinShare(held, this.#bytes, max, lines)
    );
  }

  /** Whoever took clearly less than an equal share lately did not bring about a load that stays. */
  #hasRoomForModest(taken: number, keys: number): boolean {
    return taken * keys < this.#taken * 0.75 && this.#undecided < this.#pace.burstCallsMax;
  }

  /** Puts a call at the end of its key's. The caller has asked for room. */
  push(call: Call): void {
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
   * Takes the next calls, at most so many and as long as they fit, for one batch. `settled` says when it has ended.
   *
   * @param fits is asked once for each, in order; the first call for which it says no waits on
   */
  take(max: number, fits: (call: Call) => boolean = () => true): Batch<Call> {
    const ring = this.#ring;
    const calls: Call[] = [];
    while (calls.length < max && ring.length > 0) {
      if (this.#turn >= ring.length) this.#turn = 0;
      const key = ring[this.#turn] as Held<Call>;
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

  /** The calls of a batch are decided, or refused. */
  settled({ calls, oldestAt, wasIdle }: Batch<Call>): void {
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

  #forget(key: Held<Call>): void {
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

  /** Nothing of it will be decided any more: its bytes are room for the other lines of the process. */
  abandon(): void {
    this.#hold(-this.#bytes);
  }

  #keyOf(name: string): Held<Call> {
    const known = this.#keys.get(name);
    if (known !== undefined) return known;
    const key = { name, calls: [], head: 0, undecided: 0, bytes: 0, taken: 0 };
    this.#keys.set(name, key);
    return key;
  }

  /** The key's turn goes to the next one, which takes its place. */
  #emptied(key: Held<Call>): void {
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
  /** None of them came before. */
  readonly oldestAt: number;
  /** Did it begin when nothing was being decided? */
  readonly wasIdle: boolean;
}

/** So many taken calls of a key that never empties are forgotten together. */
const takenMax = 1024;

function forgetTaken<Call>(key: Held<Call>): void {
  key.calls = key.calls.slice(key.head);
  key.head = 0;
}

/** Who holds less than an equal share finds room; who holds more, as long as a quarter is free for the others. */
function isWithinShare(total: number, held: number, max: number, holders: number): boolean {
  return held < max / holders || total < max * 0.75;
}
