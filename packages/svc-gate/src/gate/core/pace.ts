import { limits } from "../../wire/mod.ts";

/** How much of what was measured stays with each batch: the last ten or so count. */
const kept = 0.8;

/** A batch that began on an idle gate with no more calls than this shows what a batch costs by itself. */
const fewCalls = 16;

/**
 * How fast a ledger's calls are decided now, and how many may therefore wait. Times are milliseconds of a monotonic clock.
 *
 * A burst may wait long, because it passes; under a load that stays, whoever is let in waits for all who were before, for
 * as long as it stays (Maurer, "Fail at Scale", ACM Queue 2015). Which of both it is shows in the time that a gate is idle:
 * under a load that stays, hardly any.
 */
export class Pace {
  #spentMs = 0;
  #calls = 0;
  /** What a batch of few calls takes on a gate that has little to do: the least of late, for what else runs only adds to it. */
  #batchMs = Infinity;
  #lastEnd = 0;
  /** How much of the time something was being decided, lately. */
  #busyShare = 0;

  /**
   * Notes a batch that ended.
   *
   * @param calls how many it had
   * @param oldestAt when the call came that waited longest
   * @param wasIdle did it begin on an idle gate?
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

  /** How many calls may be undecided at once, by the time that the last of them would wait; no bound until one is known. */
  get callsMax(): number {
    return this.#busyShare > standingShare ? this.#callsIn(this.#standingMs) : this.burstCallsMax;
  }

  /** The same for a burst. */
  get burstCallsMax(): number {
    return this.#callsIn(limits.lineBurstMs);
  }

  #callsIn(ms: number): number {
    return this.#calls === 0 ? Infinity : Math.max(limits.lineCallsMin, (ms * this.#calls) / this.#spentMs);
  }

  /** An engine whose every flush is slow is busy only with larger batches, which take longer. */
  get #standingMs(): number {
    return Math.max(limits.lineStandingMs, Number.isFinite(this.#batchMs) ? this.#batchMs * 10 : 0);
  }
}

/** A gate that is idle for most of its time shows what the engine takes, and not what else the process has to do. */
const lightShare = 0.5;

/** A gate that is idle for less of its time than the rest has a load that stays. */
const standingShare = 0.8;

/** What a share becomes that was another for so long: what is past fades over the time after which a burst is none. */
function fade(share: number, towards: number, ms: number): number {
  return towards + (share - towards) * Math.exp(-ms / limits.lineBurstFadeMs);
}
