import { createHash } from "node:crypto";

/** A row, as it is read back to be recomputed. */
export interface Row {
  readonly seq: number;
  readonly session: string | null;
  readonly tool: string;
  readonly leaf: string;
  readonly evidence: string;
}

export interface Leaf {
  readonly act: string | null;
  readonly at: number;
  readonly contract: string;
  readonly evidence: string;
  readonly kind: string;
  readonly prev: string;
  readonly seq: number;
}

export function leafOf({ leaf }: Row): Leaf {
  return JSON.parse(leaf) as Leaf;
}

export function hashOf({ leaf }: Row): string {
  return createHash("sha256").update("\0").update(leaf).digest("hex");
}

/** Returns the digest that a leaf commits to; for an erased part it is all that is left. */
export function evidenceOf({ evidence }: Row): string {
  const digests = evidence.split("~").map((text) => {
    return text.startsWith("!") ? text.slice(1) : createHash("sha256").update(text).digest("base64url");
  });
  return createHash("sha256").update(digests.toSorted().join("")).digest("hex");
}

/** Returns the stored parts, by name. */
export function disclosuresOf({ evidence }: Row): ReadonlyMap<string, string> {
  const there = evidence.split("~").filter((text) => !text.startsWith("!"));
  return new Map(there.map((text) => [read(text)[1], text]));
}

/** Returns a part's value; undefined if it was erased. */
export function part(row: Row, name: string): unknown {
  const text = disclosuresOf(row).get(name);
  return text && read(text)[2];
}

function read(disclosure: string): readonly [salt: string, name: string, value: unknown] {
  return JSON.parse(Buffer.from(disclosure, "base64url").toString());
}
