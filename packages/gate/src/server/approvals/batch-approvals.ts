import {
  approvalId,
  attach,
  coveredAmounts,
  formDigests,
  grantId,
  isOpen,
  judgeCall,
  openApproval,
  sessionToolName,
  readApprovalId,
  sessionName,
  statusAt,
  withUse,
  type Approval,
  type ApprovalAct,
  type CheckedCall,
  type ApprovalRequest,
  type OpenLimits,
  type Grant,
  type CoveringGrant,
  type GrantUse,
  type Judgement,
  type KnownApprovals,
  type Quorum,
  type SourceCall,
} from "../../../../core/src/approvals/mod.ts";
import type { Decision } from "../../../../core/src/contract/mod.ts";
import { grantRows } from "../../../../core/src/record/entry/mod.ts";
import { Fault } from "../../ledger/errors.ts";
import type { AppendTransaction, StoredEffect } from "../../ledger/mod.ts";
import { answeredVerdict, type Canonical, type Verdict } from "../../../../core/src/wire/mod.ts";
import type { TimedTransaction } from "../policy/active-ledger.ts";
import type { ActivePolicy } from "../policy/active-policy.ts";
import { gateName } from "../policy/reserved-names.ts";
import { enact, endDue, groupReservations, quorumNow, requireRows } from "./acts.ts";
import { ApprovableCall } from "./call.ts";
import {
  stoppedCall,
  valuesOf,
  type AnswerApproval,
  type AppendedRow,
  type CallJudge,
  type CallPlan,
  type CallFindings,
  type JudgedCall,
} from "./call-judge.ts";
import { decidedGrant, type DecidedByPeople, type Deciders } from "./deciders.ts";

/** The stops, approvals and grants of a ledger, as the calls of one batch meet, use and change them. */
export class BatchApprovals implements KnownApprovals {
  readonly timed: TimedTransaction;
  readonly policy: ActivePolicy;
  readonly #deciders: Deciders;
  #calls: readonly (ApprovableCall | undefined)[] | undefined;
  readonly #approvals = new Map<number, Approval>();
  readonly #reservations = new Map<number, readonly StoredEffect[]>();
  #grants: Map<number, KnownGrant> = new Map();
  #openInLedger = 0;
  readonly #openByKey = new Map<string, number>();
  /** By the digest of `sessionName`. */
  readonly #openBySession = new Map<string, number>();
  #expired: readonly Approval[] = [];
  /** The rows of the approvals that calls opened or attached to, and that are still open. */
  readonly #changed = new Set<number>();
  /** Approvals as they were before calls used or replaced them. Rows behind those of the calls say so. */
  readonly #used: { readonly approval: Approval; readonly needed: boolean; readonly row: number }[] = [];
  readonly #superseded: { readonly approval: Approval; readonly by: number }[] = [];
  readonly #grantUses: GrantUse[] = [];

  /** @param deciders who may decide a call */
  constructor(timed: TimedTransaction, policy: ActivePolicy, deciders: Deciders) {
    this.timed = timed;
    this.policy = policy;
    this.#deciders = deciders;
  }

  open(planned: readonly CallPlan[]): Promise<void> | undefined {
    return this.timed.transaction.store.hasApprovals ? this.#open(planned) : undefined;
  }

