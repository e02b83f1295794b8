/** A connection whose next request is not read for now. */
export interface PausedConnection {
  readonly at: number;
  /** Reads its next request. */
  readonly resume: () => void;
}

/** What a key has in the queue: its calls in order of arrival, and its paused connections. */
export class KeyQueue<Call extends { readonly bytes: number }> {
  readonly name: string;
  #calls: Call[] = [];
  /** Calls before this one were taken. */
  #head = 0;
  /** The number of calls that wait or are being decided. */
  undecided = 0;
  bytes = 0;
  /** The last batch that had calls of it. */
  batch = 0;
  /** How many that batch had; infinitely many if it left none. */
  part: number = Infinity;
  /** In the order of their answers. */
  readonly paused: PausedConnection[] = [];

  constructor(name: string) {
    this.name = name;
  }

  /** The number of calls that wait. */
  get waiting(): number {
    return this.#calls.length - this.#head;
  }

  /** The call that waits longest; undefined if none waits. */
  get next(): Call | undefined {
    return this.#calls[this.#head];
  }

  add(call: Call): void {
    this.#calls.push(call);
    this.undecided += 1;
    this.bytes += call.bytes;
  }

  /** Takes the next call for a batch. */
  take(batch: number): void {
    this.#head += 1;
    this.part = this.batch === batch ? this.part + 1 : 1;
    this.batch = batch;
    if (this.waiting === 0) {
      this.#calls = [];
      this.#head = 0;
      if (this.paused.length === 0) this.part = Infinity;
    } else if (this.#head === takenMax) {
      this.#calls = this.#calls.slice(takenMax);
      this.#head = 0;
    }
  }

  /** A call of that many bytes is decided or refused. */
  settle(bytes: number): void {
    this.undecided -= 1;
    this.bytes -= bytes;
  }
}

/** A key that never empties drops its taken calls in portions of this size. */
const takenMax = 1024;
