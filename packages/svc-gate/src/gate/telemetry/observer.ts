import type { Mode, RefusalCode, Verdict } from "../../wire/mod.ts";

/** What one check passes through, in order. A stage ends where the next begins. */
export const stages = ["parse", "prepare", "queue", "decide", "commit", "answer"] as const;
export type Stage = (typeof stages)[number];

/**
 * When a check came to the end of each stage, in milliseconds of `performance.now()`; 0 until then.
 * `queue` ends when the ledger's turn has come to the batch; `commit` when the receipt is durable.
 */
export interface CheckTimings {
  /** When the whole body was here. */
  readonly began: number;
  parse: number;
  prepare: number;
  queue: number;
  decide: number;
  commit: number;
  answer: number;
}

/** A check whose body is here now. */
export function beginTimings(): CheckTimings {
  const began = performance.now();
  return { began, parse: began, prepare: 0, queue: 0, decide: 0, commit: 0, answer: 0 };
}

/** An answered check, as far as it is shown outside the ledger: nothing of its arguments. */
export interface AnsweredCheck {
  readonly verdict: Verdict;
  readonly answered: Verdict;
  readonly mode: Mode;
  readonly toolName: string;
  /** Does a contract route the tool? Only then is its name a label. */
  readonly routed: boolean;
  readonly rule: string;
  /** The number of its receipt. */
  readonly seq: number;
  readonly sessionId: string | null;
}

/** What became of a change that was asked for while the gate runs. */
export const reloadOutcomes = ["applied", "refused"] as const;
export type ReloadOutcome = (typeof reloadOutcomes)[number];

/**
 * What the gate tells the world of itself. It is called on the way of each check: an implementation counts and returns,
 * it never waits, throws or keeps what it was given.
 */
export interface GateObserver {
  answered(check: AnsweredCheck, timings: CheckTimings): void;
  /** A batch is durable: how many calls it held, and how long its commit took. */
  flushed(calls: number, ms: number): void;
  refused(code: RefusalCode): void;
  /** The engine failed on a rule: the call was blocked, and somebody must look. */
  defect(): void;
  reloaded(outcome: ReloadOutcome): void;
  /** One who anchors a ledger could not be told of a head, or did not take it. */
  anchorFailed(by: string): void;
}
