import {
  planLookups,
  count,
  decide,
  prepare,
  type Caller,
  type LookupPlan,
  type Decision,
  type Prepared,
} from "../../contract/mod.ts";
import type { CheckEntry, CounterLookup, CounterEvent, InForce, AppendTransaction } from "../../ledger/mod.ts";
import type { Durable, Receipt } from "../../ledger/entry/mod.ts";
import type { Canonical, CheckRequest, Mode, Verdict } from "../../wire/mod.ts";
import { stopFor, type Approval, type Asking, type BlockingStop, type How } from "../../approvals/mod.ts";
import { ApprovableCall, type CallToJudge } from "../approvals/call.ts";
import type { Deciders } from "../approvals/deciders.ts";
import { JudgedBatch, type JudgedAnswer } from "../approvals/judged-batch.ts";
import type { CheckTimings, GateObserver } from "../telemetry/observer.ts";
import type { TimedTransaction } from "../policy/active-ledger.ts";
import { digestOf, type ActivePolicy } from "../policy/active-policy.ts";
import { answeredVerdict, type DecidedCheck } from "./answer.ts";
import { outcomeOf } from "./outcome.ts";
import type { StoredCall, RefusedCall } from "./refused-inputs.ts";
import { recordAnswer, type IdentifiedCheck } from "./repeats.ts";
import { sensitiveOf } from "./sensitive.ts";

/** A call as the policy sees it, before any counter is read. */
export interface PreparedCall {
  readonly policy: ActivePolicy;
  readonly prepared: Prepared;
}

/** A call with the counters that its decision needs. */
export interface PlannedCall {
  readonly lookupPlan: LookupPlan;
  readonly lookups: readonly CounterLookup[];
  /** Set if the answer is recorded for exact repeats. */
  readonly identified?: IdentifiedCheck | undefined;
}

