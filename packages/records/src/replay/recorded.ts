import type { RecordedJudgement } from "../../../core/src/approvals/mod.ts";
import type { Decision } from "../../../core/src/contract/mod.ts";
import { isVerdict, readJson, type CheckRequest, type JsonObject, type KeyKind } from "../../../core/src/wire/mod.ts";
import {
  effectsIn,
  evidenceDigest,
  parseLeaf,
  readCall,
  readCutInput,
  readEffects,
  wholeText,
  type Leaf,
  type LeafKind,
} from "../../../core/src/record/entry/mod.ts";
import { readResume } from "../../../gate/src/ledger/mod.ts";
import type { RecordedRow } from "../history.ts";

/** A check, as its receipt describes it. */
export interface ReceiptCheck {
  readonly row: RecordedRow;
  readonly leaf: Leaf;
  /** The call as it was sent: its contract resolves an alias again. */
  readonly request: CheckRequest;
  /** The name by which the call was judged. */
  readonly tool: string;
  /** Undefined for an ordinary key. */
  readonly keyKind: KeyKind | undefined;
  /** The marker of an input that was not stored whole; `request.toolInput` is then empty. */
  readonly cutInput: ReturnType<typeof readCutInput>;
  readonly reason: string;
  readonly trace: RecordedTrace;
  readonly effects: NonNullable<ReturnType<typeof readEffects>>;
  /** JSON texts, as they were written. */
  readonly reasonText: string;
  readonly outcomeText: string;
  readonly effectsText: string;
}

/** The recorded trace of a decision. */
export interface RecordedTrace {
  readonly counters: Readonly<Record<string, string>>;
  /** The rules that fired. */
  readonly fired: readonly string[];
  readonly observed: Decision["observed"];
  /** What became of the call if a person had to decide it. */
  readonly asked: RecordedJudgement | undefined;
}

/** The leaf of a row, or a clause with the problem of the row. No source of rows is trusted. */
export function readLeaf({ seq, leaf: text, evidence }: RecordedRow): Leaf | string {
  const leaf = parseLeaf(text);
  if (leaf === undefined) return "this version cannot read its leaf";
  if (leaf.seq !== seq) return "its leaf has another number";
  return evidenceDigest(evidence) === leaf.evidence ? leaf : "its evidence does not match its leaf";
}

/**
 * The kind of a row that is not a check: a person's act (a key, a reload), or a tool's result. Such a row has no
 * decision.
 */
export function otherKind(row: RecordedRow): Exclude<LeafKind, "check"> | undefined {
  if (!/^\{"(?:act":|answered":null,)/.test(row.leaf)) return undefined;
  const leaf = readLeaf(row);
  return typeof leaf === "string" || leaf.kind === "check" ? undefined : leaf.kind;
}

/** The counters that a row resets, with their names, by digest. */
export function resetIn(row: RecordedRow): ReadonlyMap<string, string> {
  const leaf = readLeaf(row);
  return (typeof leaf === "string" ? undefined : readResume(leaf, row.evidence))?.reset ?? new Map();
}

/** Was a part of the evidence erased? Then its digest replaces it. */
export function hasErasedPart(evidence: string): boolean {
  return evidence.includes("!") && parts.some((name) => wholeText(evidence, name) === undefined);
}

const parts = ["call", "input", "platform", "reason", "outcome"] as const;

/** The counters that a row updated, by digest; undefined if they cannot be read. */
export function movedCounters({ evidence }: RecordedRow): ReadonlySet<string> | undefined {
  const effects = readEffects(evidence);
  return effects && new Set(effects.map(({ counter }) => counter));
}

/** Why a receipt cannot be read as a whole: somebody had a part of it erased. */
export const erasedPart = "a part of its evidence was erased";

/** Reads a receipt back, or returns a clause with the reason why it cannot be decided again. */
export function readReceiptCheck(row: RecordedRow): ReceiptCheck | string {
  const leaf = readLeaf(row);
  if (typeof leaf === "string") return leaf;
  const call = readCall(leaf, row.evidence);
  const texts = readParts.map((name) => wholeText(row.evidence, name));
  if (texts.includes(undefined)) return erasedPart;
  const [inputText = "", platformText = "", reasonText = "", outcomeText = "", effectsText = ""] = texts;
  const reason = readJsonText(reasonText);
  const trace = traceOf(readJsonText(outcomeText));
  const effects = effectsIn(effectsText);
  if (call === undefined || typeof reason !== "string" || trace === undefined || effects === undefined)
    return "a part of its evidence is erased or malformed";
  const cutInput = readCutInput(row.evidence);
  const toolInput: JsonObject | undefined = cutInput === undefined ? objectOf(inputText) : new Map();
  const platformState = platformText === "null" ? null : objectOf(platformText);
  if (toolInput === undefined || platformState === undefined) return "its input or its facts are not readable";
  const request = {
    toolName: call.tool_name,
    toolInput,
    sessionId: call.session_id,
    platformState,
    inputText,
    platformText: platformState === null ? null : platformText,
  };
  return {
    row,
    leaf,
    request,
    tool: call.tool,
    keyKind: call.key_kind,
    cutInput,
    reason,
    trace,
    effects,
    reasonText,
    outcomeText,
    effectsText,
  };
}

const readParts = ["input", "platform", "reason", "outcome", "effects"] as const;

/** True for an amount as a gate writes it: a decimal that is not negative. No source of rows is trusted. */
export function isAmount(text: string | undefined): text is string {
  return text !== undefined && /^[0-9]{1,999}(?:\.[0-9]{1,999})?$/.test(text);
}

export const inputNotKept = "its input was not stored whole";

/** The time of a leaf, as far as it can be read. */
export function recordedAt(leaf: string): number {
  return Number(/"at":(\d{1,15})/.exec(leaf)?.[1] ?? 0);
}

function readJsonText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function traceOf(outcome: unknown): RecordedTrace | undefined {
  const { asked, counters, fired = [], observed = [] } = (outcome ?? {}) as { readonly [name: string]: unknown };
  if (typeof counters !== "object" || counters === null) return undefined;
  if (!Array.isArray(observed) || !Array.isArray(fired)) return undefined;
  if (!Object.values(counters).every((value) => typeof value === "string")) return undefined;
  if (!observed.every(isObservation)) return undefined;
  return {
    counters: counters as RecordedTrace["counters"],
    fired: fired.map(String),
    observed,
    asked: asked as RecordedTrace["asked"],
  };
}

function isObservation(value: unknown): value is Decision["observed"][number] {
  const { reason, rule, verdict } = (value ?? {}) as Partial<Decision["observed"][number]>;
  return typeof reason === "string" && typeof rule === "string" && typeof verdict === "string" && isVerdict(verdict);
}

function objectOf(text: string): JsonObject | undefined {
  const document = readJson(text);
  return document.ok ? document.value.members : undefined;
}
