import { keyKindOf, type KeyKind } from "../../wire/mod.ts";
import type { PartName } from "./disclosure.ts";
import { erasedColumns, isErasable } from "./erasure.ts";
import { evidenceDigest, isEmptyList, missingParts, partText } from "./evidence.ts";
import { leafHash, parseLeaf, zeroHash, type Leaf } from "./leaf.ts";
import { changeColumns, resultVerdict, type Finding, type FindingCode, type StoredRow } from "./row.ts";

/** The number, hash and time of a row, which the next row must follow; `at` is in milliseconds, and 0 before the first row. */
export interface Link {
  readonly seq: number;
  readonly hash: string;
  readonly at: number;
}

export const firstLink: Link = { seq: 0, hash: zeroHash, at: 0 };

/** Makes the link after a row that is not verified: the start of a walk that does not start at row 1. */
export function linkOf(row: Pick<StoredRow, "leaf" | "seq">): Link {
  const leaf = parseLeaf(row.leaf);
  return { seq: row.seq, hash: leafHash(row.leaf), at: leaf?.at ?? 0 };
}

/** A row whose link is valid. */
export interface LinkedRow {
  readonly link: Link;
  readonly leaf: Leaf;
}

/**
 * Checks only the chain: the leaf is canonical, follows the link before it, and its hash is recomputed from its text.
 *
 * @returns the next link and the leaf, or the mistake
 */
export function verifyLink(row: Pick<StoredRow, "seq" | "leaf">, before: Link, log: string): LinkedRow | Finding {
  const seq = before.seq + 1;
  const broken = brokenAt(seq);
  if (row.seq !== seq) return broken("seq", "a row is missing or out of order", `row ${seq}`, `row ${row.seq}`);
  const leaf = parseLeaf(row.leaf);
  if (leaf === undefined)
    return broken("leaf", "the leaf is not canonical text of version 1", "a leaf", row.leaf.slice(0, 200));
  if (leaf.seq !== seq) return broken("seq", "the leaf names another row", seq, leaf.seq);
  if (leaf.log !== log) return broken("log", "the leaf is of another ledger", log, leaf.log);
  if (leaf.prev !== before.hash)
    return broken("prev", "the leaf does not follow the row before", before.hash, leaf.prev);
  if (leaf.at < before.at)
    return broken("time", "the time is earlier than in the row before", `at least ${before.at}`, leaf.at);
  return { link: { seq, hash: leafHash(row.leaf), at: leaf.at }, leaf };
}

/** The look-up columns of a row; an export has none. */
type LookupColumns = Partial<Pick<StoredRow, "session" | "tool" | "verdict">>;

/**
 * Checks the evidence of a leaf: every hash is recomputed from the disclosures, and every look-up column is compared
 * with its source.
 *
 * @returns the missing parts, which a later row must record as erased, or the mistake
 */
export function verifyEvidence(leaf: Leaf, evidence: string, columns: LookupColumns): readonly PartName[] | Finding {
  const broken = brokenAt(leaf.seq);
  const digest = evidenceDigest(evidence);
  if (digest === undefined)
    return broken("evidence", "the evidence does not have its six parts in order", "six parts", evidence.slice(0, 200));
  if (digest !== leaf.evidence)
    return broken("digest", "the evidence is not what the leaf commits to", leaf.evidence, digest);
  const missing = missingParts(evidence);
  const kept = missing.find((part) => leaf.kind === "change" || !isErasable(part));
  if (kept !== undefined)
    return broken("erasure", "the evidence lacks a part that is never erased", "six parts", `no ${kept}`);
  const { session, tool, verdict } = columns;
  if (tool === undefined || session === undefined) return missing;
  const expected = verdictColumn(leaf);
  if (verdict !== expected) return broken("evidence", "the column `verdict` differs from the leaf", expected, verdict);
  const isAct = leaf.kind === "change" && tool === changeColumns.tool && session === changeColumns.session;
  const isErased = missing.includes("call");
  const call = isErased ? erasedCall : partText(evidence, "call");
  const recorded = isAct ? "null" : callText(tool, session);
  if (call !== recorded && (isAct || isErased || call !== sentText(leaf, evidence, { tool, session })))
    return broken("evidence", "the columns `tool` and `session` differ from the evidence", call, recorded);
  if (leaf.tool !== null && leaf.tool !== tool && !isErased)
    return broken("evidence", "the column `tool` differs from the leaf", leaf.tool, tool);
  return missing;
}

/**
 * The value of the part `call` that a row with these columns may have besides `callText`. It may name an approval, and the
 * kind of the key. If a contract routes the call, it may have been sent under any other name of the tool.
 */
function sentText({ tool: own }: Leaf, evidence: string, columns: Pick<StoredRow, "session" | "tool">): string {
  const {
    approval,
    key_kind: kind,
    tool_name: sent,
  } = (parseJson(partText(evidence, "call")) ?? {}) as Readonly<Record<string, unknown>>;
  const tool = own === null || typeof sent !== "string" ? columns.tool : sent;
  const named = typeof approval === "string" ? approval : undefined;
  return callText(tool, columns.session, { approval: named, keyKind: keyKindOf(kind) });
}

/** A valid row with its missing parts: a later row must record that they were erased. */
export interface VerifiedRow extends LinkedRow {
  readonly missing: readonly PartName[];
}

