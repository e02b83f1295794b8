import {
  planLookups,
  count,
  decide,
  prepare,
  type Caller,
  type Decision,
  type Prepared,
} from "../../../../core/src/contract/decide.ts";
import type { CheckEntry, CounterEvent, InForce, AppendTransaction } from "../../ledger/mod.ts";
import type { Durable, Receipt } from "../../../../core/src/record/entry/mod.ts";
import type { CheckRequest, Mode, Verdict } from "../../../../core/src/wire/mod.ts";
import type { Approval } from "../../../../core/src/approvals/mod.ts";
import type { CheckTimings, GateObserver } from "../telemetry/observer.ts";
import type { ActivePolicy } from "../policy/active-policy.ts";
import { digestOf } from "../policy/counter-digest.ts";
import type { CallJudge, CallPlan } from "../approvals/call-judge.ts";
import type { DecidedCheck } from "./answer.ts";
import { outcomeOf } from "./outcome.ts";
import type { StoredCall, RefusedCall } from "./refused-inputs.ts";
import { recordAnswer, type IdentifiedCheck } from "./recorded-answer.ts";
import { sensitiveOf } from "./sensitive.ts";

/** A call as the policy sees it, before any counter is read. */
export interface PreparedCall {
  readonly policy: ActivePolicy;
  readonly prepared: Prepared;
}

/** A call with the counters that its decision needs. */
export interface PlannedCall extends CallPlan {
  /** Set if the answer is recorded for exact repeats. */
  readonly identified?: IdentifiedCheck | undefined;
}

/** The part of a transaction that decides calls. */
export interface DecidingTransaction extends Pick<AppendTransaction, "append" | "commit" | "head" | "recordAnswer"> {
  readonly counters: Pick<AppendTransaction["counters"], "look">;
  readonly store: Pick<AppendTransaction["store"], "inForce">;
}

/** Applies stops, approvals and grants to the calls of one batch. */
export interface BatchJudge {
  readonly timed: { readonly transaction: DecidingTransaction; readonly at: number };
  readonly policy: ActivePolicy;
  /**
   * Reads what the calls may meet. It may add rows before those of the calls.
   *
   * @returns undefined if there is nothing to read. It does not throw before it returns
   */
  open(planned: readonly PlannedCall[]): Promise<void> | undefined;
  /** @param index the position of the call in the batch */
  call(planned: PlannedCall, index: number): CallJudge;
  /** Records what the batch did, behind the rows of its calls. @returns the approvals that changed */
  finish(): readonly Approval[];
}

export interface DecideOptions {
  /** Says how much the ledger keeps of a call that was refused before any rule was evaluated. */
  readonly keepRefused: (call: RefusedCall) => StoredCall;
  /** Called for a decision in which an error was thrown that is not an evaluation error. */
  readonly onDefect: (decision: Decision) => void;
  readonly observer?: GateObserver | undefined;
  /** Called with the approvals that a batch has changed, after their rows are on disk. */
  readonly onApprovals?: ((changed: readonly Approval[]) => void) | undefined;
}

export function prepareCall(policy: ActivePolicy, request: CheckRequest, caller: Caller): PreparedCall {
  return { policy, prepared: prepare(policy.policySet, request, caller) };
}

/** Determines which counters the call needs at this time. */
export function planCall({ policy, prepared }: PreparedCall, at: number): PlannedCall {
  const lookupPlan = planLookups(prepared, at);
  const lookups = lookupPlan.lookups.map(({ counter, key, after }) => ({
    counter: digestOf(policy, counter),
    key,
    after,
  }));
  return { lookupPlan, lookups };
}

/** How many counter events a call costs the ledger: those it reads and those it writes. */
export function eventsOf({ lookupPlan, lookups }: PlannedCall): number {
  return lookups.length + lookupPlan.prepared.updates.length;
}

/**
 * Decides the planned calls in their order, appends a row for each and commits the transaction.
 *
 * @returns one record for each call, after its receipt is on disk
 */
