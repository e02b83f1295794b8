import { hash } from "node:crypto";
import type { Counters, Entry, KeptCounter } from "./tables.ts";
import { LedgerRefused } from "../errors.ts";

/** A checksum that reveals a changed row of a counter. The counter's digest protects its definition. */
export function counterChecksum(kept: KeptCounter): string {
  const { id, digest, through, unknownThrough, resetThrough, folded } = kept;
  return hash("sha256", JSON.stringify([id, digest, through, unknownThrough, resetThrough, folded]), "hex");
}

/** The counters from the columns of their table, which a database returns as numbers or as texts. */
export function countersOf(rows: readonly (readonly unknown[])[]): Counters {
  let damaged: KeptCounter | undefined;
  const kept = rows.map(([id, digest, definition, through, unknownThrough, resetThrough, folded, seal]) => {
    const counter = {
      id: Number(id),
      digest: String(digest),
      definition: String(definition),
      through: through === null ? null : Number(through),
      unknownThrough: Number(unknownThrough),
      resetThrough: Number(resetThrough),
      folded: Number(folded),
    };
    const isWhole = seal === counterChecksum(counter) && hash("sha256", counter.definition, "hex") === counter.digest;
    if (!isWhole) damaged ??= counter;
    return counter;
  });
  return { kept, damaged };
}

/**
 * The counters by digest.
 *
 * @param where a damaged counter is, for the message; `whole` is what to restore
 * @throws {LedgerRefused} if a counter's own row was changed
 */
export function soundCounters(
  { kept, damaged }: Counters,
  [where, whole]: readonly [string, string],
): ReadonlyMap<string, KeptCounter> {
  if (damaged === undefined) return new Map(kept.map((counter) => [counter.digest, counter]));
  throw new LedgerRefused(`the counter ${damaged.id} ${where} is damaged: restore ${whole} from a backup`);
}

/** The entry of a counter, with its checksum. */
export function counterEntry(kept: KeptCounter): Entry<"counters"> {
  const { id, digest, definition, through, unknownThrough, resetThrough, folded } = kept;
  const numbers = { unknown_through: unknownThrough, reset_through: resetThrough, folded };
  return { id, digest, definition, through, ...numbers, seal: counterChecksum(kept) };
}

/** An event that a fold of older rows found, with the totals of its key. */
interface FoldedTotal {
  /** The counter's digest. */
  readonly counter: string;
  /** The key's digest. */
  readonly key: string;
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
  return hash("sha256", JSON.stringify([counter, key, at, seq, amount, takenBy]), "base64url");
}

/** A checksum of an event that a fold found. No receipt commits to such an event, so its row protects itself. */
export function foldChecksum({ counter, key, at, seq, total, before }: FoldedTotal): string {
  return hash("sha256", JSON.stringify([counter, key, at, seq, total, before ?? null]), "base64url");
}
