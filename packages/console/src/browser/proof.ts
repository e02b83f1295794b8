import type { RecordedAsk } from "../../../core/src/approvals/mod.ts";
import type { ReceiptJson } from "../../../core/src/wire/mod.ts";
import { ask, headers, base } from "./gate.ts";
import { bytesOf, digestEnd, fixedParts, isShownTruly, memberName, partOf } from "./evidence.ts";

/** One step of a proof, and whether it holds. */
export interface Step {
  readonly what: string;
  readonly holds: boolean;
}

export interface Proof {
  readonly steps: readonly Step[];
  /** The row in the signed tree as one file (C2SP tlog-proof), which `svc-gate verify` and the small verifiers read. */
  readonly file: string;
  /** The key that signed the head: a C2SP vkey, as the gate names it. */
  readonly signer: string;
  readonly size: number;
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
  const head = readHead(note.value);
  if (head.size < receipt.seq) throw new Error("The gate has not signed this row yet. Load the page again.");
  const leaf = await leafHash(receipt.leaf);
  const tiles = new Tiles(head.size);
  const path = await inclusion(tiles, receipt.seq - 1, head.size);
  const root = await rootFrom(leaf, receipt.seq - 1, head.size, path);
  const signer = await signerOf(note.value, vkeys);
  const commitment = (JSON.parse(receipt.leaf) as { readonly evidence: string }).evidence;
  return {
    steps: [
      { what: "this page shows what the leaf and the evidence say", holds: isShownTruly(receipt, raw) },
      {
        what: "the parts of the evidence hash to the digest in the leaf",
        holds: (await evidenceDigest(receipt)) === commitment,
      },
      { what: "the leaf hashes to the hash of this receipt", holds: hex(leaf) === receipt.hash },
      {
        what: `the leaf is row ${receipt.seq} of the signed tree, which has ${head.size} ${head.size === 1 ? "row" : "rows"}`,
        holds: hex(root) === head.root,
      },
      { what: "the gate's key has signed the root of that tree", holds: signer !== undefined },
    ],
    file: proofText(receipt, path, note.value),
    signer: signer ?? "",
    size: head.size,
  };
}

/** SHA-256 over the sorted digests of the parts (spec/receipt.md); a member's digest is followed by its name. */
async function evidenceDigest({ evidence }: ReceiptJson): Promise<string> {
  const digests = await Promise.all(evidence.map((part, at) => digestOf(part, at)));
  return hex(await sha256(utf8(digests.toSorted(byCharacters).join(""))));
}

function byCharacters(one: string, other: string): number {
  return one < other ? -1 : 1;
}

async function digestOf(part: string, at: number): Promise<string> {
  const isErased = part.startsWith("!");
  const digest = isErased ? part.slice(1, digestEnd) : base64url(await sha256(utf8(part)));
  if (at < fixedParts) return digest;
  return `${digest}${memberName(part)}~`;
}

interface Head {
  readonly size: number;
  readonly root: string;
}

function readHead(note: string): Head {
  const [, size = "", root = ""] = note.split("\n");
  return { size: Number(size), root: hex(bytesOf(root)) };
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
      if (keyName !== name || hex(bytes.slice(0, 4)) !== id) continue;
      const key = await crypto.subtle.importKey("raw", bytesOf(encoded).slice(1), { name: "Ed25519" }, false, [
        "verify",
      ]);
      if (await crypto.subtle.verify("Ed25519", key, bytes.slice(4), signed)) return vkey;
    }
  }
  return undefined;
}

/** The tiles of the tree (C2SP tlog-tiles), each read once. */
class Tiles {
  readonly #size: number;
  readonly #read = new Map<string, Promise<Bytes>>();

  constructor(size: number) {
    this.#size = size;
  }

  async hashes(level: number, from: number, count: number): Promise<readonly Bytes[]> {
    const found: Bytes[] = [];
    for (let at = from; at < from + count; at += 1) {
      const index = Math.floor(at / tileWidth);
      const bytes = await this.#tile(level, index);
      const start = (at % tileWidth) * hashBytes;
      found.push(bytes.slice(start, start + hashBytes));
    }
    return found;
  }