export interface DecideOptions {
  /** Says how much the ledger keeps of a call that was refused before any rule was evaluated. */
  readonly keepRefused: (call: RefusedCall) => StoredCall;
  /** Called for a decision in which an error was thrown that is not an evaluation error. */
  readonly onDefect: (decision: Decision) => void;
  readonly observer?: GateObserver | undefined;
  /** Who may decide a call. */
  readonly deciders: Deciders;
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
  { transaction, at }: TimedTransaction,
  planned: readonly PlannedCall[],
  timings: readonly CheckTimings[],
  policy: ActivePolicy,
  options: DecideOptions,
): Promise<readonly DecidedCheck[]> {
  const begun = performance.now();
  const first = transaction.head.seq;
  const timed = { transaction, at };
  const looked = transaction.look(planned.flatMap(({ lookups }) => lookups));
  const judging = new Judging(timed, policy, options.deciders);
  // Both are awaited together, so that no failure of one is left unhandled while the other runs.
  if (transaction.hasApprovals) await Promise.all([looked, judging.open(planned)]);
  else await looked;
  const lookedAt = performance.now();
  const ahead = transaction.head.seq - first; // A row before the checks ends approvals whose time is over.
  const decisions = planned.map((call, index) => decideCall(judging, call, index, options));
  if (planned.some(isIdentified)) recordAnswers(timed, planned, decisions, first + ahead + 1);
  const changed = judging.batch?.finish() ?? [];
  const decided = performance.now();
  const receipts = await transaction.commit(takeOver(transaction, policy));
  const committed = performance.now();
  options.observer?.flushed(planned.length, committed - decided);
  for (const each of timings) {
    each.queue = begun;
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

/** Records the answers for exact repeats. @param from the row of the first call */
function recordAnswers(
  { transaction, at }: TimedTransaction,
  planned: readonly PlannedCall[],
  decisions: readonly Omit<DecidedCheck, "receipt">[],
  from: number,
): void {
  for (const [index, { identified }] of planned.entries()) {
    const decision = decisions[index];
    if (identified !== undefined && decision !== undefined)
      recordAnswer(transaction, identified, decision, { row: from + index, at });
  }
}

/** What approvals need to know about a batch. A batch that meets none makes nothing for them. */
class Judging {
  readonly timed: TimedTransaction;
  readonly policy: ActivePolicy;
  readonly #deciders: Deciders;
  #calls: readonly (CallToJudge | undefined)[] | undefined;
  #batch: JudgedBatch | undefined;

  constructor(timed: TimedTransaction, policy: ActivePolicy, deciders: Deciders) {
    this.timed = timed;
    this.policy = policy;
    this.#deciders = deciders;
  }

  /** Undefined if no call of the batch has met an approval so far. */
  get batch(): JudgedBatch | undefined {
    return this.#batch;
  }

  /** Reads the approvals that the calls may meet, and ends all whose time is over. */
  async open(planned: readonly PlannedCall[]): Promise<void> {
    this.#calls = planned.map((call) => this.#callToJudge(call));
    const toJudge = this.#calls.filter((call) => call !== undefined);
    const due = await this.timed.transaction.dueApprovals(this.timed.at);
    if (toJudge.length + due.length > 0)
      this.#batch = await JudgedBatch.open(this.timed, this.policy, this.#deciders, toJudge, due);
  }

  /** The call if an approval can matter before its verdict is known, also one that an earlier call of the batch opened. */
  known(planned: PlannedCall, index: number): Judged | undefined {
    if (this.#batch === undefined) return undefined;
    const call = this.#calls === undefined ? this.#callToJudge(planned) : this.#calls[index];
    return call && { call, batch: this.#batch };
  }

  /** The call if a person may have to decide it after all; undefined if nobody can. */
  met(planned: PlannedCall): Judged | undefined {
    const call = this.#callToJudge(planned);
    if (call === undefined) return undefined;
    this.#batch ??= new JudgedBatch(this.timed, this.policy, this.#deciders);
    return { call, batch: this.#batch };
  }

  #callToJudge({ lookupPlan, lookups }: PlannedCall): CallToJudge | undefined {
    const { plan, early, request, caller } = lookupPlan.prepared;
    if (plan === undefined || early !== undefined) return undefined;
    const { mode } = this.policy;
    const canPark = mode === "assist" || (mode === "enforce" && plan.canEscalate);
    if (!canPark && request.approvalId === undefined) return undefined;
    const call = new ApprovableCall(this.timed.transaction, lookupPlan, lookups);
    return { request, keyName: caller.keyName, call };
  }
}

interface Judged {
  readonly call: CallToJudge;
  readonly batch: JudgedBatch;
}

/** Decides one call and appends its row to the transaction. */
function decideCall(
  judging: Judging,
  planned: PlannedCall,
  index: number,
  { keepRefused, onDefect }: DecideOptions,
): Omit<DecidedCheck, "receipt"> {
  const { policy, timed } = judging;
  const { transaction, at } = timed;
  const { lookupPlan, lookups } = planned;
  const stopped = stopOf(transaction, lookupPlan, policy);
  const known = stopped === undefined ? judging.known(planned, index) : undefined;
  const own = known?.batch.own(known.call.call);
  const values = known?.call.call.values(own?.holds ?? []) ?? lookups.map((lookup) => transaction.value(lookup));
  const decision = decide(lookupPlan, values);
  if (decision.defect !== undefined) onDefect(decision);
  const mode = modeOf(policy, stopped);
  const { verdict, rule } = decision;
  const byMode = stopped === undefined ? answeredVerdict(decision, mode) : "BLOCK";
  const isMet = byMode === "ESCALATE" || lookupPlan.prepared.request.approvalId !== undefined;
  const judged = known ?? (isMet && stopped === undefined ? judging.met(planned) : undefined);
  const softened = verdict === "BLOCK" && byMode === "ESCALATE";
  const judgement = judged?.batch.judge(
    judged.call,
    byMode,
    rule,
    byMode === "ESCALATE" ? askingOf(judged, decision, values, softened) : askNobody,
  );
  const answered = judgement?.answered ?? byMode;
  const { prepared } = lookupPlan;
  const outcome = outcomeOf(decision, stopped === undefined ? judgement?.outcome : stopOutcome(stopped));
  const row = transaction.append(
    entryOf(prepared, { at, policy, mode, decision, answered, outcome, keepRefused }),
    count(prepared, { verdict, answered, how: howOf(judgement, stopped) }).map(
      ({ counter, ...update }): CounterEvent => ({
        ...update,
        counter: digestOf(policy, counter),
      }),
    ),
  );
  const approval = judgement === undefined ? undefined : judged?.batch.appended(judged.call, judgement, rule, row);
  return {
    decision,
    answered,
    mode,
    tool: prepared.plan?.tool ?? null,
    judgement: judgement?.judgement,
    approval,
    stop: stopped?.stop,
  };
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

/** The mode of the row: a person set the stop, so it enforces in every mode. */
function modeOf({ mode }: ActivePolicy, stopped: BlockingStop | undefined): Mode {
  return stopped === undefined ? mode : "enforce";
}

function howOf(judged: JudgedAnswer | undefined, stopped: BlockingStop | undefined): How | undefined {
  return stopped === undefined ? judged?.judgement.how : "stopped";
}

function stopOutcome({ as, stop: { row } }: BlockingStop): Readonly<Record<string, Canonical>> {
  return { asked: { how: "stopped", stop: row, ...(as !== undefined && { as }) } };
}

type AskingOf = (open: Approval | undefined) => Asking | undefined;

const askNobody: AskingOf = () => undefined;

/** A check that meets no approval makes no closure: this is called only for a call that a person may decide. */
function askingOf(
  { call: { call } }: Judged,
  decision: Decision,
  values: readonly (string | undefined)[],
  softened: boolean,
): AskingOf {
  return (open) => call.asking(decision, values, softened, open);
}

/**
 * Returns the policy with this engine if an earlier engine served the ledger. The first row then records the new
 * engine.
 */
function takeOver({ inForce }: AppendTransaction, { engine }: ActivePolicy): InForce | undefined {
  return inForce === undefined || inForce.engine === engine ? undefined : { ...inForce, engine };
}
