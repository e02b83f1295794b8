import {
  approvalId,
  coveredAmounts,
  grantId,
  statusAt,
  readApprovalId,
  withUse,
  type Approval,
  type Grant,
  type GrantJson,
  type GrantBody,
  type GrantForm,
  type Quorum,
  type Voter,
} from "../../../../core/src/approvals/mod.ts";
import {
  foldApproval,
  readGrantable,
  readJudgement,
  grantRows,
  type StoredRow,
} from "../../../../core/src/record/entry/mod.ts";
import type { Ledger } from "../../ledger/mod.ts";
import { bad, good, quote, refuse, type Canonical, type Refusal, type Result } from "../../../../core/src/wire/mod.ts";
import type { Exclusive, TimedTransaction } from "../policy/active-ledger.ts";
import type { ActivePolicy } from "../policy/active-policy.ts";
import { quorumNow } from "./acts.ts";
import { decidedGrant, voterFor, type Deciders } from "./deciders.ts";
import { freeMembers, grantBody, requireRoom, shownWidths, type GrantRequest } from "./grants.ts";

/** A grant as a person sees it. */
export interface ShownGrant {
  readonly grant: Grant;
  readonly quorum: Quorum;
  /** The row that asked for the call that it was made from; undefined if there is none. */
  readonly source: StoredRow | undefined;
}

export interface GrantActResult {
  readonly grant: Grant;
  readonly quorum: Quorum;
  /** Undefined if the same person has decided so before. */
  readonly receipt: { readonly seq: number; readonly hash: string } | undefined;
}

/** How many of the last calls of the key and the tool a grant would have let through. */
export interface GrantPreview {
  readonly covered: readonly number[];
  readonly of: number;
}

/** Work that takes turns with other work. */
interface InSlices {
  run<Value>(work: () => Promise<Value>): Promise<Value>;
  /** Lets others go on, if that is due. Within `run` only. */
  next(): Promise<void> | undefined;
}

export interface GrantDeskOptions {
  readonly ledger: Pick<Ledger, "head" | "keyDigest" | "rows" | "standing">;
  readonly deciders: Deciders;
  readonly policy: () => ActivePolicy;
  readonly exclusive: Exclusive;
}

const previewMax = 200;
/** How many of the last rows a preview reads at most, because the calls of a key may be rare. */
const previewRowsMax = 100_000;

/** Where people make and end grants on one ledger. */
export class GrantDesk {
  readonly #options: GrantDeskOptions;

  constructor(options: GrantDeskOptions) {
    this.#options = options;
  }

  /** Yields the grants in force, and those that need more people. */
  async *list(at: number): AsyncGenerator<ShownGrant> {
    const { grants } = await this.#options.ledger.standing.now();
    for (const grant of grants) if (at < grant.until) yield this.#toShownGrant(grant, at);
  }

  /** One of them, by its row. */
  async find(row: number, at: number): Promise<ShownGrant | undefined> {
    const { grants } = await this.#options.ledger.standing.now();
    const found = grants.find((grant) => grant.row === row && at < grant.until);
    return found && this.#toShownGrant(found, at);
  }

  async #toShownGrant(grant: Grant, at: number): Promise<ShownGrant> {
    const [source] = await this.#options.ledger.rows.rowsAt([grant.source]);
    return { grant, quorum: this.#quorum(grant, at), source };
  }

