import type { ReceiptJson } from "../../wire/mod.ts";
import { readCutInput } from "./cut-input.ts";
import { evidenceDigest, missingParts, partText } from "./evidence.ts";
import { leafHash, parseLeaf } from "./leaf.ts";
import type { StoredOutcome, StoredRow } from "./row.ts";
import { readCall } from "./verifier.ts";

/** The number and the hash of a row, which the caller of a check gets in the answer. */
export interface Receipt {
  readonly seq: number;
  /** SHA-256 in hex. */
  readonly hash: string;
}

declare const durable: unique symbol;

/** A value that is on disk. Only the ledger creates one, and an answer needs one. */
export type Durable<Value> = Value & { readonly [durable]: true };

/** Marks a value that a commit has just made durable. This is the only cast. */
export function asDurable<Value>(value: Value): Durable<Value> {
  return value as Durable<Value>;
}

/**
 * Returns a row as JSON text for GET /receipts: the leaf, the evidence, and readable fields. The fields come from the
 * leaf and from disclosures with verified digests; input and facts are shown as they were received. Erased parts are
 * null and named. An input that was not stored whole is null, and `input_cut` is its marker.
 *
 * @param outcome the last outcome of the call
 */
export function receiptJson(row: StoredRow, outcome?: StoredOutcome): string {
  const leaf = parseLeaf(row.leaf);
  const sound = leaf !== undefined && evidenceDigest(row.evidence) === leaf.evidence;
  const part = (name: "input" | "platform" | "reason"): string =>
    sound ? (partText(row.evidence, name) ?? "null") : "null";
  const call = sound ? readCall(leaf, row.evidence) : undefined;
  const erased = sound ? missingParts(row.evidence).toSorted() : [];
  const cut = sound && leaf.kind === "check" ? readCutInput(row.evidence) : undefined;
  const fields: readonly (readonly [name: keyof ReceiptJson, text: string | undefined])[] = [
    ["seq", String(row.seq)],
    ["hash", JSON.stringify(leafHash(row.leaf))],
    ["prev_hash", json(leaf?.prev)],
    ["at", json(leaf?.at)],
    ["session_id", json(call?.session_id)],
    ["tool_name", json(call?.tool_name)],
    ["tool", call?.alias === undefined ? undefined : json(call.tool)],
    ["tool_input", cut === undefined ? part("input") : "null"],
    ["platform_state", part("platform")],
    ["verdict", json(leaf?.verdict)],
    ["answered", json(leaf?.answered)],
    ["mode", json(leaf?.mode)],
    ["reason", part("reason")],
    ["rule", json(leaf?.rule)],
    ["contract", json(leaf?.contract)],
    ["key", json(leaf?.key)],
    ["key_kind", call?.key_kind === undefined ? undefined : json(call.key_kind)],
    ["kind", leaf === undefined || leaf.kind === "check" ? undefined : json(leaf.kind)],
    ["act", leaf?.kind === "change" ? json(leaf.act) : undefined],
    ["check", leaf?.kind === "result" ? json(leaf.check) : undefined],
    ["input_cut", cut && JSON.stringify(cut)],
    ["erased", erased.length === 0 ? undefined : JSON.stringify(erased)],
    ["outcome", outcome && JSON.stringify({ status: outcome.status, seq: outcome.outcome })],
    ["leaf", JSON.stringify(row.leaf)],
    ["evidence", JSON.stringify(row.evidence.split("~"))],
  ];
  return `{${fields.flatMap(([name, text]) => (text === undefined ? [] : `"${name}":${text}`)).join(",")}}`;
}

function json(value: string | number | null | undefined): string {
  return JSON.stringify(value ?? null);
}
