/** Asks the gate about one call, and waits for a person if the caller wants to. */
import { createHash } from "node:crypto";
import { SvcGate, type Verdict } from "../../../../clients/javascript/svc-gate.mjs";
import { canonicalJson, type JsonRecord } from "./json.ts";
import { RecentMap } from "./recent.ts";

export interface WaitOptions {
  /** Ends the wait. */
  readonly signal: AbortSignal;
  /** Called now and then while a person decides. */
  readonly tick?: () => void;
}

export interface GateJudgement {
  readonly isAllowed: boolean;
  /** One sentence or two for the model and for people. */
  readonly reason: string;
  readonly verdict: Verdict;
}

/** Progress for a caller that waits, well within the shortest time-out of a client. */
const tickMs = 5000;
/** Calls that wait for a person: the oldest is forgotten, and judged as a new call. */
const parkedMax = 1000;

export class Judge {
  readonly #gate: SvcGate;
  /** How long a call waits for a person. 0: it is refused. */
  readonly #waitMs: number;
  /** The approvals of calls that were refused because a person decides, by the digest of the call. */
  readonly #parked = new RecentMap<string, string>(parkedMax);
  readonly #reports = new Set<Promise<unknown>>();

  constructor(gate: SvcGate, waitMs: number) {
    this.#gate = gate;
    this.#waitMs = waitMs;
  }

  /** Only ALLOW is a permission. */
  async judge(tool: string, input: JsonRecord, waiting: WaitOptions): Promise<GateJudgement> {
    const call = createHash("sha256")
      .update(canonicalJson([tool, input]))
      .digest("hex");
    const first = await this.#gate.check(tool, input, null, this.#parked.get(call));
    const verdict =
      first.escalated && this.#waitMs > 0 ? await this.#waitForDecision(first, tool, input, waiting) : first;
    this.#parked.delete(call);
    const id = verdict.approval?.id;
    if (verdict.escalated && typeof id === "string") this.#parked.set(call, id);
    return { isAllowed: verdict.verdict === "ALLOW", reason: reasonOf(verdict), verdict };
  }

  async #waitForDecision(
    verdict: Verdict,
    tool: string,
    input: JsonRecord,
    { signal, tick }: WaitOptions,
  ): Promise<Verdict> {
    const timer = setInterval(() => tick?.(), tickMs);
    tick?.();
    try {
      return await this.#gate.settle(verdict, tool, input, null, { timeoutMs: this.#waitMs, signal });
    } finally {
      clearInterval(timer);
    }
  }

  /** Reports what became of allowed calls. Nobody waits for it, and a failure changes nothing. */
  report(verdicts: readonly Verdict[], status: "done" | "failed" | "unknown"): void {
    for (const verdict of verdicts) {
      // The gate takes no outcome of a call that it only observed.
      if (verdict.receipt === null || verdict.mode === "observe") continue;
      const report = this.#gate.outcome(verdict, status).finally(() => this.#reports.delete(report));
      this.#reports.add(report);
    }
  }

  /** Resolves when all reports have left. */
  async waitForReports(): Promise<void> {
    await Promise.all(this.#reports);
  }
}

function reasonOf({ verdict, reason, approval }: Verdict): string {
  if (verdict !== "ESCALATE") return reason;
  const id = typeof approval?.id === "string" ? ` (approval ${approval.id})` : "";
  return `${reason.replace(/[.]?$/, ".")} The call did not run, because a person decides${id}. Call it again after the decision.`;
}
