import { createHash, createPublicKey, verify } from "node:crypto";
import { hashOf, leafOf, part, type Row } from "./rows.ts";

/** A head that has left the gate. */
export interface Head {
  readonly size: number;
  /** Base64. */
  readonly root: string;
  /** The signed note. */
  readonly checkpoint: string;
}

export function headOf(checkpoint: string): Head {
  const [, size = "", root = ""] = checkpoint.split("\n");
  return { size: Number(size), root, checkpoint };
}

/** Checks that no head covers lost or other rows: each published head is one of a prefix of this history. */
export function headProblem(rows: readonly Row[], heads: Iterable<Pick<Head, "root" | "size">>): string | undefined {
  const tree = new Tree(rows.map((row) => Buffer.from(hashOf(row), "hex")));
  for (const { size, root } of heads) {
    if (size > rows.length)
      return `LOST: a head over ${size} rows was signed, and the ledger ends at row ${rows.length}`;
    if (tree.root(size) !== root) return `the head that was signed over ${size} rows is not that of this history`;
  }
  return undefined;
}

/**
 * Checks that each head is signed by the key on record in its last row, and that the rows that change that key are
 * consecutive.
 *
 * @param now verifier keys of the gate that has these rows
 */
export function signerProblem(rows: readonly Row[], heads: Iterable<Head>, now: readonly string[]): string | undefined {
  const changes = rows.flatMap((row) => {
    const { act, seq } = leafOf(row);
    return act === "signer.rotate" ? [{ seq, ...(part(row, "input") as Rotation) }] : [];
  });
  const signers = [{ seq: 0, to: changes[0]?.from ?? now.at(-1) ?? "" }, ...changes];
  for (const [index, { from, seq }] of changes.entries())
    if (signers[index]?.to !== from) return `row ${seq} rotates the key ${from}, which does not sign`;
  const last = signers.at(-1)?.to ?? "";
  if (!now.includes(last)) return `the key ${last} is on record, and the gate signs with ${now.join(", ")}`;
  for (const { size, checkpoint } of heads) {
    const signer = signers.findLast(({ seq }) => seq <= size)?.to ?? "";
    if (!isSignedBy(checkpoint, signer))
      return `the head over ${size} rows is not signed by the key on record, ${signer}`;
  }
  return undefined;
}

interface Rotation {
  readonly from: string;
  readonly to: string;
}

/** The bytes before the 32 bytes of an Ed25519 public key in DER. */
const spki = Buffer.from("302a300506032b6570032100", "hex");

/**
 * Verifies a signature line of C2SP's signed-note: `— NAME` and, in base64, four bytes of the key's id and the
 * signature.
 */
function isSignedBy(note: string, verifierKey: string): boolean {
  const [, name = "", id = "", key = ""] = /^(.*)\+([0-9a-f]{8})\+(.*)$/.exec(verifierKey) ?? [];
  const end = note.indexOf("\n\n") + 1;
  const publicKey = createPublicKey({
    key: Buffer.concat([spki, Buffer.from(key, "base64").subarray(1)]),
    format: "der",
    type: "spki",
  });
  const lines = note.slice(end + 1).split("\n");
  return lines.some((line) => {
    const signature = Buffer.from(line.slice(`\u2014 ${name} `.length), "base64");
    const isOfKey = line.startsWith(`\u2014 ${name} `) && signature.toString("hex", 0, 4) === id;
    return isOfKey && verify(null, Buffer.from(note.slice(0, end)), publicKey, signature.subarray(4));
  });
}

/** The hash of RFC 6962, section 2.1, as written there, with a cache of computed values. */
class Tree {
  readonly #leaves: readonly Buffer[];
  readonly #known = new Map<string, Buffer>();

  constructor(leaves: readonly Buffer[]) {
    this.#leaves = leaves;
  }

  root(size: number): string {
    return this.#hash(0, size).toString("base64");
  }

  #hash(from: number, to: number): Buffer {
    const pair = `${from} ${to}`;
    const known = this.#known.get(pair) ?? this.#compute(from, to);
    this.#known.set(pair, known);
    return known;
  }

  #compute(from: number, to: number): Buffer {
    if (to - from === 0) return createHash("sha256").digest();
    if (to - from === 1) return this.#leaves[from] ?? Buffer.alloc(0);
    let half = 1;
    while (half * 2 < to - from) half *= 2;
    const [left, right] = [this.#hash(from, from + half), this.#hash(from + half, to)];
    return createHash("sha256").update("\u0001").update(left).update(right).digest();
  }
}
