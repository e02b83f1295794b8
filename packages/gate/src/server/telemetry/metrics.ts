import type { Approval, How, ApprovalStatus } from "../../../../core/src/approvals/mod.ts";
import { modes, verdicts, type Mode, type RefusalCode, type Verdict } from "../../../../core/src/wire/mod.ts";
import { Series } from "./series.ts";
import {
  stages,
  type AnsweredCheck,
  type CheckTimings,
  type DeliveryOutcome,
  type ReloadOutcome,
  type Stage,
  type GateObserver,
} from "./observer.ts";

const secondsBounds = [50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 100e-3, 500e-3, 2.5];
/** From seconds to the longest time that an approval may wait, 14 days. */
const decisionBounds = [10, 30, 60, 300, 900, 3600, 14_400, 43_200, 86_400, 259_200, 604_800];
const callsBounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/**
 * Why an approval expired: nobody voted, some people voted but too few, or it was approved and not used. The gate does not
 * record who has read an approval, so `no-vote` is the closest measure of calls that nobody saw.
 */
export const expiryReasons = ["no-vote", "too-few", "unused"] as const;
export type ExpiryReason = (typeof expiryReasons)[number];

/** Counts events in plain arrays. The exposition is loaded only when metrics are requested. */
export class Metrics implements GateObserver {
  readonly checks: CheckCounts = new CheckCounts();
  /** The answered verdicts, without tools. */
  readonly answers: CheckCounts = new CheckCounts();
  readonly whole: Series = new Series(secondsBounds);
  readonly stages: Readonly<Record<Stage, Series>> = {
    parse: new Series(secondsBounds),
    prepare: new Series(secondsBounds),
    queue: new Series(secondsBounds),
    decide: new Series(secondsBounds),
    commit: new Series(secondsBounds),
    answer: new Series(secondsBounds),
  };
  readonly batches: Series = new Series(callsBounds);
  readonly flushes: Series = new Series(secondsBounds);
  readonly refusals: Map<RefusalCode, number> = new Map();
  readonly reloads: Map<ReloadOutcome, number> = new Map();
  readonly anchorFailures: Map<string, number> = new Map();
  /** Calls that a person had to decide. */
  readonly asks: Map<How, number> = new Map();
  readonly approvals: Map<ApprovalStatus, number> = new Map();
  readonly expired: Map<ExpiryReason, number> = new Map();
  /** Seconds from the row that asked to the last vote that was needed, or to the denial. */
  readonly decisionTimes: Series = new Series(decisionBounds);
  /** Attempts to send webhooks, by endpoint. */
  readonly deliveries: Map<string, Map<DeliveryOutcome, number>> = new Map();
  defects = 0;

  countAnswer({ verdict, answered, mode, toolName, routed }: AnsweredCheck, timings: CheckTimings): void {
    this.checks.add(toolName, routed, verdict, mode);
    this.answers.add(otherTools, false, answered, mode);
    let from = timings.startedAt;
    for (const stage of stages) {
      const to = timings[stage];
      this.stages[stage].add((to - from) / 1000);
      from = to;
    }
    this.whole.add((from - timings.startedAt) / 1000);
  }

  countBatch(calls: number, ms: number): void {
    this.batches.add(calls);
    this.flushes.add(ms / 1000);
  }

  countJudgement(how: How): void {
    increment(this.asks, how);
  }

  countApproval({ status, at, votes, useBy, denial }: Approval): void {
    increment(this.approvals, status);
    const isUndecided = useBy === null;
    if (status === "expired")
      increment(this.expired, isUndecided ? (votes.length === 0 ? "no-vote" : "too-few") : "unused");
    const decidedAt = status === "approved" ? votes.at(-1)?.at : isUndecided ? denial?.at : undefined;
    if (decidedAt !== undefined) this.decisionTimes.add((decidedAt - at) / 1000);
  }

  countRefusal(code: RefusalCode): void {
    increment(this.refusals, code);
  }

  countDefect(): void {
    this.defects += 1;
  }

  countReload(outcome: ReloadOutcome): void {
    increment(this.reloads, outcome);
  }

  countDelivery(endpoint: string, outcome: DeliveryOutcome): void {
    const counts = this.deliveries.get(endpoint) ?? new Map<DeliveryOutcome, number>();
    this.deliveries.set(endpoint, counts);
    increment(counts, outcome);
  }

  countAnchorFailure(by: string): void {
    increment(this.anchorFailures, by);
  }
}

function increment<Name>(counts: Map<Name, number>, name: Name): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

/** The number of tools with their own label. Each tool adds up to nine series. */
export const toolsMax = 200;

/**
 * The label of tools without their own label: tools that no contract routes, whose names the caller chooses, and tools
 * beyond `toolsMax`.
 */
export const otherTools = "other";

/** The number of checks by tool, verdict and mode. The number of series is bounded, whatever callers send. */
export class CheckCounts {
  readonly #byTool = new Map<string, Float64Array>();
  readonly #other = noCounts();

  add(tool: string, routed: boolean, verdict: Verdict, mode: Mode): void {
    const counts = routed ? this.#ofTool(tool) : this.#other;
    const index = findIndex(verdict, mode);
    counts[index] = (counts[index] as number) + 1;
  }

  #ofTool(tool: string): Float64Array {
    const known = this.#byTool.get(tool);
    if (known !== undefined) return known;
    if (this.#byTool.size >= toolsMax) return this.#other;
    const counts = noCounts();
    this.#byTool.set(tool, counts);
    return counts;
  }

  /** Yields one entry for each combination that occurred. */
  *entries(): Generator<{ tool: string; verdict: Verdict; mode: Mode; count: number }> {
    for (const [tool, counts] of [...this.#byTool, [otherTools, this.#other] as const]) {
      for (const verdict of verdicts) {
        for (const mode of modes) {
          const count = counts[findIndex(verdict, mode)] as number;
          if (count > 0) yield { tool, verdict, mode, count };
        }
      }
    }
  }
}

function noCounts(): Float64Array {
  return new Float64Array(verdicts.length * modes.length);
}

function findIndex(verdict: Verdict, mode: Mode): number {
  return verdicts.indexOf(verdict) * modes.length + modes.indexOf(mode);
}
