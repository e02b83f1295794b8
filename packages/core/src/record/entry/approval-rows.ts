import {
  applyAct,
  endsAt,
  formDigests,
  isOpen,
  openApproval,
  progressText,
  readAct,
  listChangedRows,
  sessionName,
  withProgress,
  type Approval,
  type ApprovalAct,
  type ApprovalRequest,
  type Denial,
  type FormDigests,
  type OwnAmount,
  type RecordedJudgement,
} from "../../approvals/mod.ts";
import type { KeptApproval, StoredApproval, StoredRow } from "./row.ts";
import { eraseAct, readErasure, type RowRange } from "./erasure.ts";
import { partText } from "./evidence.ts";
import { leafHash, parseLeaf, type Leaf } from "./leaf.ts";
import { readCall, readEffects } from "./verifier.ts";

const hourMs = 3_600_000;

/**
 * An approval as the ledger's table keeps it: without any value from the call, so that erasures need not search it.
 *
 * @param digest makes keyed digests
 */
export function storedApproval(approval: Approval, digest: (text: string) => string): StoredApproval {
  const { row, key, session, status, asking } = approval;
  return {
    seq: row,
    attach: asking.attach,
    key,
    place: digest(sessionName(key, session)),
    status,
    ends: endOf(approval),
    record: progressText(approval),
  };
}

/** Reads approvals from the rows that asked and from the table. The table has only denials of erased rows. */
export function readApprovals(kept: readonly KeptApproval[]): readonly Approval[] {
  return kept.flatMap(({ row, record }) => {
    const opened = openedBy(row) ?? erasedDenial(row, readProgress(record).denial);
    return opened === undefined ? [] : [withProgress(opened, record)];
  });
}

/** The numbers of the rows of votes, as the table names them. It may have been changed to any text. */
export function voteRows(kept: Iterable<Pick<KeptApproval, "record">>): readonly number[] {
  return [...kept].flatMap(({ record }) => readProgress(record).votes?.map(({ row }) => row) ?? []);
}

/** What became of an approval, as its table says. @param unread the result if that is not JSON */
export function readProgress(record: string, unread: object = {}): Partial<Approval> {
  try {
    return Object(JSON.parse(record)) as Partial<Approval>;
  } catch {
    return unread;
  }
}

/** Until when the approval matters to other calls: a denial for an hour at least, because denials of a rule are counted. */
function endOf(approval: Approval): number | null {
  if (isOpen(approval)) return endsAt(approval);
  return approval.denial === null ? null : denialEnd(approval.denial);
}

export function denialEnd({ at, until }: Pick<Denial, "at" | "until">): number {
  return Math.max(until, at + hourMs);
}

/** Returns what became of a call if a person had to decide it; undefined if not, or if that part was erased. */
export function readJudgement(evidence: string): RecordedJudgement | undefined {
  return outcomeOf(evidence)?.asked;
}

/** The row whose approval a check ends: the call used it, opened another instead, or ran under a grant. */
export function findEndedApproval({ how, approval }: RecordedJudgement): number | undefined {
  return how === "used" || how === "opened" || how === "grant" ? approval : undefined;
}

/** What a grant reads in the row of a call: why a person was asked, and the forms of its command line. */
export interface GrantableAsking extends Pick<ApprovalRequest, "causes"> {
  readonly forms: FormDigests;
}

/** Undefined if the row does not say because of which rules a person was asked. */
export function readGrantable(evidence: string): GrantableAsking | undefined {
  const { approval, asked } = outcomeOf(evidence) ?? {};
  if (approval !== undefined) return { causes: approval.causes, forms: formDigests(approval) };
  return asked?.causes === undefined ? undefined : { causes: asked.causes, forms: asked.forms ?? {} };
}

interface OutcomePart {
  readonly asked?: RecordedJudgement;
  readonly approval?: ApprovalRequest;
}

function outcomeOf(evidence: string): OutcomePart | undefined {
  const text = partText(evidence, "outcome");
  // Most outcomes have neither member, and need no parsing.
  if (text === undefined || !text.includes('"asked":')) return undefined;
  try {
    return JSON.parse(text) as OutcomePart;
  } catch {
    return undefined;
  }
}

