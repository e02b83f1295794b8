export interface ValveOptions {
  /** How many pass in a second, where that lets nobody wait too long. */
  readonly perSecond: number;
  /** How long one waits at most in a flood that stays as it is: the more wait, the more pass. */
  readonly waitMs: number;
  /** How many may wait; those past it pass at once. */
  readonly waitingMax: number;
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number;
  /** Calls something after so many milliseconds. */
  readonly later?: (act: () => void, ms: number) => void;
}

/** What passes; false where nothing was left to do, as for a caller who has gone. */
type Act = () => boolean;

/** How often those that wait are looked after, in milliseconds. */
const tickMs = 5;

/**
 * Lets so many acts pass in a second; the others wait for their turn. What is rare passes at once.
 *
 * It is what refusals go through. To refuse a request over HTTP costs a good part of what deciding it does, so a gate
 * that refuses as fast as it is asked has no time left to answer. A refusal that waits costs nothing, and holds up the
 * one connection that is owed it: however many there are, they are asked again no more often than they are refused.
 */
export class Valve {
  readonly #options: Required<ValveOptions>;
  #waiting: Act[] = [];
  #head = 0;
  #level: number;
  #filledAt: number;

  constructor({ now = () => performance.now(), later = callLater, ...options }: ValveOptions) {
    this.#options = { ...options, now, later };
    this.#level = this.#burst;
    this.#filledAt = now();
  }

  /** Acts that wait. */
  get waiting(): number {
    return this.#waiting.length - this.#head;
  }

  /** @returns whether it passed at once */
  pass(act: Act): boolean {
    this.#fill();
    if ((this.waiting === 0 && this.#level >= 1) || this.waiting >= this.#options.waitingMax) {
      this.#level = Math.max(0, this.#level - 1);
      act();
      return true;
    }
    if (this.waiting === 0) this.#options.later(() => this.#release(), tickMs);
    this.#waiting.push(act);
    return false;
  }

  #release(): void {
    this.#fill();
    while (this.waiting > 0 && this.#level >= 1) {
      const act = this.#waiting[this.#head] as Act;
      this.#head += 1;
      if (act()) this.#level -= 1;
    }
    if (this.waiting === 0 || this.#head > 1024) {
      this.#waiting = this.#waiting.slice(this.#head);
      this.#head = 0;
    }
    if (this.waiting > 0) this.#options.later(() => this.#release(), tickMs);
  }

  /** A tenth of a second's acts may come together. */
  get #burst(): number {
    return this.#options.perSecond / 10;
  }

  #fill(): void {
    const { now, perSecond, waitMs } = this.#options;
    const at = now();
    const perMs = Math.max(perSecond / 1000, this.waiting / waitMs);
    this.#level = Math.min(Math.max(this.#burst, perMs * tickMs), this.#level + (at - this.#filledAt) * perMs);
    this.#filledAt = at;
  }
}

function callLater(act: () => void, ms: number): void {
  setTimeout(act, ms);
}