  #quorum(grant: Grant, now: number): Quorum {
    const { deciders, policy } = this.#options;
    return quorumNow(decidedGrant(grant, grant, now), deciders, policy(), now);
  }

  /**
   * Makes a grant from a call that waits for a person, or that a person let through.
   *
   * @param key the name of the person's key
   */
  create(key: string, { id, hash }: GrantSource, wanted: GrantRequest): Promise<Result<GrantActResult, Refusal>> {
    return this.#act(async (timed) => {
      const body = await this.#bodyOf(timed, key, { id, hash }, wanted);
      return body.ok ? good(createGrant(timed, this.#options.policy(), key, body.value)) : body;
    });
  }

  /**
   * Says what a grant would have let through. It writes nothing.
   *
   * @param read reads the calls in a turn of its own
   */
  async preview(
    key: string,
    from: GrantSource,
    wanted: GrantRequest,
    read: InSlices,
  ): Promise<Result<GrantPreview, Refusal>> {
    const body = await this.#options.exclusive((timed) => this.#bodyOf(timed, key, from, wanted));
    return body.ok ? good(await read.run(() => this.#computePreview(body.value, read))) : body;
  }

  async #bodyOf(
    timed: TimedTransaction,
    key: string,
    { id, hash }: GrantSource,
    wanted: GrantRequest,
  ): Promise<Result<GrantBody, Refusal>> {
    const { transaction, at } = timed;
    await this.#options.deciders.refresh();
    const row = readApprovalId(id)?.row ?? 0;
    const { approvals, kept } = await transaction.approvals({ attaches: [], rows: [row], keys: [], at });
    const [approval] = approvals;
    if (approval === undefined || id !== approvalId(approval.row, approval.hash))
      return bad(refuse("not-found", noSuchApproval));
    const voter = voterFor(approval, { key, at, isYes: true }, this.#options);
    if (!voter.ok) return voter;
    if (hash !== approval.hash) return bad(otherHash);
    const status = statusAt(approval, at);
    if (!["pending", "approved", "used"].includes(status))
      return bad(
        refuse("grant-refused", `the approval is ${status}: make the grant from a call that waits or was approved`),
      );
    const opening = kept.find((each) => each.row.seq === row)?.row as StoredRow;
    const { person } = voter.value;
    return grantBodyIn(timed, { approval, row: opening, person }, wanted, this.#options.policy());
  }

  async #computePreview(body: GrantBody, read: InSlices): Promise<GrantPreview> {
    const { ledger } = this.#options;
    const { key, tool } = body;
    const rows: StoredRow[] = [];
    const from = Math.max(1, ledger.head.seq - previewRowsMax);
    const query = { before: Number.MAX_SAFE_INTEGER, from, limit: previewMax, checks: true, tool };
    for await (const slice of ledger.rows.find({ ...query, leafHas: [`"key":${JSON.stringify(key)}`] })) {
      rows.push(...slice);
      await read.next();
    }
    const repeated = rows.flatMap(({ evidence }) => readJudgement(evidence)?.approval ?? []);
    const [source, ...first] = await ledger.rows.rowsAt([...new Set([body.source, ...repeated])]);
    const digest = (text: string): string => ledger.keyDigest(text);
    const origin = source && grantRows.sourceCall(source, digest);
    const opened = new Map([source, ...first].flatMap((row) => (row === undefined ? [] : [[row.seq, row] as const])));
    let grant: Grant = { ...previewed, ...body, until: Number.MAX_SAFE_INTEGER };
    const covered: number[] = [];
    for (const row of rows.toReversed()) {
      const opening = opened.get(readJudgement(row.evidence)?.approval ?? 0);
      const asking = readGrantable(row.evidence) ?? readGrantable(opening?.evidence ?? "");
      const call = grantRows.grantableCall(row, digest, asking);
      const amounts = call && origin && coveredAmounts(grant, call, origin);
      if (amounts === undefined) continue;
      grant = withUse(grant, amounts);
      covered.push(row.seq);
      await read.next();
    }
    return { covered, of: rows.length };
  }

  /** Adds another person's yes to a grant. */
  approve(key: string, id: string, hash: string): Promise<Result<GrantActResult, Refusal>> {
    return this.#decide(key, id, true, (grant, voter, timed) => {
      if (hash !== grant.hash) return bad(otherHash);
      if (grant.votes.some(({ person }) => person === voter.person)) return good(undefined);
      const body = { grant: grant.row, person: voter.person };
      const reason = `${voter.person} approved the grant of row ${grant.row}`;
      return good(this.#record(timed, { act: "grant.approve", by: key, body, reason }));
    });
  }

  revoke(key: string, id: string): Promise<Result<GrantActResult, Refusal>> {
    return this.#decide(key, id, false, (grant, { person }, timed) => {
      const reason = `${person} revoked the grant of row ${grant.row}`;
      return good(this.#record(timed, { act: "grant.revoke", by: key, body: { grant: grant.row, person }, reason }));
    });
  }

  #record(timed: TimedTransaction, act: GrantChange): true {
    recordGrantAct(timed, this.#options.policy(), act);
    return true;
  }

  #decide(
    key: string,
    id: string,
    isYes: boolean,
    decide: (grant: Grant, voter: Voter, timed: TimedTransaction) => Result<true | undefined, Refusal>,
  ): Promise<Result<GrantActResult, Refusal>> {
    return this.#act(async (timed) => {
      const { transaction, at } = timed;
      await this.#options.deciders.refresh();
      const grant = transaction.grants.find((each) => grantId(each) === id && at < each.until);
      if (grant === undefined) return bad(refuse("not-found", "no grant in force has this id"));
      const voter = voterFor(decidedGrant(grant, grant, at), { key, at, isYes }, this.#options);
      if (!voter.ok) return voter;
      const decided = decide(grant, voter.value, timed);
      return decided.ok ? good(transaction.grants.find(({ row }) => row === grant.row) ?? grant) : decided;
    });
  }

  /** Runs an act in a transaction of its own. It must append at most one row. */
  async #act(
    work: (timed: TimedTransaction) => Promise<Result<Grant, Refusal>>,
  ): Promise<Result<GrantActResult, Refusal>> {
    return this.#options.exclusive(async (timed) => {
      const { transaction } = timed;
      const before = transaction.head.seq;
      const grant = await work(timed);
      if (!grant.ok) return grant;
      const { seq, hash } = transaction.head;
      const receipt = seq > before ? { seq, hash } : undefined;
      return good({ grant: grant.value, quorum: this.#quorum(grant.value, timed.at), receipt });
    });
  }
}

