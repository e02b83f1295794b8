import type { Counter, PolicySet } from "../../../core/src/contract/mod.ts";
import {
  activePolicy,
  answeredReason,
  ApprovalDesk,
  readOutcome,
  BatchApprovals,
  decideBatch,
  digestOf,
  exclusiveBy,
  OutcomeDesk,
  planCall,
  prepareCall,
  type ActivePolicy,
  type AnswerApproval,
  type BatchJudge,
  type Deciders,
  type TimedTransaction,
} from "../../../gate/src/server/mod.ts";
import type { Receipt } from "../../../core/src/record/entry/mod.ts";
import {
  addDecimals,
  bad,
  good,
  parseCheckRequest,
  refusals,
  type Json,
  type Mode,
  type Refusal,
  type Result,
} from "../../../core/src/wire/mod.ts";
import { countersSeen, type Evaluation } from "../../../records/src/mod.ts";
import { CaseLedger } from "./case-ledger.ts";
import { latest, type TestCall, type TestDecision, type TestOutcome } from "./document.ts";

/** The key that reports outcomes and cannot ask. No call has this name, because the key of a call is never empty. */
const bookkeeper = "";

/** Why a step could not be made. */
export interface Obstacle {
  readonly what: "approval" | "verdict";
  readonly came: string;
}

/** A call as the gate has decided and answered it. */
export interface CaseAnswer extends Evaluation {
  /** True if a person's decision, or its absence, changed the answer. */
  readonly isChanged: boolean;
  /** The reason of the answer. */
  readonly reason: string;
  /** The member `approval` of the answer. */
  readonly approval: AnswerApproval | undefined;
}

/** The settings of a test file that apply to all calls of a case. */
export interface CaseSettings {
  readonly mode: Mode;
  /** The groups of each person. */
  readonly people: ReadonlyMap<string, readonly string[]>;
  /** The value of a counter before the first call, a decimal. */
  readonly given: (counter: Counter) => string;
}

/** The gate of one test case. It decides with the gate's own code, over a ledger in memory. */
export class CaseGate {
  readonly #policy: ActivePolicy;
  readonly #ledger: CaseLedger;
  readonly #deciders: Deciders;
  readonly #desk: ApprovalDesk;
  readonly #outcomes: OutcomeDesk;
  /** The ids of approvals, and the rows of calls, by the names that a test file uses. */
  readonly #named = new Map<string, string>();
  readonly #calls = new Map<string, Receipt>();
  /** What counters have before the first call, by their digests. */
  readonly #given: ReadonlyMap<string, string>;
  #at = 0;