/**
 * Checks one row: its link and its evidence.
 *
 * @returns the next link, the leaf and the missing parts, or the mistake
 */
export function verifyRow(row: StoredRow, before: Link, log: string): VerifiedRow | Finding {
  const linked = verifyLink(row, before, log);
  if ("problem" in linked) return linked;
  const missing = verifyEvidence(linked.leaf, row.evidence, row);
  return "problem" in missing ? missing : { ...linked, missing };
}

function verdictColumn({ kind, verdict }: Leaf): string | null {
  if (kind === "check") return verdict;
  return kind === "change" ? changeColumns.verdict : resultVerdict;
}

/**
 * Checks that a result names an earlier row of kind `check` with the same key and the same tool.
 *
 * @param leafAt returns the text of an earlier row's leaf
 * @returns the mistake; undefined if there is none, or if the row is not a result
 */
export function wrongCheck(leaf: Leaf, leafAt: (seq: number) => string | undefined): Finding | undefined {
  const { check, key, seq, tool } = leaf;
  if (check === null) return undefined;
  const text = check < seq ? leafAt(check) : undefined;
  const named = parseLeaf(text ?? "");
  if (named?.kind === "check" && named.key === key && named.tool === tool) return undefined;
  return misnamedCheck(leaf, text?.slice(0, 200) ?? `no row ${check} before it`);
}

/** Makes the finding that a result does not name its check. */
export function misnamedCheck({ key, seq, tool }: Leaf, found: string): Finding {
  const problem = "the row that a result names is not an earlier check with its key and its tool";
  return brokenAt(seq)("result", problem, `a check by ${key} of ${tool}`, found);
}

function brokenAt(seq: number): (code: FindingCode, problem: string, expected: unknown, found: unknown) => Finding {
  return (code, problem, expected, found) => ({
    code,
    seq,
    problem,
    expected: String(expected),
    found: String(found),
  });
}

/** The members of the part `call` that most calls do not have. */
interface RareMembers {
  /** The id of the approval that the caller named. */
  readonly approval?: string | undefined;
  /** Undefined for an ordinary key. */
  readonly keyKind?: KeyKind | undefined;
}

/** Returns the canonical value of the part `call`. */
export function callText(tool: string, session: string | null, { approval, keyKind }: RareMembers = {}): string {
  const named = approval === undefined ? "" : `"approval":${JSON.stringify(approval)},`;
  const kind = keyKind === undefined ? "" : `"key_kind":${JSON.stringify(keyKind)},`;
  return `{${named}${kind}"session_id":${session === null ? "null" : JSON.stringify(session)},"tool_name":${JSON.stringify(tool)}}`;
}

/** The value of the columns of an erased call. */
const erasedCall = callText(erasedColumns.tool, erasedColumns.session);

export interface RecordedCall {
  /** The name that was sent. */
  readonly tool_name: string;
  /** The name by which the call was judged: the tool's own name, even if an alias was sent. */
  readonly tool: string;
  /** The alias that was sent; undefined if the name that was sent is the name by which the call was judged. */
  readonly alias?: string | undefined;
  readonly session_id: string | null;
  /** The kind of the key that asked; undefined for an ordinary key. */
  readonly key_kind?: KeyKind | undefined;
}

/** Returns the call that a row records; undefined if it was erased or is not valid. */
export function readCall({ tool }: Pick<Leaf, "tool">, evidence: string): RecordedCall | undefined {
  const call = parseJson(partText(evidence, "call")) as Partial<RecordedCall> | null | undefined;
  const { tool_name, session_id, key_kind } = call ?? {};
  const isCall = typeof tool_name === "string" && (session_id === null || typeof session_id === "string");
  // A kind that this version does not know may give facts another meaning.
  const isKnown = key_kind === undefined || keyKindOf(key_kind) !== undefined;
  if (!isCall || !isKnown) return undefined;
  const alias = tool === null || tool === tool_name ? undefined : tool_name;
  return { tool_name, tool: tool ?? tool_name, alias, session_id, ...(key_kind === undefined ? {} : { key_kind }) };
}

function parseJson(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

export interface RecordedEffect {
  readonly amount: string;
  readonly counter: string;
  readonly key: string;
  /** True if the amount is reserved until a person decides. It is not an event of the counter. */
  readonly held?: true;
  /** The row whose event an outcome takes back. Then this is not an event of the counter either. */
  readonly withdrawn?: number;
}

/** Returns the counter events of a row; undefined if they were erased or are not valid. */
export function readEffects(evidence: string): readonly RecordedEffect[] | undefined {
  return isEmptyList(evidence, "effects") ? [] : effectsIn(partText(evidence, "effects"));
}

/** Reads the text of the part `effects`; undefined if it is not valid. */
export function effectsIn(text: string | undefined): readonly RecordedEffect[] | undefined {
  if (text === "[]") return [];
  const effects = parseJson(text);
  return Array.isArray(effects) && effects.every(isEffect) ? effects : undefined;
}

function isEffect(effect: unknown): effect is RecordedEffect {
  const { amount, counter, key, held = true, withdrawn = 1 } = (effect ?? {}) as Partial<RecordedEffect>;
  return (
    held && Number.isSafeInteger(withdrawn) && [amount, counter, key].every((member) => typeof member === "string")
  );
}
