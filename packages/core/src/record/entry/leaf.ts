import { hash } from "node:crypto";
import type { Mode, Verdict } from "../../wire/mod.ts";

/**
 * The hashed part of a row: canonical JSON (RFC 8785) of strings, null and safe integers, with its members in this
 * order. A leaf is never rewritten.
 */
export interface Leaf {
  /**
   * The kind of administrative event, such as `keys.create`; null for all other rows, whose leaves do not have this
   * member.
   */
  readonly act: string | null;
  readonly answered: Verdict | null;
  /** Milliseconds since the epoch by the gate's clock, never less than in the row before. */
  readonly at: number;
  /** For a result, the row of its check; null for all other rows, whose leaves do not have this member. */
  readonly check: number | null;
  /** `sha256:` and the SHA-256 of the body of GET /rules. */
  readonly contract: string | null;
  readonly engine: string;
  /** SHA-256 over the digests of the evidence's parts. */
  readonly evidence: string;
  /** The name of the key that asked. */
  readonly key: string | null;
  readonly kind: LeafKind;
  /** The ledger's own name. */
  readonly log: string;
  readonly mode: Mode | null;
  /** The hash of the row before; 64 zeros in the first row. */
  readonly prev: string;
  readonly rule: string | null;
  /** From 1. */
  readonly seq: number;
  /**
   * The tool's own name, by which the call was judged; the call may have been sent under an alias. Null if no contract
   * routes the tool, because an agent can write anything there.
   */
  readonly tool: string | null;
  readonly v: 1;
  readonly verdict: Verdict | null;
}

export const leafKinds = ["check", "change", "result"] as const;

/** A check, an administrative event, or a tool's result that the calling code reported. */
export type LeafKind = (typeof leafKinds)[number];

export const zeroHash: string = "0".repeat(64);

/** Returns the leaf's text. The order of members is that of RFC 8785; a test compares it with the general writer. */
export function leafText(leaf: Leaf): string {
  const act = leaf.act === null ? "" : `"act":${text(leaf.act)},`;
  const check = leaf.check === null ? "" : `"check":${leaf.check},`;
  return (
    `{${act}"answered":${text(leaf.answered)},"at":${leaf.at},${check}"contract":${text(leaf.contract)}` +
    `,"engine":${text(leaf.engine)}` +
    `,"evidence":"${leaf.evidence}","key":${text(leaf.key)},"kind":"${leaf.kind}","log":${text(leaf.log)}` +
    `,"mode":${text(leaf.mode)},"prev":"${leaf.prev}","rule":${text(leaf.rule)},"seq":${leaf.seq}` +
    `,"tool":${text(leaf.tool)},"v":${leaf.v},"verdict":${text(leaf.verdict)}}`
  );
}

function text(value: string | null): string {
  if (value === null) return "null";
  const known = jsonTexts.get(value);
  if (known !== undefined) return known;
  if (jsonTexts.size === jsonTextsMax) jsonTexts.clear();
  const json = JSON.stringify(value);
  jsonTexts.set(value, json);
  return json;
}

/**
 * JSON texts of earlier values. Leaves repeat a few values: names of keys, tools, rules and contracts, which an operator
 * wrote. A leaf names a tool only if a contract does, so agents cannot fill this map.
 */
const jsonTexts = new Map<string, string>();
const jsonTextsMax = 1024;

/** The members by which leaves can be filtered. */
export interface LeafFilter {
  readonly answered?: Verdict | undefined;
  readonly mode?: Mode | undefined;
  readonly key?: string | undefined;
  readonly act?: string | undefined;
  readonly kind?: LeafKind | undefined;
}

/**
 * Returns texts that a leaf contains if and only if its members have these values. Quotation marks in values are
 * escaped, so no value can contain such a text. Each store can search for a text, so all stores find the same leaves.
 */
export function leafTexts({ act, answered, kind, mode, key }: LeafFilter): readonly string[] {
  return [
    ...(act === undefined ? [] : [`"act":${text(act)},"answered":`]),
    ...(answered === undefined ? [] : [`"answered":${text(answered)},"at":`]),
    ...(kind === undefined ? [] : [`"kind":"${kind}","log":`]),
    ...(mode === undefined ? [] : [`"mode":${text(mode)},"prev":`]),
    ...(key === undefined ? [] : [`"key":${text(key)},"kind":`]),
  ];
}

const string = '"(?:[^"\\\\\\x00-\\x1f]|\\\\.)*"';
const word = `(${string}|null)`;
const verdictWord = '("(?:ALLOW|BLOCK|ESCALATE)"|null)';
const layout = new RegExp(
  `^\\{(?:"act":(${string}),)?"answered":${verdictWord},"at":(\\d{1,15}),(?:"check":(\\d{1,15}),)?"contract":${word}` +
    `,"engine":(${string}),"evidence":"([0-9a-f]{64})"` +
    `,"key":${word},"kind":"(${leafKinds.join("|")})","log":(${string}),"mode":("(?:observe|assist|enforce)"|null)` +
    `,"prev":"([0-9a-f]{64})","rule":${word},"seq":(\\d{1,15}),"tool":${word},"v":1,"verdict":${verdictWord}\\}$`,
);

/**
 * Reads a leaf; undefined unless the text is exactly the text that `leafText` writes. One pattern takes half the time
 * of JSON.
 */
export function parseLeaf(written: string): Leaf | undefined {
  const found = layout.exec(written);
  if (found === null) return undefined;
  const [, act, verdictAnswered, at, check, contract, engine, evidence, key, kind, log, mode, prev, ...behind] = found;
  const [rule, seq, tool, verdict] = behind;
  if ((act === undefined) === (kind === "change")) return undefined;
  const isResult = kind === "result";
  if ((check === undefined) === isResult) return undefined;
  if (isResult && [verdictAnswered, rule, verdict].some((decided) => decided !== "null")) return undefined;
  const leaf: Leaf = {
    act: plain(act),
    answered: plain(verdictAnswered) as Verdict | null,
    at: Number(at),
    check: check === undefined ? null : Number(check),
    contract: plain(contract),
    engine: plain(engine) ?? "",
    evidence: evidence ?? "",
    key: plain(key),
    kind: kind as LeafKind,
    log: plain(log) ?? "",
    mode: plain(mode) as Mode | null,
    prev: prev ?? "",
    rule: plain(rule),
    seq: Number(seq),
    tool: plain(tool),
    v: 1,
    verdict: plain(verdict) as Verdict | null,
  };
  // Canonical text has one spelling for each escape and no leading zeros. So the leaf is written again and compared.
  const isShort = [at, check ?? "1", seq].every((digits) => digits?.startsWith("0") === false);
  const oneSpelling = isShort && !written.includes("\\");
  return oneSpelling || leafText(leaf) === written ? leaf : undefined;
}

/** Returns the value of a JSON string or null. */
function plain(json: string | undefined): string | null {
  if (json === undefined || json === "null") return null;
  if (!json.includes("\\")) return json.slice(1, -1);
  try {
    return JSON.parse(json) as string;
  } catch {
    return null;
  }
}

const leafPrefix = "\0";

/**
 * Returns the row's hash: SHA-256 of a zero byte and the leaf's bytes (the leaf hash of RFC 6962, section 2.1), in hex.
 */
export function leafHash(written: string): string {
  return hash("sha256", leafPrefix + written, "hex");
}
