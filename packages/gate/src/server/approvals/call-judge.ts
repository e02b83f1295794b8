import {
  stopFor,
  type BlockingStop,
  type Judgement,
  type Misfit,
  type Stop,
} from "../../../../core/src/approvals/mod.ts";
import type { Decision, LookupPlan } from "../../../../core/src/contract/mod.ts";
import type { AppendTransaction, CounterLookup, StoredEffect } from "../../ledger/mod.ts";
import type { Canonical, Mode, Verdict } from "../../../../core/src/wire/mod.ts";
import type { ActivePolicy } from "../policy/active-policy.ts";

/** A call with the counters that its decision needs. */
export interface CallPlan {
  readonly lookupPlan: LookupPlan;
  readonly lookups: readonly CounterLookup[];
}

/** Judges one call. Its functions are called once each, in this order. */
export interface CallJudge {
  /** The values of the call's counters, without what its own approval reserves. */
  values(): readonly (string | undefined)[];
  /** Judges the contract's decision. */
  judge(decision: Decision, values: readonly (string | undefined)[]): JudgedCall;
  /** Notes what the call's row did. */
  applyRow(row: AppendedRow): CallFindings;
}

export interface JudgedCall {
  readonly answered: Verdict;
  readonly mode: Mode;
  readonly how: Judgement["how"] | "stopped";
  /** More members of the part `outcome` of its row. */
  readonly outcome: Readonly<Record<string, Canonical>> | undefined;
}

/** The row of a check, and what it added to counters. */
export interface AppendedRow {
  readonly seq: number;
  readonly hash: string;
  readonly effects: readonly StoredEffect[];
}

/** What a call met. */
export interface CallFindings {
  /** What became of the call if a person had to decide it. */
  readonly judgement?: Judgement | undefined;
  /** The member `approval` of the answer. */
  readonly approval?: AnswerApproval | undefined;
  /** The stop that blocked the call. */
  readonly stop?: Stop | undefined;
}

export interface AnswerApproval {
  readonly id: string | null;
  readonly status: string;
  readonly new: boolean;
  readonly decide_by: number | null;
  readonly use_by: number | null;
  readonly needs: number;
  readonly has: number;
  readonly next: "wait" | "check" | "retry" | "none";
  /** The parts in which the call differs from the approval that it names; absent if it fits. */
  readonly mismatch?: readonly Misfit[];
}

/** Judges a call that a stop blocks; undefined if none does. A person set the stop, so it enforces in every mode. */
export function stoppedCall(
  transaction: AppendTransaction,
  planned: CallPlan,
  policy: ActivePolicy,
): CallJudge | undefined {
  const found = stopOf(transaction, planned.lookupPlan, policy);
  if (found === undefined) return undefined;
  const { as, stop } = found;
  const asked = { how: "stopped", stop: stop.row, ...(as !== undefined && { as }) };
  return {
    values: () => valuesOf(transaction, planned),
    judge: () => ({ answered: "BLOCK", mode: "enforce", how: "stopped", outcome: { asked } }),
    applyRow: () => ({ stop }),
  };
}

/** The stop that blocks a call. A stop covers all names that a tool has now, whichever of them a person wrote. */
function stopOf(
  { stops: { active } }: AppendTransaction,
  { prepared: { request, caller } }: LookupPlan,
  { policySet: { aliases } }: ActivePolicy,
): BlockingStop | undefined {
  if (active.length === 0) return undefined;
  const { sessionId: session, toolName: tool, alias } = request;
  const { keyName, unreadFor } = caller;
  const start = `${unreadFor}.`;
  const isOfServer = (name: string): boolean => {
    const own = aliases.get(name) ?? name;
    if (name.startsWith(start) || own.startsWith(start)) return true;
    return aliases.entries().some(([other, of]) => of === own && other.startsWith(start));
  };
  const mayBe = (name: string): boolean => (unreadFor === undefined ? aliases.get(name) === tool : isOfServer(name));
  return stopFor(active, { key: keyName, session, tool, alias }, { mayBe, inAnySession: unreadFor !== undefined });
}

export function valuesOf(transaction: AppendTransaction, { lookups }: CallPlan): readonly (string | undefined)[] {
  return lookups.map((lookup) => transaction.counters.value(lookup));
}
