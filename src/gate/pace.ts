import { limits } from "../wire/mod.ts";

/** How much of what was measured stays with each batch: the last ten or so count. */
const kept = 0.8;

/** A batch that began on an idle gate with no more calls than this shows what a batch costs by itself. */
const fewCalls = 16;

/**
 * How fast a ledger's calls are decided now, and how many may therefore wait. Times are milliseconds of a monotonic clock.
 *
 * A burst may wait long, because it passes; a load that stays may not, because whoever is let in then waits for all who
 * were before. Which of both it is shows in the calls themselves: under a load that stays, none is answered quickly
 * (Nichols and Jacobson, "Controlling Queue Delay", ACM Queue 2012; Maurer, "Fail at Scale", ACM Queue 2015).
 */
export class Pace {
  #spentMs = 0;
  #calls = 0;
  /** What a batch of few calls takes on an idle gate. */
  #batchMs = 0;
  #isMeasured = false;
  #lastEnd = 0;
  #calmAt = 0;

  /**
   * Notes a batch that ended.
   *
   * @param calls how many it had
   * @param oldestAt when the call came that waited longest
   * @param wasIdle did it begin on an idle gate?
   */
  note(calls: number, oldestAt: number, wasIdle: boolean, now: number): void {
    const ms = now - (wasIdle ? oldestAt : this.#lastEnd);
    this.#lastEnd = now;
    this.#spentMs = this.#spentMs * kept + ms;
    this.#calls = this.#calls * kept + calls;
    if (wasIdle && calls <= fewCalls) {
      this.#batchMs = this.#isMeasured ? this.#batchMs + (ms - this.#batchMs) / 8 : ms;
      this.#isMeasured = true;
    }
    if (now - oldestAt <= this.#standingMs / 4) this.#calmAt = now;
  }

  /** How many calls may be undecided at once, by the time that the last of them would wait. */
  get callsMax(): number {
    const isStanding = this.#lastEnd - this.#calmAt > limits.lineCalmMs;
    const ms = isStanding ? this.#standingMs : limits.lineBurstMs;
    return Math.max(limits.lineCallsMin, (ms * this.#calls) / this.#spentMs || 0);
  }

  /** An engine whose every flush is slow is busy only with larger batches, which take longer. */
  get #standingMs(): number {
    return Math.max(limits.lineStandingMs, this.#batchMs * 10);
  }
}
