import type { PartName } from "./disclosure.ts";
import { erasedColumns, isErasable } from "./erasure.ts";
import { evidenceDigest, isEmptyList, missingParts, partText } from "./evidence.ts";
import { leafHash, parseLeaf, zeroHash, type Leaf } from "./leaf.ts";
import { changeColumns, resultVerdict, type Broken, type StoredRow } from "./row.ts";

/** What the row before leaves for the next one to be held against. */
export interface Link {
  readonly seq: number;
  readonly hash: string;
  readonly at: number;
}

export const firstLink: Link = { seq: 0, hash: zeroHash, at: 0 };

/** Makes the link after a row that is taken as it is: where a walk that does not begin at row 1 begins. */
export function linkOf(row: StoredRow): Link {
  const leaf = parseLeaf(row.leaf);
  return { seq: row.seq, hash: leafHash(row.leaf), at: leaf?.at ?? 0 };
}

/** A row that holds so far. */
export interface Linked {
  readonly link: Link;
  readonly leaf: Leaf;
}

/**
 * Checks the chain alone: the leaf is canonical, follows the link before it, and its hash is recomputed from its text.
 *
 * @returns the next link and the leaf, or what is broken
 */
export function verifyLink(row: Pick<StoredRow, "seq" | "leaf">, before: Link, log: string): Linked | Broken {
  const seq = before.seq + 1;
  const broken = brokenAt(seq);
  if (row.seq !== seq) return broken("a row is missing or out of place", `row ${seq}`, `row ${row.seq}`);
  const leaf = parseLeaf(row.leaf);
  if (leaf === undefined)
    return broken("the leaf is not canonical text of version 1", "a leaf", row.leaf.slice(0, 200));
  if (leaf.seq !== seq) return broken("the leaf names another row", seq, leaf.seq);
  if (leaf.log !== log) return broken("the leaf is of another ledger", log, leaf.log);
  if (leaf.prev !== before.hash) return broken("the leaf does not follow the row before", before.hash, leaf.prev);
  if (leaf.at < before.at) return broken("the clock went back", `at least ${before.at}`, leaf.at);
  return { link: { seq, hash: leafHash(row.leaf), at: leaf.at }, leaf };
}

/** A row that holds so far, but for the parts that it lacks: a later row must say that they were erased. */
export interface Verified extends Linked {
  readonly missing: readonly PartName[];
}

/**
 * Checks one row against the link before it: every hash is recomputed from the leaf's text and the disclosures, every
 * look-up column is compared with what it was derived from.
 *
 * @returns the next link, the leaf and what is missing, or what is broken
 */
export function verifyRow(row: StoredRow, before: Link, log: string): Verified | Broken {
  const linked = verifyLink(row, before, log);
  if ("problem" in linked) return linked;
  const { leaf } = linked;
  const broken = brokenAt(leaf.seq);
  const digest = evidenceDigest(row.evidence);
  if (digest === undefined)
    return broken("the evidence has not its parts, each in its place", "six parts", row.evidence.slice(0, 200));
  if (digest !== leaf.evidence) return broken("the evidence is not what the leaf commits to", leaf.evidence, digest);
  const missing = missingParts(row.evidence);
  const kept = missing.find((part) => leaf.kind === "change" || !isErasable(part));
  if (kept !== undefined)
    return broken("a part of the evidence is missing that is never erased", "six parts", `no ${kept}`);
  const verdict = verdictColumn(leaf);
  if (row.verdict !== verdict) return broken("the column `verdict` differs from the leaf", verdict, row.verdict);
  const isAct = leaf.kind === "change" && row.tool === changeColumns.tool && row.session === changeColumns.session;
  const columns = isAct ? "null" : callText(row.tool, row.session);
  const call = missing.includes("call") ? erasedCall : partText(row.evidence, "call");
  if (call !== columns) return broken("the columns `tool` and `session` differ from the evidence", call, columns);
  return { ...linked, missing };
}

function verdictColumn({ kind, verdict }: Leaf): string | null {
  if (kind === "check") return verdict;
  return kind === "change" ? changeColumns.verdict : resultVerdict;
}

/**
 * Checks what a result says of its check: a row before it, of kind `check`, with the same key and the same tool.
 *
 * @param leafAt the text of an earlier row's leaf
 * @returns what is broken; undefined if nothing is, or if the row is no result
 */
export function wrongCheck(leaf: Leaf, leafAt: (seq: number) => string | undefined): Broken | undefined {
  const { check, key, seq, tool } = leaf;
  if (check === null) return undefined;
  const text = check < seq ? leafAt(check) : undefined;
  const named = parseLeaf(text ?? "");
  if (named?.kind === "check" && named.key === key && named.tool === tool) return undefined;
  const problem = "the row that a result names is not an earlier check with its key and its tool";
  return brokenAt(seq)(problem, `a check by ${key} of ${tool}`, text?.slice(0, 200) ?? `no row ${check} before it`);
}

function brokenAt(seq: number): (problem: string, expected: unknown, found: unknown) => Broken {
  return (problem, expected, found) => ({ seq, problem, expected: String(expected), found: String(found) });
}

/** The value of the part `call`, canonical. */
export function callText(tool: string, session: string | null): string {
  return `{"session_id":${session === null ? "null" : JSON.stringify(session)},"tool_name":${JSON.stringify(tool)}}`;
}

/** What the columns say of a call that was erased. */
const erasedCall = callText(erasedColumns.tool, erasedColumns.session);

export interface RecordedCall {
  readonly tool_name: string;
  readonly session_id: string | null;
}

/** The call that a row records; undefined when it was erased, or is none. */
export function readCall(evidence: string): RecordedCall | undefined {
  const call = readPart(evidence, "call") as Partial<RecordedCall> | null | undefined;
  const { tool_name, session_id } = call ?? {};
  const isCall = typeof tool_name === "string" && (session_id === null || typeof session_id === "string");
  return isCall ? { tool_name, session_id } : undefined;
}

function readPart(evidence: string, name: "call" | "effects"): unknown {
  const text = partText(evidence, name);
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
}

/** What a row moved its counters by; undefined when it was erased, or is nothing of the kind. */
export function readEffects(evidence: string): readonly RecordedEffect[] | undefined {
  if (isEmptyList(evidence, "effects")) return [];
  const effects = readPart(evidence, "effects");
  return Array.isArray(effects) && effects.every(isEffect) ? effects : undefined;
}

function isEffect(effect: unknown): effect is RecordedEffect {
  const { amount, counter, key } = (effect ?? {}) as Partial<RecordedEffect>;
  return [amount, counter, key].every((member) => typeof member === "string");
}