  #tile(level: number, index: number): Promise<Bytes> {
    const width = Math.min(tileWidth, Math.floor(this.#size / tileWidth ** level) - index * tileWidth);
    const digits = String(index).padStart(Math.ceil(String(index).length / 3) * 3, "0");
    const path = `${digits.replaceAll(/...(?=.)/g, "x$&/")}${width === tileWidth ? "" : `.p/${width}`}`;
    const name = `${level}/${path}`;
    const known = this.#read.get(name) ?? fetchTile(name);
    this.#read.set(name, known);
    return known;
  }
}

async function fetchTile(name: string): Promise<Bytes> {
  const answer = await fetch(`${base}/api/tile/${name}`, { headers: headers() });
  if (!answer.ok) throw new Error(`The gate does not give the tile ${name}.`);
  return new Uint8Array(await answer.arrayBuffer());
}

/** The hashes beside the path from a leaf to the root: RFC 6962, section 2.1.1. */
async function inclusion(tiles: Tiles, index: number, size: number): Promise<readonly Bytes[]> {
  const path: Bytes[] = [];
  let [from, to] = [0, size];
  while (to - from > 1) {
    const split = from + splitOf(to - from);
    path.push(await (index < split ? rootOf(tiles, split, to) : rootOf(tiles, from, split)));
    if (index < split) to = split;
    else from = split;
  }
  return path.toReversed();
}

/** The root of the leaves from `from` up to `to`. */
async function rootOf(tiles: Tiles, from: number, to: number): Promise<Bytes> {
  const size = to - from;
  const height = Math.log2(size);
  if (!Number.isInteger(height)) {
    const split = from + splitOf(size);
    return nodeHash(await rootOf(tiles, from, split), await rootOf(tiles, split, to));
  }
  const level = Math.floor(height / tileHeight);
  let row = await tiles.hashes(level, from / tileWidth ** level, 2 ** (height % tileHeight));
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
async function rootFrom(leaf: Bytes, index: number, size: number, path: readonly Bytes[]): Promise<Bytes> {
  const sides: boolean[] = [];
  let [from, to] = [0, size];
  while (to - from > 1) {
    const split = from + splitOf(to - from);
    sides.push(index < split);
    if (index < split) to = split;
    else from = split;
  }
  let hashed = leaf;
  for (const [at, isLeft] of sides.toReversed().entries()) {
    const other = path[at] ?? new Uint8Array();
    hashed = await (isLeft ? nodeHash(hashed, other) : nodeHash(other, hashed));
  }
  return hashed;
}

function leafHash(leaf: string): Promise<Bytes> {
  return sha256(utf8(`\0${leaf}`));
}

function nodeHash(left: Bytes, right: Bytes): Promise<Bytes> {
  const text = new Uint8Array(1 + left.length + right.length);
  text[0] = 1;
  text.set(left, 1);
  text.set(right, 1 + left.length);
  return sha256(text);
}

function proofText({ leaf, seq }: ReceiptJson, path: readonly Bytes[], checkpoint: string): string {
  const lines = ["c2sp.org/tlog-proof@v1", `extra ${base64(utf8(leaf))}`, `index ${seq - 1}`, ...path.map(base64)];
  return `${lines.join("\n")}\n\n${checkpoint}`;
}

async function sha256(bytes: Bytes): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

function utf8(text: string): Bytes {
  return new TextEncoder().encode(text);
}

function hex(bytes: Bytes): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function base64(bytes: Bytes): string {
  return btoa([...bytes].map((byte) => String.fromCharCode(byte)).join(""));
}

function base64url(bytes: Bytes): string {
  return base64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** What became of a call for which a person was asked: the member `asked` of the part `outcome`. */
export function askedIn(receipt: ReceiptJson): RecordedAsk | undefined {
  const text = partOf(receipt, "outcome");
  if (text === undefined || !text.includes('"asked":')) return undefined;
  return (JSON.parse(text) as { readonly asked?: RecordedAsk }).asked;
}
