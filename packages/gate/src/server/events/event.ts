import { approvalId, listChangedRows, type ApprovalAct, type Need } from "../../../../core/src/approvals/mod.ts";
import { readResume } from "../../ledger/mod.ts";
import {
  actOf,
  foldApproval,
  leafHash,
  parseLeaf,
  type Leaf,
  type StoredRow,
} from "../../../../core/src/record/entry/mod.ts";

export const eventTypes = [
  "approval.opened",
  "approval.decided",
  "approval.expiring",
  "approval.closed",
  "grant.created",
  "grant.ended",
  "stop.set",
  "stop.lifted",
  "keys.changed",
  "contract.changed",
  "ledger.broken",
] as const;
export type EventType = (typeof eventTypes)[number];

/** The events of administrative acts. The acts about approvals are apart, because one of them may end many approvals. */
const byAct: Readonly<Record<string, EventType>> = {
  "grant.create": "grant.created",
  "grant.revoke": "grant.ended",
  "stop.set": "stop.set",
  "stop.lift": "stop.lifted",
  "keys.create": "keys.changed",
  "keys.rotate": "keys.changed",
  "keys.revoke": "keys.changed",
  "keys.update": "keys.changed",
  "keys.groups": "keys.changed",
  "persons.add": "keys.changed",
  reload: "contract.changed",
};

/** A position among the events of a ledger: after the event `index` of a row. */
export interface FeedPosition {
  readonly row: number;
  /** Infinity is after all events of the row. */
  readonly index: number;
}

/** An event: a fact that a row of the ledger records. */
export interface LedgerEvent {
  /** `SEQ-N-HASH`: the row, the position among its events, and the first 16 digits of the row's hash. */
  readonly id: string;
  readonly type: EventType;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Null if no row of its own records it, and it only reminds of an earlier one. */
  readonly position: FeedPosition | null;
  /** The approval that it is about. */
  readonly subject: EventSubject | null;
  /** What it says, besides its id, type and time. Never a value of the call, a reason or a comment. */
  readonly data: Readonly<Record<string, unknown>>;
}

/** What events say about an approval, from the row that asked. */
export interface EventSubject {
  readonly row: number;
  readonly hash: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly tool: string | null;
  readonly rules: readonly string[];
  /** Undefined if that part of the row was erased. */
  readonly asking: { readonly decideBy: number; readonly needs: readonly Need[] } | undefined;
}

const digitsOfHash = 16;

function idOf(row: number, index: number, hash: string): string {
  return `${row}-${index}-${hash.slice(0, digitsOfHash)}`;
}

/** An event's id, read. */
export interface EventId extends FeedPosition {
  /** The first digits of the row's hash. */
  readonly digits: string;
}

/** Reads an event's id; undefined if a text is not one. The id of a reminder is read as that of its row. */
export function readEventId(text: string): EventId | undefined {
  const [, row, index, digits] = /^([1-9][0-9]{0,15})-([0-9]{1,6})-([0-9a-f]{16})(?:-expiring)?$/.exec(text) ?? [];
  return digits === undefined ? undefined : { row: Number(row), index: Number(index), digits };
}

/** Reads what events say about the approval that a row opened. */
export function subjectOf(row: StoredRow): EventSubject | undefined {
  const leaf = parseLeaf(row.leaf);
  if (leaf === undefined) return undefined;
  const asking = foldApproval([row])?.asking;
  return {
    row: row.seq,
    hash: leafHash(row.leaf),
    at: leaf.at,
    tool: leaf.tool,
    rules: asking === undefined ? [leaf.rule ?? ""] : Object.keys(asking.causes),
    asking: asking && { decideBy: asking.decide_by, needs: asking.needs },
  };
}

/** The rows of the approvals that a row's events are about, besides its own. */
export function subjectsOf(row: StoredRow): readonly number[] {
  const leaf = parseLeaf(row.leaf);
  const act = leaf && actOf(leaf, row.evidence);
  return act === undefined ? [] : listChangedRows(act);
}

/**
 * The events of a row. The same row always has the same events, so none is stored.
 *
 * @param subjects what `subjectsOf` names, by row
 */
