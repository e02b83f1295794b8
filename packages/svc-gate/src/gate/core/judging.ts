import { stopFor, type Approval, type Asking, type BlockingStop } from "../../approvals/mod.ts";
import type { Decision, LookupPlan } from "../../contract/mod.ts";
import type { AppendTransaction } from "../../ledger/mod.ts";
import { ApprovableCall, type CallToJudge } from "../approvals/call.ts";
import type { Deciders } from "../approvals/deciders.ts";
import { JudgedBatch, type JudgedAnswer } from "../approvals/judged-batch.ts";
import type { TimedTransaction } from "../policy/active-ledger.ts";
import type { ActivePolicy } from "../policy/active-policy.ts";
import { answeredVerdict, type DecidedCheck } from "./answer.ts";
import type { BatchJudge, CallJudge, JudgedCall, PlannedCall } from "./decide-batch.ts";

/** Judges a batch by the ledger's stops, approvals and grants. */
export class Judging implements BatchJudge {
  readonly timed: TimedTransaction;
  readonly policy: ActivePolicy;
  readonly #deciders: Deciders;
  #calls: readonly (CallToJudge | undefined)[] | undefined;
  #batch: JudgedBatch | undefined;

  /** @param deciders who may decide a call */
  constructor(timed: TimedTransaction, policy: ActivePolicy, deciders: Deciders) {
    this.timed = timed;
    this.policy = policy;
    this.#deciders = deciders;
  }

  open(planned: readonly PlannedCall[]): Promise<void> | undefined {
    return this.timed.transaction.hasApprovals ? this.#open(planned) : undefined;
  }

  /** Reads the approvals that the calls may meet, and ends all whose time is over. */
  async #open(planned: readonly PlannedCall[]): Promise<void> {
    this.#calls = planned.map((call) => this.#callToJudge(call));
    const toJudge = this.#calls.filter((call) => call !== undefined);
    const due = await this.timed.transaction.dueApprovals(this.timed.at);
    if (toJudge.length + due.length > 0)
      this.#batch = await JudgedBatch.open(this.timed, this.policy, this.#deciders, toJudge, due);
  }

  call(planned: PlannedCall, index: number): CallJudge {
    const stopped = stopOf(this.timed.transaction, planned.lookupPlan, this.policy);
    return stopped === undefined
      ? new FreeCall(this, planned, this.known(planned, index))
      : stoppedCall(this.timed.transaction, planned, stopped);
  }

  /** The call if an approval can matter before its verdict is known, also one that an earlier call of the batch opened. */
  known(planned: PlannedCall, index: number): MetCall | undefined {
    if (this.#batch === undefined) return undefined;
    const call = this.#calls === undefined ? this.#callToJudge(planned) : this.#calls[index];
    return call && { call, batch: this.#batch };
  }

  /** The call if a person may have to decide it after all; undefined if nobody can. */
  met(planned: PlannedCall): MetCall | undefined {
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

  finish(): readonly Approval[] {
    return this.#batch?.finish() ?? [];
  }
}

interface MetCall {
  readonly call: CallToJudge;
  readonly batch: JudgedBatch;
}

/** Judges a call that a stop blocks. A person set the stop, so it enforces in every mode. */
function stoppedCall(transaction: AppendTransaction, planned: PlannedCall, { as, stop }: BlockingStop): CallJudge {
  const asked = { how: "stopped", stop: stop.row, ...(as !== undefined && { as }) };
  return {
    values: () => valuesOf(transaction, planned),
    judge: () => ({ answered: "BLOCK", mode: "enforce", how: "stopped", outcome: { asked } }),
    appended: () => ({ stop }),
  };
}

/** A call that no stop blocks. */
class FreeCall implements CallJudge {
  readonly #judging: Judging;
  readonly #planned: PlannedCall;
  #met: MetCall | undefined;
  #judged: JudgedAnswer | undefined;
  #rule = "";

  constructor(judging: Judging, planned: PlannedCall, known: MetCall | undefined) {
    this.#judging = judging;
    this.#planned = planned;
    this.#met = known;
  }

  values(): readonly (string | undefined)[] {
    if (this.#met === undefined) return valuesOf(this.#judging.timed.transaction, this.#planned);
    const { batch, call } = this.#met;
    return call.call.values(batch.own(call.call).holds);
  }

  judge(decision: Decision, values: readonly (string | undefined)[]): JudgedCall {
    const { mode } = this.#judging.policy;
    const byMode = answeredVerdict(decision, mode);
    const isAsked = byMode === "ESCALATE";
    const mayMeet = isAsked || this.#planned.lookupPlan.prepared.request.approvalId !== undefined;
    this.#met ??= mayMeet ? this.#judging.met(this.#planned) : undefined;
    const met = this.#met;
    if (met === undefined) return { answered: byMode, mode, how: undefined, outcome: undefined };
    this.#rule = decision.rule;
    const softened = isAsked && decision.verdict === "BLOCK";
    const askingOf = (open: Approval | undefined): Asking | undefined =>
      isAsked ? met.call.call.asking(decision, values, softened, open) : undefined;
    this.#judged = met.batch.judge(met.call, byMode, decision.rule, askingOf);
    const { answered = byMode, judgement, outcome } = this.#judged ?? {};
    return { answered, mode, how: judgement?.how, outcome };
  }

  appended(row: Parameters<CallJudge["appended"]>[0]): Pick<DecidedCheck, "approval" | "judgement"> {
    const [met, judged] = [this.#met, this.#judged];
    if (met === undefined || judged === undefined) return {};
    return { judgement: judged.judgement, approval: met.batch.appended(met.call, judged, this.#rule, row) };
  }
}

function valuesOf(transaction: AppendTransaction, { lookups }: PlannedCall): readonly (string | undefined)[] {
  return lookups.map((lookup) => transaction.value(lookup));
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