  constructor(policySet: PolicySet, { mode, people, given }: CaseSettings) {
    const policy = activePolicy(policySet, mode);
    this.#policy = policy;
    this.#given = new Map(policySet.counters.map((counter) => [digestOf(policy, counter), given(counter)]));
    this.#ledger = new CaseLedger(policy);
    this.#deciders = decidersOf(people);
    const context = {
      ledger: this.#ledger,
      policy: () => policy,
      exclusive: exclusiveBy(async (work) => good(await work(await this.#beginTransaction()))),
    };
    this.#desk = new ApprovalDesk({ ...context, deciders: this.#deciders });
    this.#outcomes = new OutcomeDesk(context);
  }

  async #beginTransaction(): Promise<TimedTransaction> {
    return { transaction: await this.#ledger.begin(), at: this.#at };
  }

  /** @returns the answer, or why there is none: the call names no approval, or the gate refuses the request */
  async call({ body, key, at, approval, as }: TestCall): Promise<Result<CaseAnswer, Obstacle>> {
    const id = approval === undefined ? undefined : this.#named.get(approval);
    if (approval !== undefined && id === undefined) return bad(noApproval(approval));
    const text = id === undefined ? body : `${body.slice(0, -1)},"approval":{"id":${JSON.stringify(id)}}}`;
    const request = parseCheckRequest(text);
    if (!request.ok) return bad({ what: "verdict", came: `refused with ${statusText(request.problem)}` });
    this.#at = at;
    const caller = { keyName: key, sessionId: request.value.sessionId };
    const planned = planCall(prepareCall(this.#policy, request.value, caller), at);
    let seen: readonly (string | undefined)[] = [];
    const approvals = new BatchApprovals(await this.#beginTransaction(), this.#policy, this.#deciders);
    const judge = judgeWithGiven(approvals, this.#given, (values) => (seen = values));
    const [decided] = await decideBatch(judge, [planned], [], {
      keepRefused: (refused) => refused,
      onDefect: () => undefined,
    });
    if (decided === undefined) throw new Error("the gate did not decide the call");
    const { decision, answered, judgement, approval: found, receipt } = decided;
    for (const name of [latest, as ?? latest]) {
      if (found !== undefined && found.id !== null) this.#named.set(name, found.id);
      this.#calls.set(name, receipt);
    }
    const how = judgement?.how;
    const isChanged = how !== undefined && how !== "opened" && how !== "attached";
    return good({
      prepared: planned.lookupPlan.prepared,
      decision,
      answered,
      counters: countersSeen(planned.lookupPlan, seen),
      isChanged,
      reason: isChanged || (judgement?.misfits ?? []).length > 0 ? answeredReason(decided) : decision.reason,
      approval: found,
    });
  }

  /** @returns the approval's status afterwards, or the refusal; an obstacle if there is no approval to decide */
  async decide({ act, by, approval: name, comment, scope, at }: TestDecision): Promise<Result<StepResult, Obstacle>> {
    const id = this.#named.get(name);
    this.#at = at;
    const approval = id === undefined ? undefined : await this.#desk.find(id);
    if (id === undefined || approval === undefined) return bad(noApproval(name));
    if (act === "cancel") {
      const isAsker = this.#deciders.voter(by, at) === undefined;
      const done = await this.#desk.cancel(by, id, isAsker, approval.session);
      return good(done.ok ? { result: done.value.approval.status } : refusedAs(done.problem));
    }
    const done = await this.#desk.decide(by, [{ id, hash: approval.hash, decision: act, comment, scope }]);
    if (!done.ok) return good(refusedAs(done.problem));
    const [decided] = done.value;
    return good({ result: decided?.approval.status ?? "not-found" });
  }

  /** Reports an outcome, with the members that the body of POST /outcomes would have. */
  async report({ status, call, amount, key, at }: TestOutcome): Promise<StepResult> {
    const row = this.#calls.get(call);
    if (row === undefined) throw new Error(`no call is named ${call}`);
    this.#at = at;
    const receipt: Json = new Map<string, Json>([
      ["seq", row.seq],
      ["hash", row.hash],
    ]);
    const wanted = readOutcome(
      new Map<string, Json>([
        ["receipt", receipt],
        ["status", status],
        ...(amount === undefined ? [] : ([["amount", amount]] as const)),
      ]),
    );
    if (!wanted.ok) return refusedAs(wanted.problem);
    const done = await this.#outcomes.report({ name: key ?? bookkeeper, mayLower: key === undefined }, wanted.value);
    return done.ok ? { result: done.value.outcome.status } : refusedAs(done.problem);
  }
}

/** Adds to the values of counters what they have before the first call. @param seen receives what the rules see */
function judgeWithGiven(
  approvals: BatchApprovals,
  given: ReadonlyMap<string, string>,
  seen: (values: readonly (string | undefined)[]) => void,
): BatchJudge {
  const { policy, timed } = approvals;
  return {
    policy,
    timed,
    open: (planned) => approvals.open(planned),
    call: (planned, index) => {
      const call = approvals.call(planned, index);
      const values = (): readonly (string | undefined)[] => {
        const before = planned.lookups.map(({ counter }) => given.get(counter) ?? "0");
        const all = call.values().map((value, at) => value && addDecimals(value, before[at] ?? "0"));
        seen(all);
        return all;
      };
      return {
        values,
        judge: (decision, all) => call.judge(decision, all),
        applyRow: (row) => call.applyRow(row),
      };
    },
    finish: () => approvals.finish(),
  };
}

/** What became of a person's decision, or of a report. */
export interface StepResult {
  /** The status of the approval or of the outcome afterwards, or the code of the refusal. */
  readonly result: string;
  /** The gate's sentence about a refusal. */
  readonly refusal?: string;
}

function refusedAs(problem: Refusal): StepResult {
  return { result: problem.code, refusal: `refused with ${statusText(problem)}` };
}

function statusText({ code, detail }: Refusal): string {
  return `${refusals[code].status}: ${detail}`;
}

function noApproval(name: string): Obstacle {
  const came =
    name === latest ? "no call above was answered with one" : `the call \`${name}\` was answered without one`;
  return { what: "approval", came };
}

/** Every person has one key, with the person's name, that nobody made lately. */
function decidersOf(people: CaseSettings["people"]): Deciders {
  return {
    voter: (name) => {
      const groups = people.get(name);
      return groups && { person: name, groups, makers: [] };
    },
    asker: (key) => ({ person: key, makers: [] }),
    refresh: () => Promise.resolve(),
  };
}