/** Reads the act about approvals in a row; undefined if the row has none. */
export function actOf(leaf: Leaf, evidence: string): ApprovalAct | undefined {
  if (leaf.kind !== "change" || leaf.act === null) return undefined;
  try {
    return readAct(leaf.act, partText(evidence, "input") ?? "null");
  } catch {
    return undefined;
  }
}

/**
 * The rows whose approvals a row ends: an act names them, or an erasure deletes a part of them. After a restore all end,
 * because a person may have decided otherwise in the rows that are lost.
 */
export function endedBy(leaf: Leaf, evidence: string): readonly RowRange[] {
  if (leaf.act === eraseAct) return readErasure(evidence, leaf.seq)?.rows ?? [];
  if (isLoss(leaf, evidence)) return [[1, leaf.seq - 1]];
  const act = actOf(leaf, evidence);
  if (act === undefined || act.act === "approval.approve") return [];
  return (act.act === "stop.set" ? act.ends : listChangedRows(act)).map((row) => [row, row]);
}

/** The act of a row that resumes a ledger after a restore, or that resets counters later. */
export const resumeAct = "resume";

/** True if the row records that earlier rows are lost. */
export function isLoss({ act }: Leaf, evidence: string): boolean {
  if (act !== resumeAct) return false;
  const { lost } = JSON.parse(partText(evidence, "input") ?? "{}") as { readonly lost?: unknown };
  return lost !== undefined;
}

export function ownAmounts(row: Pick<StoredRow, "evidence" | "leaf">): readonly OwnAmount[] {
  const at = parseLeaf(row.leaf)?.at ?? 0;
  const effects = (readEffects(row.evidence) ?? []).filter(({ held }) => held !== true);
  return effects.map(({ counter, key, amount }) => ({ counter, key, at, amount }));
}

/** Folds an approval from the row of the check that opened it; undefined if the row opened none, or lacks a part. */
export function openedBy(row: StoredRow): Approval | undefined {
  const asking = outcomeOf(row.evidence)?.approval;
  const leaf = asking && checkLeaf(row);
  const call = leaf && readCall(leaf, row.evidence);
  return call && openingOf(row, leaf, { session: call.session_id, tool: call.tool, asking });
}

/** The approval of a call that was denied and erased, as its denial keeps it. */
function erasedDenial(row: StoredRow, denial: Approval["denial"] | undefined): Approval | undefined {
  const leaf = denial?.call && checkLeaf(row);
  if (leaf === undefined || denial?.call === undefined) return undefined;
  const { place: _place, ...kept } = denial.call;
  const { session_id: session = null, tool = leaf.tool ?? "" } = readCall(leaf, row.evidence) ?? {};
  const causes = { [leaf.rule ?? ""]: "" };
  return openingOf(row, leaf, { session, tool, asking: { ...erasedAsking, causes, ...kept } });
}

const erasedAsking = { batch: false, use_within: 0, pins: {}, shown: { counters: {}, facts: {} } };

function checkLeaf({ leaf: text }: StoredRow): Leaf | undefined {
  const leaf = parseLeaf(text);
  return leaf?.kind === "check" ? leaf : undefined;
}

function openingOf(row: StoredRow, leaf: Leaf, of: Pick<Approval, "asking" | "session" | "tool">): Approval {
  const { at, key, rule, seq } = leaf;
  return openApproval({
    ...of,
    row: seq,
    hash: leafHash(row.leaf),
    at,
    key: key ?? "",
    rule: rule ?? "",
    own: ownAmounts(row),
  });
}

/** Applies the row of an administrative event to an approval; the same approval if the row is not about it. */
function afterRow(approval: Approval, row: StoredRow): Approval | undefined {
  const leaf = parseLeaf(row.leaf);
  const act = leaf && actOf(leaf, row.evidence);
  if (leaf === undefined || act === undefined || !listChangedRows(act).includes(approval.row)) return approval;
  return applyAct(approval, act, { seq: leaf.seq, at: leaf.at, by: leaf.key ?? "" });
}

/**
 * Folds an approval from the row that asked and later rows.
 *
 * @returns undefined if the first row opened no approval or lacks a part, or if a later row is not lawful
 */
export function foldApproval([first, ...later]: readonly StoredRow[]): Approval | undefined {
  const opened = first && openedBy(first);
  return later.reduce((approval, row) => approval && afterRow(approval, row), opened);
}
