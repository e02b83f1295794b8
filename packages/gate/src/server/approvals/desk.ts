import {
  approvalId,
  isOpen,
  mayDecide,
  sessionToolName,
  readApprovalId,
  statusAt,
  withVote,
  type Approval,
  type ApprovalJson,
  type Denial,
  type Grant,
  type Quorum,
  type Voter,
} from "../../../../core/src/approvals/mod.ts";
import type { StoredRow } from "../../../../core/src/record/entry/mod.ts";
import type { ApprovalQuery } from "../../ledger/mod.ts";
import { bad, good, refuse, type Refusal, type Result } from "../../../../core/src/wire/mod.ts";
import type { ActivePolicy } from "../policy/active-policy.ts";
import type { Exclusive, TimedTransaction } from "../policy/active-ledger.ts";
import { endDue, enact, groupReservations, quorumNow, requireRows, type Reservations, type OwnedAct } from "./acts.ts";
import { notAnApprover, voterFor, type Deciders } from "./deciders.ts";
import { createGrant, grantBodyIn } from "./grant-desk.ts";
import type { GrantRequest } from "./grants.ts";
import { ApprovalWaits, type ApprovalSource } from "./waits.ts";

/** What a person decides about one approval. */
export interface DecisionRequest {
  readonly id: string;
  /** The hash of the row that the person was shown. */
  readonly hash: string;
  readonly decision: "approve" | "deny";
  readonly comment: string;
  /** Milliseconds since the epoch: until then a denial is in force; undefined means 24 hours. */
  readonly until?: number | undefined;
  readonly scope?: Denial["scope"] | undefined;
  /** A grant that the person makes from the call with an approval. */
  readonly grant?: GrantRequest | undefined;
}

export interface VoteResult {
  readonly approval: Approval;
  readonly quorum: Quorum;
  /** The row of the decision; undefined if the same person has decided so before. */
  readonly receipt: { readonly seq: number; readonly hash: string } | undefined;
  /** The grant that was made with it. */
  readonly grant?: Grant | undefined;
}

export interface DeskOptions {
  readonly ledger: ApprovalSource;
  readonly deciders: Deciders;
  readonly policy: () => ActivePolicy;
  /** Called for each approval that was approved or has ended, after its row is on disk. */
  readonly onChange?: ((approval: Approval) => void) | undefined;
  readonly exclusive: Exclusive;
}

const dayMs = 86_400_000;
/** Where people decide the calls of one ledger. Every decision is a row, in a transaction like that of a check. */
export class ApprovalDesk {
  readonly #options: DeskOptions;
  /** The requests that wait for a decision. */
  readonly waits: ApprovalWaits;

  constructor(options: DeskOptions) {
    this.#options = options;
    this.waits = new ApprovalWaits(options.ledger);
  }

  list(query: ApprovalQuery): Promise<readonly Approval[]> {
    return this.#options.ledger.tables.approvals(query);
  }

  /** Returns the approval with an id; undefined if there is none. */
  async find(id: string): Promise<Approval | undefined> {
    const parsed = readApprovalId(id);
    if (parsed === undefined) return undefined;
    const [found] = await this.list({ before: parsed.row + 1, limit: 1, rows: [parsed.row] });
    return found?.hash.startsWith(parsed.digits) === true ? found : undefined;
  }

  quorum(approval: Approval, at: number): Quorum {
    const { deciders, policy } = this.#options;
    return quorumNow(approval, deciders, policy(), at);
  }

  /** Returns true if a key may decide this approval. */
  mayDecide(key: string, approval: { readonly asking: Pick<Approval["asking"], "needs"> }, at: number): boolean {
    const voter = this.#options.deciders.voter(key, at);
    return voter !== undefined && mayDecide(approval.asking.needs, voter);
  }

