/**
 * Makes exports in the slow and simple way: Merkle tree hashes by the recursion of RFC 6962 and files by the
 * definitions of C2SP tlog-tiles, without code from src/. spec/vectors/exports has the results.
 */
import { createHash, createPrivateKey, createPublicKey, sign, type KeyObject } from "node:crypto";

/** The files of an export by their paths. */
export type Files = ReadonlyMap<string, Buffer>;

/** A row as it is in an export. */
export interface ExportedRow {
  /** Bytes, because a leaf that is not text is a case too. */
  readonly leaf: Buffer;
  /** The line without its end. */
  readonly evidence: string;
}

export const partNames = ["call", "input", "platform", "reason", "outcome", "effects"] as const;
type PartName = (typeof partNames)[number];

/** The members of a row: each has a default, so that a case states only its subject. */
export interface RowPlan {
  readonly act?: string;
  /** The check's row, for a result. */
  readonly check?: number;
  readonly contract?: string | null;
  /** JSON texts of the parts. */
  readonly values?: Partial<Record<PartName, string>>;
  /** JSON texts of sensitive members by their names; `{"...":NAME}` in a value becomes the reference to one. */
  readonly sensitive?: Readonly<Record<string, string>>;
  /** Parts of which only the digest is kept, and for a sensitive member its name. */
  readonly erased?: readonly string[];
  /** Members of the leaf that replace the right ones. */
  readonly members?: Readonly<Record<string, unknown>>;
  /** Replaces the leaf's text. */
  readonly written?: (text: string) => string | Buffer;
  /** Replaces the line of evidence; the leaf still commits to the original line. */
  readonly line?: (line: string) => string;
}

export interface Signer {
  readonly name: string;
  readonly key: KeyObject;
  readonly vkey: string;
  readonly kind: 1 | 4;
}

export const sha256 = (...parts: readonly (Buffer | string)[]): Buffer => {
  const digest = createHash("sha256");
  for (const part of parts) digest.update(part);
  return digest.digest();
};

/** Returns a fixed key: its seed is the SHA-256 of a title. */
export function makeSigner(name: string, title: string, kind: 1 | 4 = 1): Signer {
  const seed = sha256(`svc-gate export vectors: ${title}`);
  const der = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), seed]);
  const key = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  const material = Buffer.concat([
    Buffer.of(kind),
    createPublicKey(key).export({ format: "der", type: "spki" }).subarray(12),
  ]);
  const id = sha256(`${name}\n`, material).toString("hex", 0, 4);
  return { name, key, kind, vkey: `${name}+${id}+${material.toString("base64")}` };
}

/** Returns a line that signs a note's text; a witness signs a timestamp with it. */
export function signatureLine({ name, key, vkey, kind }: Signer, text: string, seconds = 1_790_000_300): string {
  const id = Buffer.from(vkey.slice(name.length + 1, name.length + 9), "hex");
  const time = Buffer.alloc(kind === 4 ? 8 : 0);
  if (kind === 4) time.writeBigUInt64BE(BigInt(seconds));
  const message = kind === 4 ? `cosignature/v1\ntime ${seconds}\n${text}` : text;
  return `\u2014 ${name} ${Buffer.concat([id, time, sign(null, Buffer.from(message), key)]).toString("base64")}\n`;
}

/** MTH of RFC 6962, section 2.1. */
export function treeHash(leaves: readonly Buffer[]): Buffer {
  const [leaf] = leaves;
  if (leaf === undefined) return sha256();
  if (leaves.length === 1) return sha256("\0", leaf);
  let split = 1;
  while (split * 2 < leaves.length) split *= 2;
  return sha256("\u0001", treeHash(leaves.slice(0, split)), treeHash(leaves.slice(split)));
}

/** PATH of RFC 6962, section 2.1.1. */
export function auditPath(index: number, leaves: readonly Buffer[]): readonly Buffer[] {
  if (leaves.length === 1) return [];
  let split = 1;
  while (split * 2 < leaves.length) split *= 2;
  const [left, right] = [leaves.slice(0, split), leaves.slice(split)];
  return index < split
    ? [...auditPath(index, left), treeHash(right)]
    : [...auditPath(index - split, right), treeHash(left)];
}

const salt = (row: number, name: string): string => sha256(`salt ${row} ${name}`).toString("base64url").slice(0, 22);

const defaults: Record<PartName, string> = {
  call: '{"session_id":"run-1","tool_name":"note.add"}',
  input: '{"n":1}',
  platform: "null",
  reason: '"Svc: yes"',
  outcome: '{"counters":{},"errors":{},"fired":[]}',
  effects: "[]",
};

interface Part {
  readonly name: string;
  readonly disclosure: string;
  readonly digest: string;
}

export function disclosed(row: number, name: string, value: string): Part {
  const disclosure = Buffer.from(`["${salt(row, name)}","${name}",${value}]`).toString("base64url");
  return { name, disclosure, digest: sha256(disclosure).toString("base64url") };
}

/** The name of a sensitive member follows its digest. */
const nameOf = (name: string): string => (name.includes(".") ? name : "");

const withReferences = (value: string, apart: readonly Part[]): string =>
  apart.reduce((text, { name, digest }) => text.replace(`{"...":"${name}"}`, `{"...":"${digest}"}`), value);

