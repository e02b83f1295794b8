import { canonical, type Canonical, type OpenWord } from "../wire/mod.ts";

/**
 * The states of an approval. `pending` waits for a person, `approved` for the call to be sent again. The others are
 * final.
 */
export const statuses = ["pending", "approved", "used", "denied", "expired", "cancelled", "superseded"] as const;
export type ApprovalStatus = (typeof statuses)[number];

/** The people that an approval needs: `of` people of the groups `by`; null means any person. */
export interface Need {
  readonly by: readonly string[] | null;
  readonly of: number;
}

/** What a grant may be at most, by the rules because of which a person decides. Part of an asking. */
export interface GrantOffer {
  /** Milliseconds from the grant on. */
  readonly at_most: number;
  readonly uses: number;
  /** The members and facts that each call must share with the call that asked, such as `input.payee`. */
  readonly pins: readonly string[];
  /** The numbers that counters add up: none may be higher than in the call that asked. */
  readonly sums: readonly string[];
  /** Other numbers that the rules read: each call may have at most what the call that asked has. */
  readonly most?: readonly string[];
  /** Numbers that the rules read: each call must have at least what the call that asked has. */
  readonly least?: readonly string[];
  /**
   * The facts that the rules or their reasons read and that may differ in each call, and the members of the input that the
   * contract does not bind.
   */
  readonly free?: readonly string[];
  /** Present if later calls may have another command line of the same form. */
  readonly form?: FormOffer;
}

/** How far the command line of later calls may differ. */
export interface FormOffer {
  /** The member with the command line, such as `input.command`. */
  readonly member: string;
  /** The narrowest first: `same` is always there. */
  readonly widths: readonly OfferedForm[];
}

/** A width of a command line, without its text. */
export interface OfferedForm {
  /** `same`, `texts` or `files`. */
  readonly name: string;
  /** A keyed digest of the form, in hex. */
  readonly digest: string;
  /** The words that may differ. */
  readonly open: readonly OpenWord[];
}

/** The digests of a call's forms, by their widths. */
export type FormDigests = Readonly<Record<string, string>>;

export function formDigests({ grants }: Pick<ApprovalRequest, "grants">): FormDigests {
  return Object.fromEntries((grants?.form?.widths ?? []).map(({ name, digest }) => [name, digest]));
}

/** What a call asked and what the person is shown: the member `approval` of the part `outcome` of its row. */
export interface ApprovalRequest {
  /** Keyed digests of the call, 64 hex digits. */
  readonly attach: string;
  readonly binding: string;
  /** Of the facts under `subject`; absent if there are none. */
  readonly subject?: string;
  /** Present if a call of any session of the key may use the approval. Then the binding is one without a session. */
  readonly sessions?: "any";
  readonly batch: boolean;
  /** The rules because of which a person must decide, each with the SHA-256 of its meaning. */
  readonly causes: Readonly<Record<string, string>>;
  /** Milliseconds since the epoch. */
  readonly decide_by: number;
  /** The facts that the causes read and that may differ when the approval is used; absent if there are none. */
  readonly free?: readonly string[];
  /** Present if all causes let a person grant later calls too. */
  readonly grants?: GrantOffer;
  /** Present if the person may approve it whose agent asks. */
  readonly self?: true;
  /** Milliseconds after the last vote. */
  readonly use_within: number;
  readonly needs: readonly Need[];
  /** The facts and counters that must stay as they are, with their texts; null if a fact is absent. */
  readonly pins: Readonly<Record<string, string | null>>;
  /** The values that the causes read. */
  readonly shown: CauseValues;
}

export interface CauseValues {
  /** The values of counters, by a digest of the counter and its key. */
  readonly counters: Readonly<Record<string, string>>;
  /**
   * The facts: the text of a number and how far it may move, or a keyed digest of any other value, which must be the same.
   * Null for an absent one.
   */
  readonly facts: Readonly<Record<string, readonly [text: string | null, drift: string | null]>>;
}

/** An amount that a call added to a counter. Counter and key are digests. */
export interface OwnAmount {
  readonly counter: string;
  readonly key: string;
  readonly at: number;
  readonly amount: string;
}

/** A person's yes. */
export interface Vote {
  /** The row of the vote. */
  readonly row: number;
  readonly at: number;
  readonly key: string;
  readonly person: string;
  readonly comment: string;
}

/** What a denial keeps of its call, so that it also applies after the call is erased. */
export interface DeniedCall extends Pick<
  ApprovalRequest,
  "attach" | "binding" | "decide_by" | "needs" | "sessions" | "subject"
> {
  /** A keyed digest of its key, session and tool. */
  readonly place: string;
}