  /** Whether a key may decide this approval, and if it may only deny it, why. */
  describeDecider(key: string, approval: Approval, at: number): Pick<ApprovalJson, "may_decide" | "only_deny"> {
    const yes = voterFor(approval, { key, at, isYes: true }, this.#options);
    if (yes.ok) return { may_decide: true };
    const { code, detail } = yes.problem;
    return code === "self-approval" ? { may_decide: true, only_deny: detail } : { may_decide: false };
  }

  /** Records the end of approvals whose time is over, as a batch of checks would do. */
  async endDue(): Promise<void> {
    const ended = await this.#options.exclusive(async (timed) => good(await endDue(timed, this.#options.policy())));
    if (ended.ok) this.announceChanges(ended.value);
  }

  /**
   * Records what a person decides about some approvals: all of it or nothing.
   *
   * @param key the name of the person's key
   */
  async decide(key: string, wanted: readonly DecisionRequest[]): Promise<Result<readonly VoteResult[], Refusal>> {
    const changed: Approval[] = [];
    const approved: Approval[] = [];
    const done = await this.#options.exclusive((timed) => this.#decideIn(timed, key, wanted, { changed, approved }));
    if (!done.ok) return done;
    for (const approval of approved) this.#options.onChange?.(approval);
    this.announceChanges(changed);
    return done;
  }

  /** @param into receives the approvals that change, and apart those that have the last vote that they need */
  async #decideIn(
    timed: TimedTransaction,
    key: string,
    wanted: readonly DecisionRequest[],
    into: { readonly changed: Approval[]; readonly approved: Approval[] },
  ): Promise<Result<readonly VoteResult[], Refusal>> {
    const { transaction, at } = timed;
    const { deciders, policy } = this.#options;
    await deciders.refresh();
    const open = await this.#read(timed, wanted);
    const decided: VoteResult[] = [];
    const stale: string[] = [];
    for (const each of wanted) {
      const approval = open.approvals.get(readApprovalId(each.id)?.row ?? 0);
      if (approval === undefined || !each.id.endsWith(approval.hash.slice(0, 32)))
        return bad(refuse("not-found", noSuchApproval));
      const judged = this.#judge(timed, approval, each, { key, isBatch: wanted.length > 1 });
      if (!judged.ok) {
        if (wanted.length === 1) return judged;
        stale.push(`${each.id}: ${judged.problem.detail}`);
        continue;
      }
      if (each.grant !== undefined && judged.value === undefined)
        return bad(refuse("grant-refused", "you have approved this call already: make the grant with POST /grants"));
      if (judged.value === undefined) {
        decided.push({ approval, quorum: this.quorum(approval, at), receipt: undefined });
        continue;
      }
      const [after = approval] = enact(timed, policy(), judged.value, {
        approvals: [approval],
        reservations: open.reservations,
      });
      into.changed.push(after);
      if (approval.status === "pending" && after.status === "approved") into.approved.push(after);
      const { seq, hash } = transaction.head;
      const grant = each.grant && this.#grant(timed, open, { approval, wanted: each.grant, key });
      if (grant?.ok === false) return grant;
      decided.push({ approval: after, quorum: this.quorum(after, at), receipt: { seq, hash }, grant: grant?.value });
    }
    if (stale.length > 0)
      return bad(
        refuse("approval-changed", `nothing was decided, because of ${stale.length} of them: ${stale.join("; ")}`),
      );
    return good(decided);
  }