/** Returns rows in a chain, with each hash made from the text as it is written. */
export function chain(log: string, plans: readonly RowPlan[]): readonly ExportedRow[] {
  let prev = "0".repeat(64);
  return plans.map((plan, index) => {
    const row = index + 1;
    const isChange = plan.act !== undefined;
    const isResult = plan.check !== undefined;
    const isCheck = !isChange && !isResult;
    const given = isResult ? { input: '{"digests":[]}', reason: "null" } : { call: "null" };
    const values = { ...defaults, ...(isCheck ? {} : { ...given, outcome: "{}" }), ...plan.values };
    const apart = Object.entries(plan.sensitive ?? {}).map(([name, value]) => disclosed(row, name, value));
    const six = partNames.map((name) => disclosed(row, name, withReferences(values[name], apart)));
    const parts = [...six, ...apart.toSorted((a, b) => (a.name < b.name ? -1 : 1))];
    const members: Record<string, unknown> = {
      ...(isChange ? { act: plan.act } : {}),
      ...(isResult ? { check: plan.check } : {}),
      answered: isCheck ? "ALLOW" : null,
      at: 1_790_000_000_000 + row,
      contract: plan.contract ?? null,
      engine: "svc-gate/1.0.0",
      evidence: sha256(
        parts
          .map(({ digest, name }) => digest + (nameOf(name) && `${nameOf(name)}~`))
          .toSorted()
          .join(""),
      ).toString("hex"),
      key: "default",
      kind: isResult ? "result" : isChange ? "change" : "check",
      log,
      mode: "enforce",
      prev,
      rule: isCheck ? "notes.$otherwise" : null,
      seq: row,
      tool: isChange ? null : "note.add",
      v: 1,
      verdict: isCheck ? "ALLOW" : null,
      ...plan.members,
    };
    const canonical = JSON.stringify(
      Object.fromEntries(Object.entries(members).toSorted(([a], [b]) => (a < b ? -1 : 1))),
    );
    const leaf = Buffer.from(plan.written?.(canonical) ?? canonical);
    prev = sha256("\0", leaf).toString("hex");
    const line = parts.map(({ name, disclosure, digest }) =>
      plan.erased?.includes(name) ? `!${digest}${nameOf(name)}` : disclosure,
    );
    return { leaf, evidence: plan.line?.(line.join("~")) ?? line.join("~") };
  });
}

export interface ExportPlan {
  readonly log: string;
  readonly rows: readonly ExportedRow[];
  readonly contracts: readonly string[];
  readonly signers: readonly Signer[];
  /** Values that replace the checkpoint's. */
  readonly size?: number;
  readonly root?: Buffer;
  /** Replaces the checkpoint's text. */
  readonly checkpoint?: (text: string) => string;
}

/** Returns the `.p/<W>` and the three digits of a tile or bundle of 256; these exports have fewer than 1000 of them. */
const numbered = (index: number, width: number): string =>
  `${String(index).padStart(3, "0")}${width === 256 ? "" : `.p/${width}`}`;

/** Returns all files of an export. */
export function exportFiles({ log, rows, contracts, signers, size, root, checkpoint }: ExportPlan): Files {
  const files = new Map<string, Buffer>();
  const leaves = rows.map(({ leaf }) => leaf);
  for (let [level, span] = [0, 1]; span <= rows.length; level += 1, span *= 256) {
    const hashes = Array.from({ length: Math.floor(rows.length / span) }, (_, at) =>
      treeHash(leaves.slice(at * span, (at + 1) * span)),
    );
    for (const [index, tile] of byWidth(hashes))
      files.set(`tile/${level}/${numbered(index, tile.length)}`, Buffer.concat(tile));
  }
  for (const [index, bundle] of byWidth(rows)) {
    files.set(
      `tile/entries/${numbered(index, bundle.length)}`,
      Buffer.concat(bundle.flatMap(({ leaf }) => entry(leaf))),
    );
    files.set(
      `evidence/${numbered(index, bundle.length)}`,
      Buffer.from(bundle.map(({ evidence }) => `${evidence}\n`).join("")),
    );
  }
  for (const text of contracts) files.set(`contracts/${sha256(text).toString("hex")}.txt`, Buffer.from(text));
  const note = `${log}\n${size ?? rows.length}\n${(root ?? treeHash(leaves)).toString("base64")}\n`;
  const signed = `${note}\n${signers.map((signer) => signatureLine(signer, note)).join("")}`;
  files.set("checkpoint", Buffer.from(checkpoint?.(signed) ?? signed));
  const vkeys = signers.filter(({ kind }) => kind === 1).map(({ vkey }) => vkey);
  const hint = { format: "svc-gate-export/1", log, size: size ?? rows.length, vkeys };
  files.set("log.json", Buffer.from(`${JSON.stringify(hint)}\n`));
  return files;
}

function entry(leaf: Buffer): readonly Buffer[] {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(leaf.length);
  return [length, leaf];
}

function byWidth<Item>(items: readonly Item[]): readonly (readonly [place: number, items: readonly Item[]])[] {
  const groups: [number, readonly Item[]][] = [];
  for (let at = 0; at < items.length; at += 256) groups.push([at / 256, items.slice(at, at + 256)]);
  return groups;
}

/** Returns a C2SP tlog-proof of one row. */
export function proofFile(rows: readonly ExportedRow[], index: number, checkpoint: string): string {
  const leaves = rows.map(({ leaf }) => leaf);
  const lines = [
    "c2sp.org/tlog-proof@v1",
    `extra ${leaves[index]?.toString("base64")}`,
    `index ${index}`,
    ...auditPath(index, leaves).map((hash) => hash.toString("base64")),
  ];
  return `${lines.join("\n")}\n\n${checkpoint}`;
}