export interface Denial {
  /** Absent in old denials, which end with an erasure. */
  readonly call?: DeniedCall;
  readonly row: number;
  readonly at: number;
  readonly person: string;
  readonly comment: string;
  /** Milliseconds since the epoch: until then the denial applies. */
  readonly until: number;
  /** What else is denied: this tool in this session, or this rule for this key. */
  readonly scope: "call" | "tool" | "rule";
}

/** One approval: the fold of the row that asked and of the later rows about it. */
export interface Approval {
  /** The row that asked. */
  readonly row: number;
  readonly hash: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly key: string;
  readonly session: string | null;
  readonly tool: string;
  readonly rule: string;
  readonly asking: ApprovalRequest;
  readonly status: ApprovalStatus;
  /** How often the call was sent while the approval was open. */
  readonly asked: number;
  /** What its asking and the repeats added to counters; the latest 100 rows of repeats. */
  readonly own: readonly OwnAmount[];
  readonly votes: readonly Vote[];
  /** Milliseconds since the epoch; null until the last vote. */
  readonly useBy: number | null;
  readonly denial: Denial | null;
  /** The row that ended it; null while it is open. */
  readonly closed: number | null;
  /** The row that replaced it: its own approval did so, or a grant let that call through. */
  readonly successor: number | null;
  /** The last row about it. */
  readonly changed: number;
}

/** The row of a check that opened an approval. */
export interface OpeningRow extends Pick<Approval, "at" | "hash" | "key" | "row" | "rule" | "session" | "tool"> {
  readonly asking: ApprovalRequest;
  readonly own: readonly OwnAmount[];
}

export function openApproval({ own, ...opening }: OpeningRow): Approval {
  return {
    ...opening,
    status: "pending",
    asked: 1,
    own,
    votes: [],
    useBy: null,
    denial: null,
    closed: null,
    successor: null,
    changed: opening.row,
  };
}

const ownMax = 400;

/** Adds a repeat of the call, which attached to the approval. */
export function attach(approval: Approval, row: number, own: readonly OwnAmount[]): Approval {
  return { ...approval, asked: approval.asked + 1, own: [...approval.own, ...own].slice(-ownMax), changed: row };
}

/** A check that a grant let through. */
export type GrantUse = {
  /** The row of the grant. */
  readonly grant: number;
  /** The row of the check. */
  readonly row: number;
  readonly amounts: Readonly<Record<string, string>>;
};

/** The administrative events about approvals. */
export type ApprovalAct =
  | {
      readonly act: "approval.approve";
      readonly row: number;
      readonly hash: string;
      readonly person: string;
      /** The person's groups that count. */
      readonly by: readonly string[];
      readonly comment: string;
      /** Null while more people are needed. */
      readonly use_by: number | null;
      readonly self?: SelfMark;
    }
  | {
      readonly act: "approval.deny";
      readonly row: number;
      readonly hash: string;
      readonly person: string;
      readonly comment: string;
      readonly until: number;
      readonly scope: Denial["scope"];
      readonly call?: DeniedCall;
      readonly self?: SelfMark;
    }
  | { readonly act: "approval.cancel"; readonly rows: readonly number[]; readonly why: CancelReason }
  | { readonly act: "approval.expire"; readonly rows: readonly number[] }
  | {
      readonly act: "approval.use";
      /** The checks that grants let through; absent if there are none. */
      readonly grants?: readonly GrantUse[];
      readonly uses: readonly { readonly approval: number; readonly needed: boolean; readonly row: number }[];
    }
  | { readonly act: "approval.supersede"; readonly pairs: readonly (readonly [old: number, by: number])[] }
  | { readonly act: "stop.set"; readonly ends: readonly number[]; readonly reopens: readonly number[] };

/** Present if the asker's own person decides, or the person who made the decider's key within a day. */
type SelfMark = true;

export type CancelReason = "asker" | "erased" | "person";

/** The acts that change approvals. A gate that meets another act under `approval.` must not serve. */
export const approvalActs: readonly string[] = [
  "approval.approve",
  "approval.deny",
  "approval.cancel",
  "approval.expire",
  "approval.use",
  "approval.supersede",
  "stop.set",
] satisfies readonly ApprovalAct["act"][];

export function listChangedRows(act: ApprovalAct): readonly number[] {
  if (act.act === "approval.expire" || act.act === "approval.cancel") return act.rows;
  if (act.act === "stop.set") return [...act.ends, ...act.reopens];
  if (act.act === "approval.use") return act.uses.map(({ approval }) => approval);
  return act.act === "approval.supersede" ? act.pairs.map(([old]) => old) : [act.row];
}

/** Where and when an act was recorded. */
export interface ActRow {
  readonly seq: number;
  readonly at: number;
  /** The name of the key. */
  readonly by: string;
}

