import {
  actBody,
  ApprovalBook,
  applyAct,
  approvalId,
  approvalText,
  grantId,
  attach,
  judgeAsk,
  openApproval,
  placeName,
  quorumOf,
  readApprovalId,
  statusAt,
  type Approval,
  type Grant,
  type ApprovalAct,
  type Asking,
  type Judgement,
  type Misfit,
  type OwnAmount,
  type Quorum,
} from "../../approvals/mod.ts";
import { foldApproval } from "../../ledger/entry/mod.ts";
import type { StoredEffect } from "../../ledger/mod.ts";
import { Fault } from "../../ledger/errors.ts";
import type { AppendTransaction } from "../../ledger/mod.ts";
import type { Canonical, Verdict } from "../../wire/mod.ts";
import type { TimedTransaction } from "../policy/active-ledger.ts";
import type { ActivePolicy } from "../policy/active-policy.ts";
import type { ApprovableCall, CallToJudge } from "./call.ts";
import { decidedGrant, isOwnCall, type DecidedByPersons, type Deciders } from "./deciders.ts";
import { BatchGrants } from "./batch-grants.ts";
import { gateName } from "../policy/reserved-names.ts";

/** How a call is answered after approvals were judged. */
export interface JudgedAnswer {
  readonly answered: Verdict;
  readonly judgement: Judgement;
  /** The members that its outcome gets. */
  readonly outcome: Readonly<Record<string, Canonical>>;
  /** What a person is asked if the call opens an approval. */
  readonly asking: Asking | undefined;
}

/** The member `approval` of an answer. */
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

/** The row of a check. */
interface AppendedRow {
  readonly seq: number;
  readonly hash: string;
  readonly effects: readonly StoredEffect[];
}

/** The approvals of one batch: what its calls find, use, open and change. */
export class JudgedBatch {
  readonly #transaction: AppendTransaction;
  readonly #at: number;
  readonly #policy: ActivePolicy;
  readonly #deciders: Deciders;
  readonly #book: ApprovalBook;
  readonly #holds: Map<number, readonly StoredEffect[]>;
  readonly #uses: { readonly approval: number; readonly needed: boolean; readonly row: number }[] = [];
  readonly #pairs: (readonly [old: number, by: number])[] = [];
  /** Approvals before an act of this batch that is recorded after its checks. */
  readonly #before = new Map<number, Approval>();
  #expired: readonly Approval[] = [];
  #grants = new BatchGrants();

  /** A batch that has met no approval so far, unless it is given what `open` has found. */
  constructor(
    { transaction, at }: { readonly transaction: AppendTransaction; readonly at: number },
    policy: ActivePolicy,
    deciders: Deciders,
    book: ApprovalBook = new ApprovalBook((text) => transaction.digest(text)),
    holds: Map<number, readonly StoredEffect[]> = new Map(),
  ) {
    this.#transaction = transaction;
    this.#at = at;
    this.#policy = policy;
    this.#deciders = deciders;
    this.#book = book;
    this.#holds = holds;
  }

  /**
   * Reads the approvals that the calls may meet, and ends those whose time is over.
   *
   * @param due all approvals whose time is over, so that what they hold counts for no call
   */
  static async open(
    timed: { readonly transaction: AppendTransaction; readonly at: number },
    policy: ActivePolicy,
    deciders: Deciders,
    calls: readonly CallToJudge[],
    due: readonly Approval[],
  ): Promise<JudgedBatch> {
    const { transaction, at } = timed;
    const expired = await expire(timed, policy, due);
    const named = calls.flatMap(({ request: { approvalId: id } }) =>
      id === undefined ? [] : [readApprovalId(id)?.row],
    );
    const found = await transaction.approvals({
      attaches: [...new Set(calls.map(({ call }) => call.attach))],
      rows: [...new Set(named.filter((row) => row !== undefined))],
      keys: [...new Set(calls.map(({ keyName }) => keyName))],
      at,
    });
    const ended = new Map(expired.map((approval) => [approval.row, approval]));
    const approvals = found.approvals.map((approval) => ended.get(approval.row) ?? approval);
    const grants = await BatchGrants.open(transaction, calls);
    const names = new Set(named);
    const spendable = approvals.filter((each) => names.has(each.row) && statusAt(each, at) === "approved");
    if (spendable.length > 0 || !grants.isEmpty) await deciders.refresh();
    requireRows(spendable, found);
    const book = new ApprovalBook((text) => transaction.digest(text), approvals, {
      ledger: found.all,
      byKey: sums(found.open.map(([key, , count]) => [key, count])),
      bySession: sums(found.open.map(([, place, count]) => [place, count])),
    });
    const batch = new JudgedBatch(
      timed,
      policy,
      deciders,
      book,
      Map.groupBy(found.holds, ({ seq }) => seq),
    );
    batch.#expired = expired;
    batch.#grants = grants;
    return batch;
  }

