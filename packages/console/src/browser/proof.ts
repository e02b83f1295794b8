import type { RecordedJudgement } from "../../../core/src/approvals/mod.ts";
import type { ReceiptJson } from "../../../core/src/wire/mod.ts";
import { ask, headers, base } from "./gate.ts";
import { bytesOf, digestEnd, fixedParts, isShownTruly, memberName, partOf } from "./evidence.ts";

/** One step of a proof, and whether it is true. */
export interface Step {
  readonly what: string;
  readonly isTrue: boolean;
}

export interface Proof {
  readonly steps: readonly Step[];
  /** The row in the signed tree as one file (C2SP tlog-proof), which `svc-gate verify` and the small verifiers read. */
  readonly file: string;
  /** The key that signed the head: a C2SP vkey, as the gate names it. */
  readonly signer: string;
}

type Bytes = Uint8Array<ArrayBuffer>;

const tileWidth = 256;
const tileHeight = 8;
const hashBytes = 32;

/**
 * Proves in this browser that a receipt is in the ledger: its parts hash to the leaf's commitment, the leaf is in the
 * tree of the signed head, and the gate's key has signed that head.
 *
 * @throws {Error} with a sentence if the gate does not answer
 */
export async function prove(
  receipt: ReceiptJson,
  raw: Readonly<Record<string, string>>,
  vkeys: readonly string[],
): Promise<Proof> {
  const note = await ask<string>("/checkpoint");
  if (!note.ok) throw new Error(note.problem.detail);
  const [, rows, headRoot = ""] = note.value.split("\n");
  const size = Number(rows);
  if (size < receipt.seq) throw new Error("The gate has not signed this row yet. Load the page again.");
  const leaf = await sha256(utf8(`\0${receipt.leaf}`));
  const path = await inclusion(tilesOf(size), receipt.seq - 1, size);
  const root = await rootFrom(leaf, path);
  const signer = await signerOf(note.value, vkeys);
  const commitment = (JSON.parse(receipt.leaf) as { readonly evidence: string }).evidence;
  return {
    steps: [
      { what: "this page shows what the leaf and the evidence say", isTrue: isShownTruly(receipt, raw) },
      {
        what: "the parts of the evidence hash to the digest in the leaf",
        isTrue: (await evidenceDigest(receipt)) === commitment,
      },
      { what: "the leaf hashes to the hash of this receipt", isTrue: leaf.toHex() === receipt.hash },
      {
        what: `the leaf is row ${receipt.seq} of the signed tree, which has ${size} ${size === 1 ? "row" : "rows"}`,
        isTrue: root.toHex() === bytesOf(headRoot).toHex(),
      },
      { what: "the gate's key has signed the root of that tree", isTrue: signer !== undefined },
    ],
    file: proofText(receipt, path, note.value),
    signer: signer ?? "",
  };
}

/** SHA-256 over the sorted digests of the parts (spec/receipt.md); a member's digest is followed by its name. */
async function evidenceDigest({ evidence }: ReceiptJson): Promise<string> {
  const digests = await Promise.all(evidence.map((part, at) => digestOf(part, at)));
  return (await sha256(utf8(digests.toSorted().join("")))).toHex();
}

async function digestOf(part: string, at: number): Promise<string> {
  const digest = part.startsWith("!")
    ? part.slice(1, digestEnd)
    : (await sha256(utf8(part))).toBase64({ alphabet: "base64url", omitPadding: true });
  return at < fixedParts ? digest : `${digest}${memberName(part)}~`;
}

/** The key among these that has signed the note (C2SP signed-note, Ed25519); undefined if none has. */
async function signerOf(note: string, vkeys: readonly string[]): Promise<string | undefined> {
  const end = note.lastIndexOf("\n\n");
  const signed = utf8(note.slice(0, end + 1));
  for (const line of note.slice(end + 2).split("\n")) {
    const [, name, text] = /^\u2014 ([^ ]+) ([^ ]+)$/.exec(line) ?? [];
    for (const vkey of vkeys) {
      const [, keyName, id, encoded = ""] = /^([^+]+)\+([0-9a-f]{8})\+(.+)$/.exec(vkey) ?? [];
      const bytes = text === undefined ? new Uint8Array() : bytesOf(text);
      if (keyName !== name || bytes.slice(0, 4).toHex() !== id) continue;
      const key = await crypto.subtle.importKey("raw", bytesOf(encoded).slice(1), { name: "Ed25519" }, false, [
        "verify",
      ]);
      if (await crypto.subtle.verify("Ed25519", key, bytes.slice(4), signed)) return vkey;
    }
  }
  return undefined;
}

