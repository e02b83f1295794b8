import { limits } from "../../wire/mod.ts";

/** The weight that older batches keep with each new batch. About the last ten batches count. */
const kept = 0.8;

/** If a batch begins on an idle gate and has at most this number of calls, its time shows the cost of a batch alone. */
const fewCalls = 16;

/**
 * Measures how fast a ledger's calls are decided, and so how many may wait. Times are milliseconds of a monotonic
 * clock.
 *
 * In a burst calls may wait long, because a burst ends. Under a steady load each call waits for all earlier calls, for
 * as long as the load lasts (Maurer, "Fail at Scale", ACM Queue 2015). The idle time of the gate shows the difference:
 * under a steady load there is hardly any.
 */
export class Pace {
  #spentMs = 0;
  #calls = 0;
  /**
   * The time of a batch of few calls on a gate that is mostly idle. It is the least recent time, because other work
   * only adds time.
   */
  #batchMs = Infinity;
  #lastEnd = 0;
  /** The share of recent time in which the gate decided calls. */
  #busyShare = 0;

  /**
   * Notes a batch that ended.
   *
   * @param calls the number of its calls
   * @param oldestAt when the oldest of its calls arrived
   * @param wasIdle true if it began on an idle gate
   */
  note(calls: number, oldestAt: number, wasIdle: boolean, now: number): void {
    const busyMs = now - (wasIdle ? oldestAt : this.#lastEnd);
    const idleMs = now - this.#lastEnd - busyMs;
    this.#lastEnd = now;
    this.#busyShare = fade(fade(this.#busyShare, 0, idleMs), 1, busyMs);
    this.#spentMs = this.#spentMs * kept + busyMs;
    this.#calls = this.#calls * kept + calls;
    if (this.#busyShare < lightShare && wasIdle && calls <= fewCalls) {
      this.#batchMs = Math.min(busyMs, this.#batchMs + busyMs / 64);
    }
  }

  /**
   * The number of calls that may be undecided at once, so that the last one does not wait too long. Unbounded before
   * the first batch.
   */
  get callsMax(): number {
    return this.#busyShare > standingShare ? this.#callsIn(this.#standingMs) : this.burstCallsMax;
  }

  /** The same number during a burst. */
  get burstCallsMax(): number {
    return this.#callsIn(limits.lineBurstMs);
  }

  #callsIn(ms: number): number {
    return this.#calls === 0 ? Infinity : Math.max(limits.lineCallsMin, (ms * this.#calls) / this.#spentMs);
  }

  /**
   * If every flush of a store is slow, a busy gate has larger batches, which take longer. Then calls may wait longer.
   */
  get #standingMs(): number {
    return Math.max(limits.lineStandingMs, Number.isFinite(this.#batchMs) ? this.#batchMs * 10 : 0);
  }
}

/** A gate that is mostly idle shows the time of the store, without other work of the process. */
const lightShare = 0.5;

/** A gate that is busy for more than this share has a steady load. */
const standingShare = 0.8;

/** Moves a share towards another value. The past fades over the time after which a burst counts as a steady load. */
function fade(share: number, towards: number, ms: number): number {
  return towards + (share - towards) * Math.exp(-ms / limits.lineBurstFadeMs);
}