export function eventsOf(row: StoredRow, subjects: ReadonlyMap<number, EventSubject>): readonly LedgerEvent[] {
  const leaf = parseLeaf(row.leaf);
  if (leaf === undefined) return [];
  const hash = leafHash(row.leaf);
  const event = (
    type: EventType,
    index: number,
    data: Readonly<Record<string, unknown>>,
    subject: EventSubject | null = null,
  ): LedgerEvent => {
    const position = { row: row.seq, index };
    const of = subject === null ? {} : describeSubject(subject);
    return {
      id: idOf(row.seq, index, hash),
      type,
      at: leaf.at,
      position,
      subject,
      data: { row: row.seq, hash, ...of, ...data },
    };
  };
  if (leaf.kind === "check") {
    const subject = leaf.answered === "ESCALATE" ? subjectOf(row) : undefined;
    if (subject?.asking === undefined) return [];
    return [event("approval.opened", 0, { status: "pending", decide_by: subject.asking.decideBy }, subject)];
  }
  const act = actOf(leaf, row.evidence);
  const type = typeOf(leaf, row);
  const own = type === undefined ? [] : [event(type, 0, { act: leaf.act })];
  if (act === undefined) return own;
  const changes = listChangedRows(act).flatMap((about, index) => {
    const subject = subjects.get(about);
    const changed = subject && changeOf(act, subject);
    return changed === undefined ? [] : [event(changed.type, own.length + index, changed.data, subject)];
  });
  return [...own, ...changes];
}

/** The type of an act's event; undefined if it has none. */
function typeOf(leaf: Leaf, { evidence }: StoredRow): EventType | undefined {
  if (leaf.act === null) return undefined;
  return readResume(leaf, evidence)?.lost === undefined ? byAct[leaf.act] : "ledger.broken";
}

function describeSubject({ row, hash, tool, rules }: EventSubject): Readonly<Record<string, unknown>> {
  return { approval: approvalId(row, hash), tool, rules };
}

interface EventContent {
  readonly type: EventType;
  readonly data: Readonly<Record<string, unknown>>;
}

/** What an act does to an approval that it names; undefined if it still waits for the same people. */
function changeOf(act: ApprovalAct, { row, asking }: EventSubject): EventContent | undefined {
  const closeWith = (status: string): EventContent => ({ type: "approval.closed", data: { status } });
  switch (act.act) {
    case "stop.set":
      // A stop that keeps approvals ends their votes, so people must decide again.
      if (act.ends.includes(row)) return closeWith("cancelled");
      return { type: "approval.opened", data: { status: "pending", decide_by: asking?.decideBy } };
    case "approval.approve":
      if (act.use_by === null) return undefined;
      return { type: "approval.decided", data: { status: "approved", use_by: act.use_by } };
    case "approval.deny":
      return { type: "approval.decided", data: { status: "denied", until: act.until } };
    case "approval.cancel":
      return closeWith("cancelled");
    case "approval.expire":
      return closeWith("expired");
    case "approval.use":
      return closeWith("used");
    case "approval.supersede":
      return closeWith("superseded");
    default:
      return act satisfies never;
  }
}

/** When a person is reminded of an approval: when a fifth of its time is left. Milliseconds since the epoch. */
export function remindsAt(at: number, decideBy: number): number {
  return decideBy - Math.floor((decideBy - at) / 5);
}

/** The reminder of an approval that still waits. No row records it: its id is that of the event that opened it. */
export function reminderOf(subject: EventSubject, decideBy: number): LedgerEvent {
  const { row, hash, at } = subject;
  const data = { row, hash, ...describeSubject(subject), status: "pending", decide_by: decideBy };
  const id = `${idOf(row, 0, hash)}-expiring`;
  return { id, type: "approval.expiring", at: remindsAt(at, decideBy), position: null, subject, data };
}

/** An event as streams and webhooks carry it. */
export function eventJson({ id, type, at, data }: LedgerEvent): Readonly<Record<string, unknown>> {
  return { id, type, at, ...data };
}

export function isAfter(event: FeedPosition, position: FeedPosition): boolean {
  return event.row > position.row || (event.row === position.row && event.index > position.index);
}
