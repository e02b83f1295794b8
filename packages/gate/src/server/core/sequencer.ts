import type { Caller } from "../../../../core/src/contract/mod.ts";
import {
  bad,
  good,
  limits,
  quote,
  refuse,
  type CheckRequest,
  type Refusal,
  type Result,
} from "../../../../core/src/wire/mod.ts";
import { nobody, type Deciders } from "../approvals/deciders.ts";
import { endDue } from "../approvals/acts.ts";
import { BatchApprovals } from "../approvals/batch-approvals.ts";
import { Batcher, type TakeCalls, type WaitingCall } from "../admission/batcher.ts";
import { QueueBudget, type BatchTimes } from "../admission/queue.ts";
import type { CheckTimings } from "../telemetry/observer.ts";
import { ActiveLedger, type ActiveLedgerOptions, type TimedTransaction } from "../policy/active-ledger.ts";
import type { ActivePolicy } from "../policy/active-policy.ts";
import type { DecidedCheck } from "./answer.ts";
import { answerAs, repetitionsOf, type RepeatedAnswer } from "./repeats.ts";
import {
  decideBatch,
  eventsOf,
  planCall,
  prepareCall,
  type DecideOptions,
  type PlannedCall,
  type PreparedCall,
} from "./decide-batch.ts";
import { RefusedInputs, type StoredCall, type RefusedCall } from "./refused-inputs.ts";

/** A call to be decided. */
export interface Submission {
  readonly request: CheckRequest;
  readonly caller: Caller;
  readonly context: SubmissionContext;
  readonly timings: CheckTimings;
}

/** Facts about a call that are not in its request. */
interface SubmissionContext {
  /** SHA-256 of its body, in hex. */
  readonly digest: string;
  /** The size of its body, which is in memory while it waits. */
  readonly bytes: number;
  /** Says whether the key covers a tool, by the tool's own name. By default it covers all. */
  readonly allowsTool?: ((tool: string) => boolean) | undefined;
}

interface WaitingCheck extends WaitingCall {
  readonly submission: Submission;
  readonly prepared: PreparedCall;
  readonly settle: (result: Result<SettledCheck, Refusal>) => void;
}

export type SettledCheck = DecidedCheck | RepeatedAnswer;

export interface SequencerOptions extends ActiveLedgerOptions, Omit<DecideOptions, "keepRefused"> {
  /** Who may decide a call; by default nobody. */
  readonly deciders?: Deciders | undefined;
  /** The memory for the bodies of waiting calls, shared with the other ledgers of the process; by default its own. */
  readonly budget?: QueueBudget | undefined;
  /** Says how much the ledger keeps of a call that was refused before any rule was evaluated; by default a new process's limits. */
  readonly keepRefused?: ((call: RefusedCall) => StoredCall) | undefined;
}

/**
 * Decides the calls of one ledger one after another, in batches that share one flush. It owns the policy in force.
 *
 * A failure of the ledger is a fault: `failed` rejects, and the sequencer answers nothing more.
 */
export class Sequencer {
  readonly #options: DecideOptions & Pick<ActiveLedgerOptions, "ledger"> & { readonly deciders: Deciders };
  /** The policy that decides now changes between two batches, never within one. */
  readonly active: ActiveLedger;
  /** Runs exclusive work between two batches, and counts waiting calls. */
  readonly batcher: Batcher<WaitingCheck, TimedTransaction>;

