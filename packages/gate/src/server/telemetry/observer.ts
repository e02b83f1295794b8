import type { Approval, How } from "../../../../core/src/approvals/mod.ts";
import type { Mode, RefusalCode, Verdict } from "../../../../core/src/wire/mod.ts";

/** The stages of a check, in order. Each stage ends where the next starts. */
export const stages = ["parse", "prepare", "queue", "decide", "commit", "answer"] as const;
export type Stage = (typeof stages)[number];

/**
 * The time at which a check ended each stage, in milliseconds of `performance.now()`; 0 before that. `queue` ends when
 * the transaction of the batch starts; `commit` ends when the receipt is durable.
 */
export interface CheckTimings {
  /** The time at which the whole body had arrived. */
  readonly startedAt: number;
  parse: number;
  prepare: number;
  queue: number;
  /** In the stage `decide`: when the store had read what the decisions need. */
  looked: number;
  decide: number;
  commit: number;
  answer: number;
}

/** Starts the timings of a check whose body has arrived. */
export function startTimings(): CheckTimings {
  const startedAt = performance.now();
  return { startedAt, parse: startedAt, prepare: 0, queue: 0, looked: 0, decide: 0, commit: 0, answer: 0 };
}

/** The public part of an answered check, without its arguments. */
export interface AnsweredCheck {
  readonly verdict: Verdict;
  readonly answered: Verdict;
  readonly mode: Mode;
  /** The tool's own name, if a contract routes the call; else the name that was sent. */
  readonly toolName: string;
  /** True if a contract routes the tool. Only then its name is a label. */
  readonly routed: boolean;
  readonly rule: string;
  readonly seq: number;
  readonly sessionId: string | null;
}

export const reloadOutcomes = ["applied", "refused"] as const;
export type ReloadOutcome = (typeof reloadOutcomes)[number];

/** The outcomes of an attempt to send a webhook: the endpoint took it, it is sent again later, or it is given up. */
export const deliveryOutcomes = ["delivered", "failed", "dead"] as const;
export type DeliveryOutcome = (typeof deliveryOutcomes)[number];

/**
 * Observes the gate, for metrics. The methods are called during each check: they must not wait, throw or keep their
 * arguments.
 */
export interface GateObserver {
  countAnswer(check: AnsweredCheck, timings: CheckTimings): void;
  /** A person had to decide a call, or its approval changed its answer. Its row is durable. */
  countJudgement(how: How): void;
  /** An approval was approved, or ended. Its row is durable. */
  countApproval(approval: Approval): void;
  /**
   * A batch is durable.
   *
   * @param calls the number of its calls
   * @param ms the time of its commit
   */
  countBatch(calls: number, ms: number): void;
  countRefusal(code: RefusalCode): void;
  /** The engine failed on a rule. The call was blocked, and somebody must investigate. */
  countDefect(): void;
  countReload(outcome: ReloadOutcome): void;
  /** An attempt to send a webhook has ended. */
  countDelivery(endpoint: string, outcome: DeliveryOutcome): void;
  /** An anchor did not receive or accept a head. */
  countAnchorFailure(by: string): void;
}