/** Adjacent hashes of a level of the tree. */
type TileReader = (level: number, from: number, count: number) => Promise<readonly Bytes[]>;

/** Reads hashes from the tiles of a tree (C2SP tlog-tiles). Each tile is read once. */
function tilesOf(size: number): TileReader {
  const tiles = new Map<string, Promise<Bytes>>();
  return async (level, from, count) => {
    const found: Bytes[] = [];
    for (let at = from; at < from + count; at += 1) {
      const name = tileName(size, level, Math.floor(at / tileWidth));
      const tile = tiles.get(name) ?? fetchTile(name);
      tiles.set(name, tile);
      const start = (at % tileWidth) * hashBytes;
      found.push((await tile).slice(start, start + hashBytes));
    }
    return found;
  };
}

function tileName(size: number, level: number, index: number): string {
  const width = Math.min(tileWidth, Math.floor(size / tileWidth ** level) - index * tileWidth);
  const digits = String(index).padStart(Math.ceil(String(index).length / 3) * 3, "0");
  return `${level}/${digits.replaceAll(/...(?=.)/g, "x$&/")}${width === tileWidth ? "" : `.p/${width}`}`;
}

async function fetchTile(name: string): Promise<Bytes> {
  const answer = await fetch(`${base}/api/tile/${name}`, { headers: headers() });
  if (!answer.ok) throw new Error(`The gate does not give the tile ${name}.`);
  return new Uint8Array(await answer.arrayBuffer());
}

interface Beside {
  readonly hash: Bytes;
  /** True if the hash is to the right of the path. */
  readonly isRight: boolean;
}

/** The hashes beside the path from a leaf to the root: RFC 6962, section 2.1.1. */
async function inclusion(read: TileReader, index: number, size: number): Promise<readonly Beside[]> {
  const path: Beside[] = [];
  let [from, to] = [0, size];
  while (to - from > 1) {
    const split = from + splitOf(to - from);
    const isRight = index < split;
    path.push({ hash: await (isRight ? rootOf(read, split, to) : rootOf(read, from, split)), isRight });
    if (isRight) to = split;
    else from = split;
  }
  return path.toReversed();
}

/** The root of the leaves from `from` up to `to`. */
async function rootOf(read: TileReader, from: number, to: number): Promise<Bytes> {
  const size = to - from;
  const height = Math.log2(size);
  if (!Number.isInteger(height)) {
    const split = from + splitOf(size);
    return nodeHash(await rootOf(read, from, split), await rootOf(read, split, to));
  }
  const level = Math.floor(height / tileHeight);
  let row = await read(level, from / tileWidth ** level, 2 ** (height % tileHeight));
  while (row.length > 1) row = await Promise.all(pairs(row).map(([left, right]) => nodeHash(left, right)));
  return row[0] ?? new Uint8Array();
}

function pairs(row: readonly Bytes[]): readonly (readonly [Bytes, Bytes])[] {
  const empty = new Uint8Array();
  return Array.from({ length: row.length / 2 }, (_, at) => [row[2 * at] ?? empty, row[2 * at + 1] ?? empty] as const);
}

/** The largest power of two below a size. */
function splitOf(size: number): number {
  return 2 ** (Math.ceil(Math.log2(size)) - 1);
}

/** The root that a leaf and the hashes beside its path give. */
async function rootFrom(leaf: Bytes, path: readonly Beside[]): Promise<Bytes> {
  let hashed = leaf;
  for (const { hash, isRight } of path) hashed = await (isRight ? nodeHash(hashed, hash) : nodeHash(hash, hashed));
  return hashed;
}

function nodeHash(left: Bytes, right: Bytes): Promise<Bytes> {
  const text = new Uint8Array(1 + left.length + right.length);
  text[0] = 1;
  text.set(left, 1);
  text.set(right, 1 + left.length);
  return sha256(text);
}

function proofText({ leaf, seq }: ReceiptJson, path: readonly Beside[], checkpoint: string): string {
  const hashes = path.map(({ hash }) => hash.toBase64());
  const lines = ["c2sp.org/tlog-proof@v1", `extra ${utf8(leaf).toBase64()}`, `index ${seq - 1}`, ...hashes];
  return `${lines.join("\n")}\n\n${checkpoint}`;
}

async function sha256(bytes: Bytes): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

function utf8(text: string): Bytes {
  return new TextEncoder().encode(text);
}

/** The result of a call for which a person was asked: the member `asked` of the part `outcome`. */
export function findJudgement(receipt: ReceiptJson): RecordedJudgement | undefined {
  const text = partOf(receipt, "outcome");
  if (text === undefined || !text.includes('"asked":')) return undefined;
  return (JSON.parse(text) as { readonly asked?: RecordedJudgement }).asked;
}