  constructor(options: SequencerOptions, policy: ActivePolicy) {
    const active = new ActiveLedger({ ...options, endDue }, policy);
    const refused = new RefusedInputs();
    this.active = active;
    this.#options = {
      ...options,
      deciders: options.deciders ?? nobody,
      keepRefused: options.keepRefused ?? ((call) => refused.toStoredCall(call)),
    };
    this.batcher = new Batcher({
      budget: options.budget ?? new QueueBudget(),
      transact: (work, anyClock) => active.transact(work, anyClock),
      decide: (timed, take) => this.#decide(timed, take),
    });
  }

  /** Decides and records a call. Refuses it immediately if the queue is full or the gate is stopping. */
  submit(submission: Submission): Promise<Result<SettledCheck, Refusal>> {
    const { request, caller, timings } = submission;
    const prepared = prepareCall(this.active.policy, request, caller);
    timings.prepare = performance.now();
    return new Promise((settle) => {
      this.batcher.submit({ caller, bytes: submission.context.bytes, submission, prepared, settle });
    });
  }

  async #decide(timed: TimedTransaction, take: TakeCalls<WaitingCheck>): Promise<BatchTimes | undefined> {
    const { policy } = this.active;
    const planned: PlannedCall[] = [];
    let events = 0;
    let bytes = 0;
    let wrong: WaitingCheck[] | undefined;
    const taken = take((call) => {
      const { prepared, submission } = call;
      const current =
        prepared.policy === policy ? prepared : prepareCall(policy, submission.request, submission.caller);
      if (submission.context.allowsTool?.(current.prepared.request.toolName) === false) {
        (wrong ??= []).push(call);
        return true;
      }
      const next = planCall(current, timed.at);
      events += eventsOf(next);
      bytes += submission.context.bytes;
      if (planned.length > 0 && (events > limits.batchEventsMax || bytes > limits.batchBytesMax)) return false;
      planned.push(next);
      return true;
    });
    const calls = wrong === undefined ? taken : taken.filter((call) => wrong?.includes(call) !== true);
    if (wrong !== undefined) refuseTools(wrong, policy);
    if (calls.length === 0) {
      await timed.transaction.abort();
      return undefined;
    }
    const isPlain = calls.every(({ submission: { request } }) => request.callId === undefined);
    const settled = isPlain
      ? await this.#decideAll(timed, calls, planned)
      : await this.#decideOnce(timed, calls, planned);
    for (const [index, { settle }] of calls.entries()) settle(settled[index] as Result<SettledCheck, Refusal>);
    const decided = calls.find(({ submission }) => submission.timings.commit > 0)?.submission.timings;
    return decided && timesOf(decided);
  }

  async #decideAll(
    timed: TimedTransaction,
    calls: readonly WaitingCheck[],
    planned: readonly PlannedCall[],
  ): Promise<readonly Result<DecidedCheck, Refusal>[]> {
    const timings = calls.map(({ submission }) => submission.timings);
    const approvals = new BatchApprovals(timed, this.active.policy, this.#options.deciders);
    return (await decideBatch(approvals, planned, timings, this.#options)).map(good);
  }

  /** Decides the calls, except exact repeats, which get the answer that was recorded. */
  async #decideOnce(
    timed: TimedTransaction,
    calls: readonly WaitingCheck[],
    planned: readonly PlannedCall[],
  ): Promise<readonly Result<SettledCheck, Refusal>[]> {
    const identities = calls.map(({ submission: { request, caller, context } }) => {
      return { keyName: caller.keyName, callId: request.callId, digest: context.digest };
    });
    const repetitions = await repetitionsOf(timed, identities, { ...this.#options, policy: this.active.policy });
    const decidedCalls: WaitingCheck[] = [];
    const toDecide: PlannedCall[] = [];
    const indexes = repetitions.map((repetition, index) => {
      if (repetition.how !== "decide") return undefined;
      decidedCalls.push(calls[index] as WaitingCheck);
      return toDecide.push({ ...(planned[index] as PlannedCall), identified: repetition.check }) - 1;
    });
    const decided = toDecide.length === 0 ? [] : await this.#decideAll(timed, decidedCalls, toDecide);
    if (toDecide.length === 0) await timed.transaction.abort();
    return repetitions.map((repetition, index) => {
      if (repetition.how === "answered") return repetition.answer;
      const check = decided[indexes[repetition.how === "same" ? repetition.as : index] as number];
      if (repetition.how === "decide" || check?.ok !== true) return check as Result<DecidedCheck, Refusal>;
      return good(answerAs(check.value, (calls[index] as WaitingCheck).submission.context.digest));
    });
  }
}

function timesOf({ queue, looked, decide, commit }: CheckTimings): BatchTimes {
  return { decideMs: decide - looked, storeMs: looked - queue + (commit - decide) };
}

/** Refuses calls whose keys do not cover their tools. */
function refuseTools(calls: readonly WaitingCheck[], { policySet }: ActivePolicy): void {
  for (const { settle, submission } of calls) {
    const { toolName: sent } = submission.request;
    const tool = policySet.aliases.get(sent);
    const named = tool === undefined ? quote(sent) : `${quote(tool)}, which was sent as ${quote(sent)}`;
    const key = quote(submission.caller.keyName);
    settle(bad(refuse("wrong-tool", `the key ${key} does not cover the tool ${named}`)));
  }
}