/** The call that a grant is made from. */
export interface GrantSource {
  readonly id: string;
  /** The hash of the row that the person was shown. */
  readonly hash: string;
}

const noSuchApproval = "no approval has this id";
const otherHash = refuse(
  "approval-changed",
  "the hash is not that of the row: load it again, and decide what it shows",
);
const previewed = { row: 0, hash: "", at: 0, votes: [], used: 0, spent: {} };

/**
 * The body of a grant, if the rules and the ledger let a person make it.
 *
 * @param row the row that asked for the approval's call
 */
export function grantBodyIn(
  { transaction, at }: TimedTransaction,
  { approval, row, person }: { readonly approval: Approval; readonly row: StoredRow; readonly person: string },
  wanted: GrantRequest,
  { contract, policySet }: Pick<ActivePolicy, "contract" | "policySet">,
): Result<GrantBody, Refusal> {
  const room = requireRoom(transaction.grants, at);
  if (!room.ok) return room;
  const routes = policySet.tools.get(approval.tool)?.routes ?? [];
  const digest = (text: string): string => transaction.digest(text);
  return grantBody({ approval, row }, wanted, { at, person, contract, routes, digest });
}

/** Appends the row that makes a grant. */
export function createGrant(timed: TimedTransaction, policy: ActivePolicy, by: string, body: GrantBody): Grant {
  const { key, person, source, tool } = body;
  const reason = `${person} granted calls of ${quote(tool)} by ${key} like that of row ${source}`;
  recordGrantAct(timed, policy, { act: "grant.create", by, body: body as unknown as Canonical, reason });
  return timed.transaction.grants.at(-1) as Grant;
}

interface GrantChange {
  readonly act: "grant.approve" | "grant.create" | "grant.revoke";
  /** The name of the person's key. */
  readonly by: string;
  readonly body: Canonical;
  readonly reason: string;
}

function recordGrantAct(
  { transaction, at }: TimedTransaction,
  { contract, mode }: ActivePolicy,
  act: GrantChange,
): void {
  transaction.change({ ...act, at, contract, mode, reason: `Svc: ${act.reason}` });
}

/** The form of a grant in words, read from the row that it was made from. */
function shownForm({ member, width }: GrantForm, source: StoredRow | undefined): NonNullable<GrantJson["form"]> {
  const offer = source && foldApproval([source])?.asking.grants?.form;
  const widths = offer && shownWidths(offer, grantRows.recordedCall(source));
  const shown = widths?.find(({ name }) => name === width);
  return { member, width, shown: shown?.shown ?? null };
}

/** A grant as GET /grants shows it. */
export function grantJson({ grant, quorum, source }: ShownGrant): GrantJson {
  const call = source && grantRows.recordedCall(source);
  const { least = [], most = [], free = [], form } = grant;
  const pins = Object.keys(grant.pins);
  const sums = Object.keys(grant.amounts);
  return {
    id: grantId(grant),
    status: quorum.isMet ? "active" : "pending",
    receipt: grant.row,
    hash: grant.hash,
    at: grant.at,
    source: grant.source,
    key: grant.key,
    tool_name: grant.tool,
    any_session: grant.place === null,
    rules: Object.keys(grant.causes),
    pins,
    most,
    least,
    free: call === undefined ? [] : freeMembers(call, { pins, sums, most, least, free, form }),
    ...(form !== undefined && { form: shownForm(form, source) }),
    amounts: grant.amounts,
    spent: grant.spent,
    uses: grant.uses,
    used: grant.used,
    until: grant.until,
    needs: quorum.needs,
    has: quorum.has,
    decisions: grant.votes.map(({ person, at, row }) => ({ person, at, receipt: row })),
  };
}
