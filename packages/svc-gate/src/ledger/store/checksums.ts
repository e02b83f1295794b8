import { hash } from "node:crypto";
import type { KeptCounter } from "./store.ts";

/** A checksum that reveals a changed row of a counter. The counter's digest protects its definition. */
export function counterChecksum(kept: KeptCounter): string {
  const { id, digest, through, unknownThrough, resetThrough, folded } = kept;
  return hash("sha256", JSON.stringify([id, digest, through, unknownThrough, resetThrough, folded]), "hex");
}

/** True if a counter's row is unchanged. */
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

/** A checksum of an event that an outcome took back, found by a fold. No receipt commits to it under this counter. */
export function takenChecksum(
  event: Omit<FoldedTotal, "before" | "total"> & { readonly amount: string; readonly takenBy: number },
): string {
  const { counter, key, at, seq, amount, takenBy } = event;
  return hash(
    "sha256",
    JSON.stringify([counter, Buffer.from(key).toString("hex"), at, seq, amount, takenBy]),
    "base64url",
  );
}

/** A checksum of an event that a fold found. No receipt commits to such an event, so its row protects itself. */
export function foldChecksum({ counter, key, at, seq, total, before }: FoldedTotal): string {
  return hash(
    "sha256",
    JSON.stringify([counter, Buffer.from(key).toString("hex"), at, seq, total, before ?? null]),
    "base64url",
  );
}
