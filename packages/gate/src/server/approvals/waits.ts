import { endsAt, type Approval } from "../../../../core/src/approvals/mod.ts";
import type { Ledger } from "../../ledger/mod.ts";

/** How often a gate asks for changes that somebody waits for, if other gates may make them. */
export const askEveryMs = 500;

interface Waiter {
  /** What was known at the start of the wait. */
  readonly approval: Approval;
  readonly end: (latest: Approval) => void;
}

/** Where approvals are read. */
export interface ApprovalSource extends Pick<Ledger, "isShared"> {
  readonly tables: Pick<Ledger["tables"], "approvals">;
}

/** The requests that wait until a person has decided an approval of one ledger. */
export class ApprovalWaits {
  readonly #ledger: ApprovalSource;
  readonly #waiters = new Set<Waiter>();
  #asking: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(ledger: ApprovalSource) {
    this.#ledger = ledger;
  }

  /**
   * Waits until an approval is not pending any more. A waiter uses a socket and nothing else.
   *
   * @returns the approval as it is then, or when the time is over or the signal aborts
   */
  wait(approval: Approval, ms: number, signal: AbortSignal): Promise<Approval> {
    return new Promise((resolve) => {
      const untilItEnds = Math.max(0, endsAt(approval) - Date.now());
      const timer = setTimeout(() => end(approval), Math.min(ms, untilItEnds));
      const stop = (): void => end(approval);
      const end = (latest: Approval): void => {
        clearTimeout(timer);
        this.#waiters.delete(waiter);
        signal.removeEventListener("abort", stop);
        if (this.#waiters.size === 0) {
          clearInterval(this.#asking);
          this.#asking = undefined;
        }
        resolve(latest);
      };
      const waiter: Waiter = { approval, end };
      signal.addEventListener("abort", stop);
      if (signal.aborted || this.#closed) return stop();
      this.#waiters.add(waiter);
      if (this.#ledger.isShared) this.#asking ??= setInterval(() => void this.look(), askEveryMs).unref();
      else void this.look([waiter]); // A decision may have come between the caller's look and this moment.
    });
  }

  get size(): number {
    return this.#waiters.size;
  }

  /** Reads the approvals that waiters wait for, in one query. An approval that was erased is cancelled. */
  async look(waiters: readonly Waiter[] = [...this.#waiters]): Promise<void> {
    const rows = [...new Set(waiters.map(({ approval: { row } }) => row))];
    if (rows.length === 0) return;
    const query = { before: Number.MAX_SAFE_INTEGER, limit: rows.length, rows };
    const found = await this.#ledger.tables.approvals(query).catch(() => undefined);
    if (found === undefined) return;
    this.wake(found.filter(({ status }) => status !== "pending"));
    const there = new Set(found.map(({ row }) => row));
    for (const { approval, end } of waiters) if (!there.has(approval.row)) end({ ...approval, status: "cancelled" });
  }

  /** Answers those who wait for approvals that were decided. */
  wake(changed: readonly Approval[]): void {
    for (const latest of changed)
      for (const { approval, end } of this.#waiters) if (approval.row === latest.row) end(latest);
  }

  /** Ends the timers, and answers everyone who waits. */
  close(): void {
    this.#closed = true;
    clearInterval(this.#asking);
    for (const { approval, end } of this.#waiters) end(approval);
  }
}
