export interface ValveOptions {
  /** The number of actions per second, unless some would then wait too long. */
  readonly perSecond: number;
  /** The longest wait in a steady flood. If more actions wait, more pass. */
  readonly waitMs: number;
  /** The number of actions that may wait. Further actions pass immediately. */
  readonly waitingMax: number;
  /** A monotonic clock in milliseconds. */
  readonly now?: () => number;
  /** Calls a function after a delay. */
  readonly later?: (action: () => void, ms: number) => void;
}

/** An action. It returns false if nothing was left to do, for example because the caller has gone. */
type Action = () => boolean;

/** How often waiting actions are released, in milliseconds. */
const tickMs = 5;

/**
 * Lets a number of actions pass per second; further actions wait for their turn. Rare actions pass immediately.
 *
 * Refusals pass through a valve. Refusing a request over HTTP costs almost as much as deciding it, so a gate that
 * refuses without limit has no time left for answers. A waiting refusal costs nothing and delays only its own
 * connection. So callers that repeat refused requests are slowed down.
 */
export class Valve {
  readonly #options: Required<ValveOptions>;
  #waiting: Action[] = [];
  #head = 0;
  #level: number;
  #filledAt: number;

  constructor({ now = () => performance.now(), later = callLater, ...options }: ValveOptions) {
    this.#options = { ...options, now, later };
    this.#level = this.#burst;
    this.#filledAt = now();
  }

  get waiting(): number {
    return this.#waiting.length - this.#head;
  }

  /** @returns true if the action passed immediately */
  pass(action: Action): boolean {
    this.#fill();
    if ((this.waiting === 0 && this.#level >= 1) || this.waiting >= this.#options.waitingMax) {
      this.#level = Math.max(0, this.#level - 1);
      action();
      return true;
    }
    if (this.waiting === 0) this.#options.later(() => this.#release(), tickMs);
    this.#waiting.push(action);
    return false;
  }

  #release(): void {
    this.#fill();
    while (this.waiting > 0 && this.#level >= 1) {
      const action = this.#waiting[this.#head] as Action;
      this.#head += 1;
      if (action()) this.#level -= 1;
    }
    if (this.waiting === 0 || this.#head > 1024) {
      this.#waiting = this.#waiting.slice(this.#head);
      this.#head = 0;
    }
    if (this.waiting > 0) this.#options.later(() => this.#release(), tickMs);
  }

  /** The actions of a tenth of a second may pass together. */
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

function callLater(action: () => void, ms: number): void {
  setTimeout(action, ms);
}