  /** Makes a grant in the transaction that records the person's yes. */
  #grant(
    timed: TimedTransaction,
    { kept }: { readonly kept: readonly { readonly row: StoredRow }[] },
    { approval, wanted, key }: { readonly approval: Approval; readonly wanted: GrantRequest; readonly key: string },
  ): Result<Grant, Refusal> {
    const row = kept.find((each) => each.row.seq === approval.row)?.row as StoredRow;
    const { deciders, policy } = this.#options;
    const person = deciders.voter(key, timed.at)?.person ?? key;
    const body = grantBodyIn(timed, { approval, row, person }, wanted, policy());
    return body.ok ? good(createGrant(timed, policy(), key, body.value)) : body;
  }

  async #read(
    { transaction, at }: TimedTransaction,
    wanted: readonly Pick<DecisionRequest, "id">[],
  ): Promise<{
    readonly approvals: ReadonlyMap<number, Approval>;
    readonly reservations: Reservations;
    readonly kept: readonly { readonly row: StoredRow }[];
  }> {
    const rows = wanted.flatMap(({ id }) => readApprovalId(id)?.row ?? []);
    const found = await transaction.approvals({ attaches: [], rows: [...new Set(rows)], keys: [], at });
    const { approvals } = found;
    requireRows(approvals.filter(isOpen), found);
    return {
      approvals: new Map(approvals.map((approval) => [approval.row, approval])),
      reservations: groupReservations(found.reservations),
      kept: found.kept,
    };
  }

  /** @returns the act to record; undefined if the same person has decided so before */
  #judge(
    { transaction, at }: TimedTransaction,
    approval: Approval,
    wanted: DecisionRequest,
    { key, isBatch }: { readonly key: string; readonly isBatch: boolean },
  ): Result<OwnedAct | undefined, Refusal> {
    const isApproval = wanted.decision === "approve";
    const found = voterFor(approval, { key, at, isYes: isApproval }, this.#options);
    if (!found.ok) return found;
    const { isOwn, ...voter } = found.value;
    if (wanted.hash !== approval.hash)
      return bad(
        refuse(
          "approval-changed",
          "the hash is not that of the row that asked: load the approval again, and decide what it shows",
        ),
      );
    if (isBatch && !approval.asking.batch)
      return bad(refuse("invalid-request", "its rule does not let a person decide it together with others"));
    const status = statusAt(approval, at);
    if (isApproval && ["pending", "approved", "used"].includes(status) && this.#isAgain(approval, key, voter, at))
      return good(undefined);
    if (!isApproval && status === "denied" && approval.denial?.person === voter.person) return good(undefined);
    if (status !== "pending" && status !== "approved")
      return bad(refuse("approval-closed", `the approval is ${status} already: nothing was changed`));
    const { act, reason } = isApproval
      ? approve(approval, wanted, { key, at, ...voter }, (votes) => this.quorum({ ...approval, votes }, at))
      : deny(approval, wanted, voter, { at, digest: (text) => transaction.digest(text) });
    return good({ act: isOwn ? { ...act, self: true } : act, by: key, reason });
  }

  /**
   * True if the person has approved already, and another vote would change nothing. It changes something if the person's
   * first key does not count any more, or if the votes are enough only now, because a key is a day old.
   */
  #isAgain(approval: Approval, key: string, { person }: Voter, at: number): boolean {
    if (!approval.votes.some((vote) => vote.person === person)) return false;
    if (!isOpen(approval)) return true;
    // The vote keeps its position: of two votes that are one voice, another order could count the other one.
    const votes = approval.votes.map((vote) => (vote.person === person ? { ...vote, key } : vote));
    const again = this.quorum({ ...approval, votes }, at);
    const isEnoughNow = approval.status === "pending" && again.isMet;
    return !isEnoughNow && again.has <= this.quorum(approval, at).has;
  }

  /**
   * Cancels an open approval.
   *
   * @param isAsker whether the key asked; then the session must be that of the asking, unless every session may use it
   */
  async cancel(
    key: string,
    id: string,
    isAsker: boolean,
    session: string | null,
  ): Promise<Result<VoteResult, Refusal>> {
    const asker = isAsker ? { session } : undefined;
    const done = await this.#options.exclusive((timed) => this.#cancelIn(timed, key, id, asker));
    if (done.ok && done.value.receipt !== undefined) this.announceChanges([done.value.approval]);
    return done;
  }

  async #cancelIn(
    timed: TimedTransaction,
    key: string,
    id: string,
    asker: { readonly session: string | null } | undefined,
  ): Promise<Result<VoteResult, Refusal>> {
    const { transaction, at } = timed;
    await this.#options.deciders.refresh();
    const open = await this.#read(timed, [{ id }]);
    const approval = open.approvals.get(readApprovalId(id)?.row ?? 0);
    if (approval === undefined || id !== approvalId(approval.row, approval.hash))
      return bad(refuse("not-found", noSuchApproval));
    if (asker === undefined && !this.mayDecide(key, approval, at)) return bad(notAnApprover(key, approval.asking));
    const isOwn = approval.key === key && (approval.session === asker?.session || approval.asking.sessions === "any");
    if (asker !== undefined && !isOwn) return bad(refuse("not-found", noSuchApproval));
    const status = statusAt(approval, at);
    if (status === "cancelled") return good({ approval, quorum: this.quorum(approval, at), receipt: undefined });
    if (status !== "pending" && status !== "approved")
      return bad(refuse("approval-closed", `the approval is ${status} already: nothing was changed`));
    const act = {
      act: "approval.cancel",
      rows: [approval.row],
      why: asker === undefined ? "person" : "asker",
    } as const;
    const reason = `${key} cancelled the approval of row ${approval.row}`;
    const cancelled = { act, by: key, reason };
    const [after = approval] = enact(timed, this.#options.policy(), cancelled, {
      approvals: [approval],
      reservations: open.reservations,
    });
    const { seq, hash } = transaction.head;
    return good({ approval: after, quorum: this.quorum(after, at), receipt: { seq, hash } });
  }

  /** Tells waiters about approvals that have changed, after their rows are on disk. */
  announceChanges(approvals: readonly Approval[]): void {
    this.waits.wake(approvals.filter(({ status }) => status !== "pending"));
    for (const approval of approvals) if (!isOpen(approval)) this.#options.onChange?.(approval);
  }
}

const noSuchApproval = "no approval has this id";

function approve(
  { row, hash, asking, votes: before }: Approval,
  { comment }: DecisionRequest,
  { key, at, person, groups }: Voter & { readonly key: string; readonly at: number },
  quorumOf: (votes: Approval["votes"]) => Quorum,
): Omit<OwnedAct, "by"> {
  const { isMet, has, needs } = quorumOf(withVote(before, { row: 0, at, key, person, comment }));
  const use_by = isMet ? at + asking.use_within : null;
  const by = groups.filter((group) => asking.needs.some((need) => need.by?.includes(group)));
  const act = { act: "approval.approve", row, hash, person, by, comment, use_by } as const;
  const count = needs === 1 ? "" : ` (${has} of ${needs})`;
  return { act, reason: `${person} approved the call of row ${row}${count}` };
}

function deny(
  approval: Approval,
  { comment, until, scope = "call" }: DecisionRequest,
  { person }: Voter,
  { at, digest }: { readonly at: number; readonly digest: (text: string) => string },
): Omit<OwnedAct, "by"> {
  const { row, hash, asking } = approval;
  const { attach, binding, decide_by, needs, sessions, subject } = asking;
  const call = {
    attach,
    binding,
    decide_by,
    needs,
    place: digest(sessionToolName(approval)),
    ...(sessions !== undefined && { sessions }),
    ...(subject !== undefined && { subject }),
  };
  const act = { act: "approval.deny", row, hash, person, comment, until: until ?? at + dayMs, scope, call } as const;
  return { act, reason: `${person} denied the call of row ${row}` };
}
