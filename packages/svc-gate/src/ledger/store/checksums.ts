import { hash } from "node:crypto";
import type { KeptCounter } from "./store.ts";

/** From when a lookup counts: a window that reaches back before a reset begins with it. */
export function countedAfter(after: number, { resetThrough }: Pick<KeptCounter, "resetThrough">): number {
  return Math.max(after, resetThrough);
}

/** Tells a counter's row that was changed apart from one that was written; its definition is under its digest. */
export function counterChecksum(kept: KeptCounter): string {
  const { id, digest, through, unknownThrough, resetThrough, folded } = kept;
  return hash("sha256", JSON.stringify([id, digest, through, unknownThrough, resetThrough, folded]), "hex");
}

/** Is a counter's row the one that was written? */
export function isWhole(kept: KeptCounter, checksum: unknown): boolean {
  return checksum === counterChecksum(kept) && hash("sha256", kept.definition, "hex") === kept.digest;
}

/** One event that a fold of older rows found, with the total of its key before it. */
export interface FoldedEvent {
  /** The counter's digest. */
  readonly counter: string;
  readonly key: Uint8Array;
  readonly at: number;
  readonly seq: number;
  readonly total: string;
  readonly before: string | undefined;
}

/** No receipt commits to an event that was folded later, so its row carries a digest of itself and of the one before. */
export function foldChecksum({ counter, key, at, seq, total, before }: FoldedEvent): string {
  return hash(
    "sha256",
    JSON.stringify([counter, Buffer.from(key).toString("hex"), at, seq, total, before ?? null]),
    "base64url",
  );
}