/**
 * The approval after an act that names it.
 *
 * @returns undefined if the act is not lawful in the approval's state
 */
export function applyAct(approval: Approval, act: ApprovalAct, { seq, at, by }: ActRow): Approval | undefined {
  const { status } = approval;
  if (status !== "pending" && status !== "approved") return undefined;
  const closed = { closed: seq, changed: seq };
  switch (act.act) {
    case "approval.approve": {
      if (act.hash !== approval.hash) return undefined;
      const { person, comment } = act;
      const votes = withVote(approval.votes, { row: seq, at, key: by, person, comment });
      const isApproved = act.use_by !== null;
      return { ...approval, votes, useBy: act.use_by, status: isApproved ? "approved" : "pending", changed: seq };
    }
    case "approval.deny": {
      const isOfCall = act.call === undefined || act.call.attach === approval.asking.attach;
      if (act.hash !== approval.hash || !isOfCall) return undefined;
      return { ...approval, ...closed, status: "denied", denial: denialOf(act, { seq, at }) };
    }
    case "approval.cancel":
      return cancelledBy(approval, seq);
    case "approval.expire":
      return at < endsAt(approval) ? undefined : { ...approval, ...closed, status: "expired" };
    case "approval.use": {
      const isInTime = status === "approved" && approval.useBy !== null && at < approval.useBy;
      return isInTime ? { ...approval, ...closed, status: "used" } : undefined;
    }
    case "approval.supersede": {
      const successor = act.pairs.find(([old]) => old === approval.row)?.[1] ?? null;
      return { ...approval, ...closed, status: "superseded", successor };
    }
    case "stop.set":
      return act.ends.includes(approval.row) ? cancelledBy(approval, seq) : reopenedBy(approval, seq);
    default:
      return act satisfies never;
  }
}

/** The denial that an act makes. */
export function denialOf(
  { call, comment, person, scope, until }: Extract<ApprovalAct, { readonly act: "approval.deny" }>,
  { seq, at }: Pick<ActRow, "at" | "seq">,
): Denial {
  return { row: seq, at, person, comment, until, scope, ...(call !== undefined && { call }) };
}

/** The votes after one more. It replaces the vote of the same person. */
export function withVote(votes: readonly Vote[], vote: Vote): readonly Vote[] {
  return [...votes.filter(({ person }) => person !== vote.person), vote];
}

/** An open approval after a row that cancels it. */
export function cancelledBy(approval: Approval, row: number): Approval {
  return { ...approval, status: "cancelled", closed: row, changed: row };
}

/** An open approval after a row that ends its votes. */
export function reopenedBy(approval: Approval, row: number): Approval {
  return { ...approval, status: "pending", votes: [], useBy: null, changed: row };
}

/** When an open approval ends if nothing else happens; milliseconds since the epoch. */
export function endsAt({ status, asking, useBy }: Approval): number {
  return status === "approved" && useBy !== null ? useBy : asking.decide_by;
}

/** The approval's status at a moment: its time may have ended before a row says so. */
export function statusAt(approval: Approval, at: number): ApprovalStatus {
  return isOpen(approval) && at >= endsAt(approval) ? "expired" : approval.status;
}

/** True if a person may decide the approval, or a call may use it. A store keeps the same statuses as texts. */
export function isOpen({ status }: { readonly status: string }): boolean {
  return status === "pending" || status === "approved";
}

/** An approval as one text, the same for the same rows. */
export function approvalText(approval: Approval): string {
  return canonical(approval as unknown as Canonical);
}

const progress = ["status", "asked", "own", "votes", "useBy", "denial", "closed", "successor", "changed"] as const;

/** What became of an approval after the row that asked, as its table keeps it. It contains no value from the call. */
export function progressText(approval: Approval): string {
  return canonical(Object.fromEntries(progress.map((name) => [name, approval[name]])) as unknown as Canonical);
}

/** Returns the approval of the row that asked, with what became of it. A table may have any text, and changes nothing else. */
export function withProgress(opened: Approval, text: string): Approval {
  const read = Object(JSON.parse(text)) as Partial<Approval>;
  const known = progress.filter((name) => name in read).map((name) => [name, read[name]]);
  return { ...opened, ...(Object.fromEntries(known) as Partial<Approval>) };
}

/** Reads the body of an administrative event about approvals. @throws {SyntaxError} if it is damaged */
export function readAct(act: string, body: string): ApprovalAct | undefined {
  return approvalActs.includes(act) ? ({ ...(JSON.parse(body) as object), act } as ApprovalAct) : undefined;
}

/** The body of an act's row. */
export function actBody({ act: _act, ...body }: ApprovalAct): Canonical {
  return body as unknown as Canonical;
}
