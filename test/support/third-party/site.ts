import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { leafHash } from "../../../packages/core/src/record/entry/leaf.ts";
import { Frontier } from "../../../packages/core/src/record/tree/merkle.ts";
import { makeSigningKey, Signer } from "../../../packages/gate/src/ledger/signing/signing-key.ts";
import {
  consistencyProof,
  entryBundle,
  inclusionProof,
  levelsOf,
  rootAt,
  tilePath,
  tilesOf,
  type HashReader,
} from "../../../packages/core/src/record/tree/tiles.ts";
import { canonical } from "../../../packages/core/src/wire/mod.ts";

/** A log made by the tree's functions, without a gate, for shapes that a gate would need long to grow. */
export interface Log {
  readonly texts: readonly string[];
  readonly signer: Signer;
  readonly read: HashReader;
  readonly vkey: string;
  /** Returns the signed head over the first rows. */
  checkpoint(size?: number): Promise<string>;
  inclusion(index: number, size?: number): Promise<readonly Buffer[]>;
  consistency(from: number, size?: number): Promise<readonly Buffer[]>;
}

export interface LogOptions {
  readonly origin?: string;
  readonly size: number;
  readonly signer?: Signer;
  /** From this row on the texts differ: a second history. */
  readonly fork?: number;
}

export function makeLog({ origin = "svc-gate/third", size, signer, fork = Infinity }: LogOptions): Log {
  const texts = Array.from({ length: size }, (_, at) =>
    canonical({ log: origin, seq: at + 1, say: at >= fork ? "another" : "é\u20ac" }),
  );
  const keys = signer ?? new Signer(origin, { current: makeSigningKey(), before: undefined });
  const leaves = texts.map((text) => Buffer.from(leafHash(text), "hex"));
  const frontier = new Frontier();
  const nodes = new Map<string, Buffer>();
  for (const leaf of leaves)
    for (const { level, index, hash } of frontier.append(leaf.toString("hex"))) nodes.set(`${level} ${index}`, hash);
  const read: HashReader = async (level, from, count) => {
    const indexes = Array.from({ length: count }, (_, at) => from + at);
    return Buffer.concat(indexes.map((at) => (level === 0 ? leaves[at] : nodes.get(`${level} ${at}`)) ?? Buffer.of()));
  };
  return {
    texts,
    signer: keys,
    read,
    vkey: keys.verifiers[0]?.text ?? "",
    checkpoint: async (at = size) => keys.sign({ origin, size: at, root: await rootAt(read, at) }),
    inclusion: (index, at = size) => inclusionProof(read, index, at),
    consistency: (from, at = size) => consistencyProof(read, from, at),
  };
}

/** Writes a log as C2SP tlog-tiles requires: every tile, every bundle of entries, the checkpoint. */
export async function writeSite(folder: string, log: Log): Promise<void> {
  const { texts, read } = log;
  const size = texts.length;
  const write = (path: string, bytes: string | Buffer): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), bytes);
  };
  for (const level of levelsOf(size)) {
    for (const tile of tilesOf(size, level)) write(tilePath(tile), await read(level, tile.index * 256, tile.width));
  }
  for (const tile of tilesOf(size, "entries"))
    write(tilePath(tile), entryBundle(texts.slice(tile.index * 256, tile.index * 256 + tile.width)));
  write("checkpoint", await log.checkpoint());
}
