import { hash } from "node:crypto";
import type { KeptCounter } from "./store.ts";

/** Tells a counter's row that was changed apart from one that was written; its definition is under its digest. */
export function counterChecksum(kept: KeptCounter): string {
  const { id, digest, through, unknownThrough, resetThrough, folded } = kept;
  return hash("sha256", JSON.stringify([id, digest, through, unknownThrough, resetThrough, folded]), "hex");
}

/** Is a counter's row the one that was written? */
export function isWhole(kept: KeptCounter, checksum: unknown): boolean {
  return checksum === counterChecksum(kept) && hash("sha256", kept.definition, "hex") === kept.digest;
}

/** An event that a fold of older rows found, with the totals of its key. */
interface FoldedTotal {
  /** The counter's digest. */
  readonly counter: string;
  readonly key: Uint8Array;
  readonly at: number;
  readonly seq: number;
  readonly total: string;
  /** The total before the event, if its key had one. */
  readonly before: string | null | undefined;
}

/** No receipt commits to an event that was folded later, so its row carries a digest of itself and of the one before. */
export function foldChecksum({ counter, key, at, seq, total, before }: FoldedTotal): string {
  return hash(
    "sha256",
    JSON.stringify([counter, Buffer.from(key).toString("hex"), at, seq, total, before ?? null]),
    "base64url",
  );
}