  /** Reads what the calls may meet, and ends all approvals whose time is over: what they reserve counts for no call. */
  async #open(planned: readonly CallPlan[]): Promise<void> {
    const { transaction, at } = this.timed;
    this.#calls = planned.map((call) => this.#approvable(call));
    const calls = this.#calls.filter((call) => call !== undefined);
    this.#expired = await endDue(this.timed, this.policy);
    if (calls.length === 0) return;
    const named = new Set(calls.map(({ request }) => readApprovalId(request.approvalId ?? "")?.row));
    const found = await transaction.approvals({
      attaches: [...new Set(calls.map((call) => call.attach))],
      rows: [...named].filter((row) => row !== undefined),
      keys: [...new Set(calls.map(({ keyName }) => keyName))],
      at,
    });
    const ended = new Map(this.#expired.map((approval) => [approval.row, approval]));
    for (const approval of found.approvals) this.#approvals.set(approval.row, ended.get(approval.row) ?? approval);
    for (const [row, reserved] of groupReservations(found.reservations)) this.#reservations.set(row, reserved);
    this.#openInLedger = found.all;
    for (const [key, session, count] of found.open) this.#count(key, session, count);
    this.#grants = await knownGrants(transaction, calls);
    const spendable = [...this.#approvals.values()].filter(
      (each) => named.has(each.row) && statusAt(each, at) === "approved",
    );
    if (spendable.length + this.#grants.size > 0) await this.#deciders.refresh();
    requireRows(spendable, found);
  }

  call(planned: CallPlan, index: number): CallJudge {
    return stoppedCall(this.timed.transaction, planned, this.policy) ?? new BatchCall(this, planned, index);
  }

  /** A call that a person may have to decide; undefined if nobody can. */
  approvable(planned: CallPlan, index: number): ApprovableCall | undefined {
    return this.#calls === undefined ? this.#approvable(planned) : this.#calls[index];
  }

  #approvable(planned: CallPlan): ApprovableCall | undefined {
    const { plan, early, request } = planned.lookupPlan.prepared;
    if (plan === undefined || early !== undefined) return undefined;
    const { mode } = this.policy;
    const canPark = mode === "assist" || (mode === "enforce" && plan.canEscalate);
    return canPark || request.approvalId !== undefined
      ? new ApprovableCall(this.timed.transaction, planned)
      : undefined;
  }

  /** True if no call can meet an approval, so that no digest is needed. */
  get isEmpty(): boolean {
    return this.#approvals.size === 0;
  }

