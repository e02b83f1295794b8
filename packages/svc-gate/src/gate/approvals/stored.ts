import {
  applyAct,
  approvalText,
  endsAt,
  isOpen,
  openApproval,
  readAct,
  rowsOf,
  type Approval,
  type Asking,
} from "../../approvals/mod.ts";
import type { StoredApproval } from "../../ledger/mod.ts";
import { leafHash, parseLeaf, partText, readCall, readEffects, type StoredRow } from "../../ledger/entry/mod.ts";

const hourMs = 3_600_000;

/** An approval as the ledger's table keeps it. */
export function storedApproval(approval: Approval): StoredApproval {
  const { row, key, session, status, asking } = approval;
  return { row, attach: asking.attach, key, session, status, ends: endOf(approval), record: approvalText(approval) };
}

/** Until when the approval matters to other calls: a denial for an hour at least, because denials of a rule are counted. */
function endOf(approval: Approval): number | null {
  if (isOpen(approval)) return endsAt(approval);
  const { denial } = approval;
  return denial === null ? null : Math.max(denial.until, denial.at + hourMs);
}

/** Folds an approval from the row of the check that opened it; undefined if the row opened none, or lacks a part. */
export function openedBy(row: StoredRow): Approval | undefined {
  const leaf = parseLeaf(row.leaf);
  const call = readCall(row.evidence);
  const outcome = partText(row.evidence, "outcome");
  if (leaf === undefined || leaf.kind !== "check" || call === undefined || outcome === undefined) return undefined;
  const { approval } = JSON.parse(outcome) as { readonly approval?: Asking };
  if (approval === undefined) return undefined;
  const { seq, at } = leaf;
  const effects = (readEffects(row.evidence) ?? []).filter(({ held }) => held !== true);
  return openApproval({
    row: seq,
    hash: leafHash(row.leaf),
    at,
    key: leaf.key ?? "",
    session: call.session_id,
    tool: call.tool_name,
    rule: leaf.rule ?? "",
    asking: approval,
    own: effects.map(({ counter, key, amount }) => ({ counter, key, at, amount })),
  });
}

/** Applies the row of an administrative event to an approval; the same approval if the row is not about it. */
export function afterRow(approval: Approval, row: StoredRow): Approval | undefined {
  const leaf = parseLeaf(row.leaf);
  if (leaf?.kind !== "change" || leaf.act === null) return approval;
  const act = readAct(leaf.act, partText(row.evidence, "input") ?? "null");
  if (act === undefined || !rowsOf(act).includes(approval.row)) return approval;
  return applyAct(approval, act, { seq: leaf.seq, at: leaf.at, by: leaf.key ?? "" });
}