export async function decideBatch(
  judge: BatchJudge,
  planned: readonly PlannedCall[],
  timings: readonly CheckTimings[],
  options: DecideOptions,
): Promise<readonly DecidedCheck[]> {
  const startedAt = performance.now();
  const { transaction, at } = judge.timed;
  const first = transaction.head.seq;
  const looked = transaction.counters.look(planned.flatMap(({ lookups }) => lookups));
  const opened = judge.open(planned);
  // Both are awaited together, so that no failure of one is left unhandled while the other runs.
  if (opened === undefined) await looked;
  else await Promise.all([looked, opened]);
  const lookedAt = performance.now();
  const ahead = transaction.head.seq - first; // A row before the checks ends approvals whose time is over.
  const decisions = planned.map((call, index) => decideCall(judge, call, index, options));
  if (planned.some(isIdentified)) recordAnswers(transaction, planned, decisions, { row: first + ahead + 1, at });
  const changed = judge.finish();
  const decided = performance.now();
  const receipts = await transaction.commit(takeOver(transaction.store, judge.policy));
  const committed = performance.now();
  options.observer?.countBatch(planned.length, committed - decided);
  for (const each of timings) {
    each.queue = startedAt;
    each.looked = lookedAt;
    each.decide = decided;
    each.commit = committed;
  }
  if (changed.length > 0) options.onApprovals?.(changed);
  return decisions.map((decision, index) => ({ ...decision, receipt: receipts[ahead + index] as Durable<Receipt> }));
}

function isIdentified({ identified }: PlannedCall): boolean {
  return identified !== undefined;
}

/** Records the answers for exact repeats. */
function recordAnswers(
  transaction: DecidingTransaction,
  planned: readonly PlannedCall[],
  decisions: readonly Omit<DecidedCheck, "receipt">[],
  first: Parameters<typeof recordAnswer>[3],
): void {
  for (const [index, { identified }] of planned.entries()) {
    const decision = decisions[index];
    if (identified !== undefined && decision !== undefined)
      recordAnswer(transaction, identified, decision, { ...first, row: first.row + index });
  }
}

/** Decides one call and appends its row to the transaction. */
function decideCall(
  judge: BatchJudge,
  planned: PlannedCall,
  index: number,
  { keepRefused, onDefect }: DecideOptions,
): Omit<DecidedCheck, "receipt"> {
  const { policy, timed } = judge;
  const { lookupPlan } = planned;
  const { prepared } = lookupPlan;
  const call = judge.call(planned, index);
  const values = call.values();
  const decision = decide(lookupPlan, values);
  if (decision.defect !== undefined) onDefect(decision);
  const { answered, how, mode, outcome } = call.judge(decision, values);
  const decided = {
    at: timed.at,
    policy,
    mode,
    decision,
    answered,
    outcome: outcomeOf(decision, outcome),
    keepRefused,
  };
  const events = count(prepared, { verdict: decision.verdict, answered, how }).map(
    ({ counter, ...update }): CounterEvent => ({ ...update, counter: digestOf(policy, counter) }),
  );
  const row = timed.transaction.append(entryOf(prepared, decided), events);
  return { decision, answered, mode, tool: prepared.plan?.tool ?? null, ...call.applyRow(row) };
}

interface DecidedCall extends Pick<DecideOptions, "keepRefused"> {
  readonly at: number;
  readonly policy: ActivePolicy;
  readonly mode: Mode;
  readonly decision: Decision;
  readonly answered: Verdict;
  readonly outcome: CheckEntry["outcome"];
}

/** The row of a decided call. */
function entryOf({ request, caller, plan, early }: Prepared, decided: DecidedCall): CheckEntry {
  const { at, policy, mode, decision, answered, outcome, keepRefused } = decided;
  const { keyName, keyKind } = caller;
  const { toolName, sessionId, platformText, approvalId, alias } = request;
  const { verdict, reason, rule } = decision;
  const routed = plan !== undefined;
  const whole = {
    at,
    keyName,
    inputText: request.inputText,
    sensitive: sensitiveOf(policy.policySet, request, routed),
  };
  const { inputText, sensitive } = early === undefined ? whole : keepRefused(whole);
  return {
    at,
    keyName,
    keyKind,
    mode,
    toolName,
    routed,
    sessionId,
    inputText,
    platformText,
    sensitive,
    verdict,
    answered,
    reason,
    rule,
    contract: policy.contract,
    outcome,
    approvalId,
    ...(alias !== undefined && { alias }),
  };
}

/**
 * Returns the policy with this engine if an earlier engine served the ledger. The first row then records the new
 * engine.
 */
function takeOver({ inForce }: DecidingTransaction["store"], { engine }: ActivePolicy): InForce | undefined {
  return inForce === undefined || inForce.engine === engine ? undefined : { ...inForce, engine };
}