  #end(after: Approval | undefined, before: Approval): void {
    if (after === undefined) throw new Fault(`the approval of row ${before.row} cannot end as its state says`);
    this.#book.put(after);
    this.#transaction.release(before.row, this.#holds.get(before.row) ?? []);
    this.#holds.delete(before.row);
  }

  /** The call's own approval, and the amounts that it holds. */
  own(call: ApprovableCall): { readonly approval: Approval | undefined; readonly holds: readonly StoredEffect[] } {
    if (this.#book.isEmpty) return nothingOwn;
    const approval = this.#book
      .open(call.attach, this.#at)
      .find(({ asking }) => asking.binding === call.binding(asking.sessions));
    return { approval, holds: approval === undefined ? [] : (this.#holds.get(approval.row) ?? []) };
  }

  /**
   * Judges a call after the contract. The row that says so is not there yet.
   *
   * @param askingOf what a person would be asked, without what an approval's own askings added to counters
   * @returns undefined if no approval can change the answer. The call's digests are not made then.
   */
  judge(
    toJudge: CallToJudge,
    answered: Verdict,
    rule: string,
    askingOf: (open: Approval | undefined) => Asking | undefined,
  ): JudgedAnswer | undefined {
    const { request, keyName, call } = toJudge;
    const own = this.own(call);
    const left = own.approval !== undefined && own.holds.length > 0 ? own.approval.row : undefined;
    if (answered !== "ESCALATE" && request.approvalId === undefined && left === undefined) return undefined;
    const { approvalId: named, sessionId: session, toolName: tool } = request;
    const repeat = askingOf(own.approval);
    const ask = { at: this.#at, key: keyName, session, tool, rule, answered, named, asking: repeat };
    const binding = (sessions: Asking["sessions"]): string => call.binding(sessions);
    const place = (): string => this.#transaction.digest(placeName({ key: keyName, session, tool }));
    const digests = { attach: call.attach, binding, place, subject: () => call.subject };
    const { open } = this.#policy.policySet.approvals;
    const judgement = judgeAsk(
      { ...ask, ...digests },
      this.#book,
      open,
      (approval) => this.quorum(approval),
      (asked) => this.#grants.find(toJudge, asked, this.#at, (grant) => this.#personsOf(asked, grant)),
    );
    // The askings of an approval that is replaced are not those of the new one, so its person is shown them.
    const isReplacing = judgement.how === "opened" && judgement.supersedes !== undefined;
    const asking = isReplacing ? askingOf(undefined) : repeat;
    const outcome = outcomeOf(judgement, asking, left);
    return { answered: answeredAfter(judgement, answered), judgement, asking, outcome };
  }

  /** The persons whose votes for a grant are enough for a call; undefined if they are not. */
  #personsOf(asking: Asking, grant: Grant): readonly string[] | undefined {
    const decided = decidedGrant(grant, asking, this.#at);
    const { isMet, persons } = quorumNow(decided, this.#deciders, this.#policy, this.#at);
    return isMet ? persons : undefined;
  }

  quorum(approval: Approval): Quorum {
    return quorumNow(approval, this.#deciders, this.#policy, this.#at);
  }

  /**
   * Notes what the call's row did, once the row is appended.
   *
   * @returns the member `approval` of the answer; undefined if the call met no approval
   */
  appended(toJudge: CallToJudge, judged: JudgedAnswer, rule: string, row: AppendedRow): AnswerApproval | undefined {
    const approval = this.#noted(toJudge, judged, rule, row);
    const { misfits } = judged.judgement;
    return approval === undefined || misfits.length === 0 ? approval : { ...approval, mismatch: misfits };
  }

  #noted(
    { request, keyName }: CallToJudge,
    { judgement, asking }: JudgedAnswer,
    rule: string,
    row: AppendedRow,
  ): AnswerApproval | undefined {
    const { seq, hash, effects } = row;
    const own: readonly OwnAmount[] = effects
      .filter(({ held }) => held !== true)
      .map(({ counter, key, at, amount }) => ({ counter, key, at, amount }));
    switch (judgement.how) {
      case undefined:
        return undefined;
      case "opened": {
        if (asking === undefined) return undefined;
        const { sessionId: session, toolName: tool } = request;
        const opening = { row: seq, hash, at: this.#at, key: keyName, session, tool, rule, asking, own };
        const approval = openApproval(opening);
        this.#book.put(approval);
        this.#holds.set(
          seq,
          effects.filter(({ held }) => held === true),
        );
        if (judgement.supersedes !== undefined) this.#supersede(judgement.supersedes, seq);
        return this.#answer(approval, true, "wait");
      }
      case "attached": {
        const approval = attach(judgement.approval, seq, own);
        this.#book.put(approval);
        return this.#answer(approval, false, this.#isReady(approval) ? "check" : "wait");
      }
      case "used": {
        const { approval, needed } = judgement;
        this.#uses.push({ approval: approval.row, needed, row: seq });
        this.#closeLater(approval, "used");
        return { ...this.#answer(approval, false, "none"), status: "used" };
      }
      case "grant": {
        const { grant, by, supersedes } = judgement;
        this.#grants.use(judgement, seq);
        if (supersedes !== undefined) this.#supersede(supersedes, seq);
        const persons = { needs: by.length, has: by.length };
        return { ...noApproval, ...persons, id: grantId(grant), status: "granted", use_by: grant.until, next: "none" };
      }
      case "denied":
      case "closed":
        return { ...this.#answer(judgement.approval, false, "none"), status: statusAt(judgement.approval, this.#at) };
      case "capped":
        return { ...noApproval, status: "capped", next: "retry" };
      default:
        return judgement satisfies never;
    }
  }

  #isReady(approval: Approval): boolean {
    return statusAt(approval, this.#at) === "approved" && this.quorum(approval).isMet;
  }

  #supersede(old: Approval, by: number): void {
    this.#pairs.push([old.row, by]);
    this.#closeLater(old, "superseded");
  }

  /** The row of the act comes after the batch's checks, but no later check of the batch may meet the approval. */
  #closeLater(approval: Approval, status: "superseded" | "used"): void {
    this.#before.set(approval.row, approval);
    this.#end({ ...approval, status }, approval);
  }

  #answer(approval: Approval, isNew: boolean, next: AnswerApproval["next"]): AnswerApproval {
    return answerOf(approval, this.quorum(approval), this.#at, isNew, next);
  }

  /**
   * Records the acts of the batch behind its checks.
   *
   * @returns the approvals that changed
   */
  finish(): readonly Approval[] {
    const granted = this.#grants.uses;
    if (this.#uses.length + granted.length > 0) {
      const act: ApprovalAct = {
        act: "approval.use",
        ...(granted.length > 0 && { grants: granted }),
        uses: this.#uses,
      };
      this.#record(act, usesText(this.#uses.length, granted.length));
    }
    if (this.#pairs.length > 0) {
      const act: ApprovalAct = { act: "approval.supersede", pairs: this.#pairs };
      this.#record(act, "calls were asked again, and their new answers replace the approvals that waited");
    }
    const { changed } = this.#book;
    for (const approval of changed) this.#transaction.keepApproval(approval);
    return [...this.#expired, ...changed];
  }

  #record(act: ApprovalAct, sentence: string): void {
    recordAct(this.#transaction, this.#at, this.#policy, gateName, act, `Svc: ${sentence}`);
    const place = { seq: this.#transaction.head.seq, at: this.#at, by: gateName };
    const rows =
      act.act === "approval.use" ? this.#uses.map(({ approval }) => approval) : this.#pairs.map(([old]) => old);
    for (const row of rows) {
      const before = this.#before.get(row);
      const after = before && applyAct(before, act, place);
      if (after === undefined) throw new Fault(`the approval of row ${row} cannot end as its state says`);
      this.#book.put(after);
    }
  }
}

const nothingOwn = { approval: undefined, holds: [] };

const noApproval = { id: null, new: false, decide_by: null, use_by: null, needs: 0, has: 0 };

/** Counts the votes of an approval with the keys, persons and groups of now. */
export function quorumNow(
  approval: DecidedByPersons & Pick<Approval, "votes">,
  deciders: Deciders,
  { policySet }: ActivePolicy,
  now: number,
): Quorum {
  const { self } = policySet.approvals;
  return quorumOf(approval.asking.needs, approval.votes, (vote) => {
    const voter = deciders.voter(vote.key, now);
    return voter !== undefined && !self && isOwnCall(voter, approval, deciders) ? undefined : voter;
  });
}

/** The member `approval` of an answer about an open approval. */
export function answerOf(
  approval: Approval,
  { needs, has }: Quorum,
  at: number,
  isNew: boolean,
  next: AnswerApproval["next"],
): AnswerApproval {
  return {
    id: approvalId(approval.row, approval.hash),
    status: statusAt(approval, at),
    new: isNew,
    decide_by: approval.asking.decide_by,
    use_by: approval.useBy,
    needs,
    has,
    next,
  };
}

/** Appends the row of an act about approvals. */
export function recordAct(
  transaction: AppendTransaction,
  at: number,
  { contract, mode }: Pick<ActivePolicy, "contract" | "mode">,
  by: string,
  act: ApprovalAct,
  reason: string,
): void {
  transaction.change({ act: act.act, at, body: actBody(act), by, contract, mode, reason });
}

/** Ends all approvals whose time is over. @returns them afterwards */
export async function endDue(timed: TimedTransaction, policy: ActivePolicy): Promise<readonly Approval[]> {
  return expire(timed, policy, await timed.transaction.dueApprovals(timed.at));
}

/**
 * Ends the approvals whose time is over with one row, and what they hold with them.
 *
 * @returns them afterwards
 */
export async function expire(
  { transaction, at }: { readonly transaction: AppendTransaction; readonly at: number },
  policy: ActivePolicy,
  due: readonly Approval[],
): Promise<readonly Approval[]> {
  if (due.length === 0) return [];
  const rows = due.map(({ row }) => row).toSorted((a, b) => a - b);
  const { holds } = await transaction.approvals({ attaches: [], rows, keys: [], at });
  const held = Map.groupBy(holds, ({ seq }) => seq);
  const act: ApprovalAct = { act: "approval.expire", rows };
  const reason = due.length === 1 ? "Svc: an approval expired" : `Svc: ${due.length} approvals expired`;
  recordAct(transaction, at, policy, gateName, act, reason);
  return due.map((approval) => {
    const after = applyAct(approval, act, { seq: transaction.head.seq, at, by: gateName });
    if (after === undefined) throw new Fault(`the approval of row ${approval.row} cannot end as its state says`);
    transaction.release(after.row, held.get(after.row) ?? []);
    transaction.keepApproval(after);
    return after;
  });
}

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

/** @param own the row of the call's own approval, if the amounts that it holds were left out */
function outcomeOf(
  judgement: Judgement,
  asking: Asking | undefined,
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
    ...(how === "grant" && { grant: judgement.grant.row, causes: asking?.causes ?? {} }),
  };
  return { asked, ...(how === "opened" && asking !== undefined && { approval: asking as unknown as Canonical }) };
}

type FoundApprovals = Awaited<ReturnType<AppendTransaction["approvals"]>>;

/**
 * Folds approvals from their rows again before they are used. The table only says where to look.
 *
 * @param read what the look-up of the approvals read in this transaction
 */
export function requireRows(approvals: readonly Approval[], read: Pick<FoundApprovals, "kept" | "votes">): void {
  const rows = new Map([...read.kept.map(({ row }) => row), ...read.votes].map((row) => [row.seq, row]));
  for (const approval of approvals) {
    const numbers = [approval.row, ...approval.votes.map(({ row }) => row)];
    const folded = foldApproval(numbers.flatMap((row) => rows.get(row) ?? []));
    const isSame = folded !== undefined && boundText(folded) === boundText(approval);
    if (!isSame)
      throw new Fault(`the approval of row ${approval.row} is not what its rows say: restore the ledger from a backup`);
  }
}

/** Everything about an approval but how often it was asked. */
function boundText(approval: Approval): string {
  return approvalText({ ...approval, asked: 0, own: [], changed: 0 });
}

function sums(entries: readonly (readonly [name: string, count: number])[]): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const [name, count] of entries) found.set(name, (found.get(name) ?? 0) + count);
  return found;
}