  /** The call's own approval, and the amounts that it reserves. */
  own(call: ApprovableCall): {
    readonly approval: Approval | undefined;
    readonly reservations: readonly StoredEffect[];
  } {
    if (this.isEmpty) return { approval: undefined, reservations: [] };
    const approval = this.openWith(call.attach).find(({ asking }) => asking.binding === call.binding(asking.sessions));
    return { approval, reservations: approval === undefined ? [] : (this.#reservations.get(approval.row) ?? []) };
  }

  at(row: number): Approval | undefined {
    return this.#approvals.get(row);
  }

  openWith(digest: string): readonly Approval[] {
    return [...this.#approvals.values()].filter(
      (approval) => approval.asking.attach === digest && isOpen({ status: this.statusOf(approval) }),
    );
  }

  findDenied(key: string): readonly Approval[] {
    return [...this.#approvals.values()].filter((approval) => approval.key === key && approval.status === "denied");
  }

  openCounts(key: string, session: string | null): OpenLimits {
    const name = this.timed.transaction.digest(sessionName(key, session));
    return {
      ledger: this.#openInLedger,
      key: this.#openByKey.get(key) ?? 0,
      session: this.#openBySession.get(name) ?? 0,
    };
  }

  #count(key: string, session: string, step: number): void {
    this.#openByKey.set(key, (this.#openByKey.get(key) ?? 0) + step);
    this.#openBySession.set(session, (this.#openBySession.get(session) ?? 0) + step);
  }

  quorum(approval: DecidedByPeople & Pick<Approval, "votes">): Quorum {
    return quorumNow(approval, this.#deciders, this.policy, this.timed.at);
  }

  statusOf(approval: Approval): Approval["status"] {
    return statusAt(approval, this.timed.at);
  }

  /** Finds a grant that covers a call: the oldest whose votes are enough. */
  grantFor(call: ApprovableCall, asking: ApprovalRequest): CoveringGrant | undefined {
    const { causes, grants } = asking;
    if (grants === undefined || this.#grants.size === 0) return undefined;
    const { at } = this.timed;
    const covered = {
      at,
      key: call.keyName,
      tool: call.request.toolName,
      session: call.place,
      causes,
      forms: formDigests(asking),
      ...call.compared,
    };
    for (const { grant, source } of this.#grants.values()) {
      const amounts = coveredAmounts(grant, covered, source);
      const quorum = amounts && this.quorum(decidedGrant(grant, asking, at));
      if (amounts !== undefined && quorum?.isMet === true) return { grant, by: quorum.people, amounts };
    }
    return undefined;
  }

  /** Adds the approval that a call has opened. */
  add(approval: Approval, reservations: readonly StoredEffect[]): void {
    this.put(approval);
    this.#reservations.set(approval.row, reservations);
    this.#countOpen(approval, 1);
  }

  /** Notes what a call has made of an open approval. */
  put(approval: Approval): void {
    this.#approvals.set(approval.row, approval);
    this.#changed.add(approval.row);
  }

  use(approval: Approval, needed: boolean, row: number): void {
    this.#used.push({ approval, needed, row });
    this.#close(approval, "used");
  }

  supersede(approval: Approval, by: number): void {
    this.#superseded.push({ approval, by });
    this.#close(approval, "superseded");
  }

  /** The row of the act comes after the batch's checks, but no later check of the batch may meet the approval. */
  #close(approval: Approval, status: "superseded" | "used"): void {
    this.#approvals.set(approval.row, { ...approval, status });
    this.#changed.delete(approval.row);
    this.#countOpen(approval, -1);
    this.timed.transaction.release(approval.row, this.#reservations.get(approval.row) ?? []);
    this.#reservations.delete(approval.row);
  }

  #countOpen({ key, session }: Approval, step: number): void {
    this.#openInLedger += step;
    this.#count(key, this.timed.transaction.digest(sessionName(key, session)), step);
  }

  /** Counts a use of a grant before the next call of the batch. */
  useGrant({ grant, amounts }: CoveringGrant, row: number): void {
    const known = this.#grants.get(grant.row);
    if (known !== undefined) this.#grants.set(grant.row, { ...known, grant: withUse(known.grant, amounts) });
    this.#grantUses.push({ amounts, grant: grant.row, row });
  }

  /** Records the acts of the batch behind its checks. @returns the approvals that changed */
  finish(): readonly Approval[] {
    const grants = this.#grantUses;
    const uses = this.#used.map(({ approval, ...use }) => ({ ...use, approval: approval.row }));
    const pairs = this.#superseded.map(({ approval, by }) => [approval.row, by] as const);
    const ended: Approval[] = [];
    if (uses.length + grants.length > 0) {
      const act = { act: "approval.use", ...(grants.length > 0 && { grants }), uses } as const;
      ended.push(...this.#enact(act, usesText(uses.length, grants.length), this.#used));
    }
    if (pairs.length > 0) {
      const reason = "calls were asked again, and their new answers replace the approvals that waited";
      ended.push(...this.#enact({ act: "approval.supersede", pairs }, reason, this.#superseded));
    }
    const changed = [...this.#changed].flatMap((row) => this.#approvals.get(row) ?? []);
    for (const approval of changed) this.timed.transaction.keepApproval(approval);
    return [...this.#expired, ...ended, ...changed];
  }

  #enact(act: ApprovalAct, reason: string, of: readonly { readonly approval: Approval }[]): readonly Approval[] {
    const approvals = of.map(({ approval }) => approval);
    return enact(this.timed, this.policy, { act, by: gateName, reason }, { approvals });
  }
}

/** A grant, and the call that it was made from. */
interface KnownGrant {
  readonly grant: Grant;
  readonly source: SourceCall;
}

/**
 * Finds the grants of the calls, and reads the rows of each again: the one that asked, and those that made the grant.
 *
 * @throws {Fault} if these rows do not say what the grant is
 */
async function knownGrants(
  transaction: AppendTransaction,
  calls: readonly ApprovableCall[],
): Promise<Map<number, KnownGrant>> {
  const grants = transaction.grants.filter((grant) =>
    calls.some(({ keyName, request }) => keyName === grant.key && request.toolName === grant.tool),
  );
  const numbers = grants.flatMap(({ source, row, votes }) => [source, row, ...votes.map((vote) => vote.row)]);
  const rows = grants.length === 0 ? [] : await transaction.rowsAt([...new Set(numbers)]);
  const digest = (text: string): string => transaction.digest(text);
  const known = grants.flatMap((grant): readonly (readonly [number, KnownGrant])[] => {
    if (!grantRows.isMadeBy(grant, rows, digest))
      throw new Fault(`the grant of row ${grant.row} is not what its rows say: restore the ledger from a backup`);
    const row = rows.find(({ seq }) => seq === grant.source);
    const source = row && grantRows.sourceCall(row, digest);
    return source === undefined ? [] : [[grant.row, { grant, source }]];
  });
  return new Map(known);
}

/** A call that no stop blocks. */
class BatchCall implements CallJudge {
  readonly #batch: BatchApprovals;
  readonly #planned: CallPlan;
  readonly #index: number;
  #call: ApprovableCall | undefined;
  #judgement: Judgement | undefined;
  #rule = "";
  /** The request to a person if the call opens an approval. */
  #asking: ApprovalRequest | undefined;

  constructor(batch: BatchApprovals, planned: CallPlan, index: number) {
    this.#batch = batch;
    this.#planned = planned;
    this.#index = index;
  }

  values(): readonly (string | undefined)[] {
    // An earlier call of the batch may have opened an approval.
    if (!this.#batch.isEmpty) this.#call = this.#batch.approvable(this.#planned, this.#index);
    return this.#call === undefined
      ? valuesOf(this.#batch.timed.transaction, this.#planned)
      : this.#call.values(this.#batch.own(this.#call).reservations);
  }

  /** A call whose answer no approval can change gets no judgement, and its digests are not made. */
  judge(decision: Decision, values: readonly (string | undefined)[]): JudgedCall {
    const { policy } = this.#batch;
    const { mode } = policy;
    const answered = answeredVerdict(decision, mode);
    const needsPerson = answered === "ESCALATE";
    const { request } = this.#planned.lookupPlan.prepared;
    const { approvalId: named, sessionId: session, toolName: tool } = request;
    if (needsPerson || named !== undefined) this.#call ??= this.#batch.approvable(this.#planned, this.#index);
    const call = this.#call;
    const own = call && this.#batch.own(call);
    const left = own !== undefined && own.reservations.length > 0 ? own.approval?.row : undefined;
    if (call === undefined || (!needsPerson && named === undefined && left === undefined))
      return { answered, mode, how: undefined, outcome: undefined };
    const { timed } = this.#batch;
    const softened = needsPerson && decision.verdict === "BLOCK";
    const askingOf = (open: Approval | undefined): ApprovalRequest | undefined =>
      needsPerson ? call.makeApprovalRequest(decision, values, softened, open) : undefined;
    const asking = askingOf(own?.approval);
    const { rule } = decision;
    const { keyName: key } = call;
    const ask: CheckedCall = {
      at: timed.at,
      key,
      session,
      tool,
      rule,
      answered,
      named,
      asking,
      attach: call.attach,
      binding: (sessions) => call.binding(sessions),
      sessionTool: () => timed.transaction.digest(sessionToolName({ key, session, tool })),
      subject: () => call.subject,
      grantFor: (wanted) => this.#batch.grantFor(call, wanted),
    };
    const judgement = judgeCall(ask, this.#batch, policy.policySet.approvals.open);
    this.#rule = rule;
    this.#judgement = judgement;
    // The askings of an approval that is replaced are not those of the new one, so its person is shown them.
    const isReplacing = judgement.how === "opened" && judgement.supersedes !== undefined;
    this.#asking = isReplacing ? askingOf(undefined) : asking;
    const outcome = outcomeOf(judgement, this.#asking, left);
    return { answered: answeredAfter(judgement, answered), mode, how: judgement.how, outcome };
  }

  applyRow(row: AppendedRow): CallFindings {
    const [call, judgement] = [this.#call, this.#judgement];
    if (call === undefined || judgement === undefined) return {};
    const { misfits } = judgement;
    const approval = this.#applyJudgement(call, judgement, row);
    const isOther = approval !== undefined && misfits.length > 0;
    return { judgement, approval: isOther ? { ...approval, mismatch: misfits } : approval };
  }

  #applyJudgement(
    { request, keyName: key }: ApprovableCall,
    judgement: Judgement,
    row: AppendedRow,
  ): AnswerApproval | undefined {
    const batch = this.#batch;
    const { seq, hash, effects } = row;
    const own = effects
      .filter(({ held }) => held !== true)
      .map(({ counter, key: counterKey, at, amount }) => ({ counter, key: counterKey, at, amount }));
    if ("supersedes" in judgement && judgement.supersedes !== undefined) batch.supersede(judgement.supersedes, seq);
    switch (judgement.how) {
      case undefined:
        return undefined;
      case "opened": {
        if (this.#asking === undefined) return undefined;
        const { sessionId: session, toolName: tool } = request;
        const opening = { row: seq, hash, at: batch.timed.at, key, session, tool, rule: this.#rule, own };
        const approval = openApproval({ ...opening, asking: this.#asking });
        batch.add(
          approval,
          effects.filter(({ held }) => held === true),
        );
        return { ...this.#answer(approval, "wait"), new: true };
      }
      case "attached": {
        const approval = attach(judgement.approval, seq, own);
        batch.put(approval);
        const isReady = batch.statusOf(approval) === "approved" && batch.quorum(approval).isMet;
        return this.#answer(approval, isReady ? "check" : "wait");
      }
      case "used": {
        batch.use(judgement.approval, judgement.needed, seq);
        return { ...this.#answer(judgement.approval, "none"), status: "used" };
      }
      case "grant": {
        const { grant, by } = judgement;
        batch.useGrant(judgement, seq);
        const people = { needs: by.length, has: by.length };
        return { ...noApproval, ...people, id: grantId(grant), status: "granted", use_by: grant.until, next: "none" };
      }
      case "denied":
      case "closed":
        return this.#answer(judgement.approval, "none");
      case "capped":
        return { ...noApproval, status: "capped", next: "retry" };
      default:
        return judgement satisfies never;
    }
  }

  /** The member `approval` of an answer about an approval that is not new. */
  #answer(approval: Approval, next: AnswerApproval["next"]): AnswerApproval {
    const { needs, has } = this.#batch.quorum(approval);
    return {
      id: approvalId(approval.row, approval.hash),
      status: this.#batch.statusOf(approval),
      new: false,
      decide_by: approval.asking.decide_by,
      use_by: approval.useBy,
      needs,
      has,
      next,
    };
  }
}

const noApproval = { id: null, new: false, decide_by: null, use_by: null, needs: 0, has: 0 };

function usesText(approvals: number, grants: number): string {
  const parts = [
    ...(approvals === 0 ? [] : [approvals === 1 ? "an approval was used" : `${approvals} approvals were used`]),
    ...(grants === 0 ? [] : [grants === 1 ? "a grant let a call through" : `grants let ${grants} calls through`]),
  ];
  return parts.join(", and ");
}

function answeredAfter({ how }: Judgement, answered: Verdict): Verdict {
  if (how === "used" || how === "grant") return "ALLOW";
  return how === "denied" || how === "closed" ? "BLOCK" : answered;
}

/** The rules that a grant lifted, and the forms of the command line if it covers a form. */
function grantedParts({ row, form }: Grant, asking: ApprovalRequest): Readonly<Record<string, Canonical>> {
  return { grant: row, causes: asking.causes, ...(form !== undefined && { forms: formDigests(asking) }) };
}

/** @param own the row of the call's own approval, if the amounts that it reserves were left out */
function outcomeOf(
  judgement: Judgement,
  asking: ApprovalRequest | undefined,
  own: number | undefined,
): Readonly<Record<string, Canonical>> {
  const { how } = judgement;
  const mismatch = judgement.misfits.length > 0;
  if (how === undefined && !mismatch && own === undefined) return {};
  const named =
    "approval" in judgement ? judgement.approval : "supersedes" in judgement ? judgement.supersedes : undefined;
  const asked = {
    ...(how !== undefined && { how }),
    ...(mismatch && { mismatch }),
    ...(named !== undefined && { approval: named.row }),
    ...(own !== undefined && { own }),
    ...(how === "grant" && asking !== undefined && grantedParts(judgement.grant, asking)),
  };
  return { asked, ...(how === "opened" && asking !== undefined && { approval: asking as unknown as Canonical }) };
}
