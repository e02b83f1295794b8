import { hash } from "node:crypto";
import type { ContractInForce, Lookup, Move } from "../../contract/mod.ts";
import { countersOf, recountRow, type Owned } from "../../gate/mod.ts";
import { Book } from "../book.ts";
import type { History } from "../history.ts";
import { readLeaf, recordedAt } from "./recorded.ts";

/** How far the history of a counter is known. */
interface Kept {
  /** The last row that it counted before it left; undefined while it is in force. */
  through: number | undefined;
  /** Milliseconds: a window that reaches back to it lacks what it needs; -1 when nothing is lacking. */
  unknownThrough: number;
}

/**
 * Counters while a history is decided again, as the ledger kept them while it was written: one that comes into force is
 * folded from the rows before, one that leaves stays where it stands.
 */
export class Standing {
  readonly #book = new Book();
  readonly #kept = new Map<string, Kept>();
  readonly #history: History;

  constructor(history: History) {
    this.#history = history;
  }

  /** Brings the counters in line with what is in force from a row on. */
  async align(force: ContractInForce, from: number): Promise<void> {
    const owned = countersOf(force);
    const inForce = new Set(owned.map(({ counter }) => counter.identity));
    for (const [identity, kept] of this.#kept) if (!inForce.has(identity)) kept.through ??= from - 1;
    const missing = owned.filter(({ counter }) => {
      const kept = this.#kept.get(counter.identity);
      return kept === undefined || kept.through !== undefined;
    });
    const isFolded = ({ identity, startsEmpty }: Owned["counter"]): boolean => !startsEmpty || this.#kept.has(identity);
    const folded = missing.filter(({ counter }) => isFolded(counter) && this.#next(counter.identity) < from);
    if (folded.length > 0) await this.#fold(folded, from);
    for (const { counter } of missing)
      this.#kept.set(counter.identity, { through: undefined, unknownThrough: this.#unknown(counter.identity) });
  }

  #next(identity: string): number {
    return (this.#kept.get(identity)?.through ?? 0) + 1;
  }

  #unknown(identity: string): number {
    return this.#kept.get(identity)?.unknownThrough ?? -1;
  }

  /** One pass over the older rows for all of them. */
  async #fold(counters: readonly Owned[], before: number): Promise<void> {
    for await (const slice of this.#history.scan(
      Math.min(...counters.map(({ counter }) => this.#next(counter.identity))),
    )) {
      for (const row of slice) {
        const { seq, evidence } = row;
        if (seq >= before) return;
        const read = readLeaf(row);
        const leaf = typeof read === "string" ? undefined : read;
        for (const owned of counters) {
          if (seq < this.#next(owned.counter.identity)) continue;
          const moves = leaf === undefined ? undefined : recountRow(owned, leaf, evidence);
          if (moves === undefined) this.#lacks(owned.counter.identity, leaf?.at ?? recordedAt(row.leaf));
          else for (const move of moves) this.#book.add(move, leaf?.at ?? 0);
        }
      }
    }
  }

  #lacks(identity: string, at: number): void {
    const through = this.#kept.get(identity)?.through ?? 0;
    this.#kept.set(identity, { through, unknownThrough: Math.max(this.#unknown(identity), at) });
  }

  /** A row that cannot be decided again leaves every counter in force without what it may have moved. */
  skip(at: number): void {
    for (const kept of this.#kept.values()) if (kept.through === undefined) kept.unknownThrough = at;
  }

  value(lookup: Lookup): string | undefined {
    return lookup.after < this.#unknown(lookup.counter.identity) ? undefined : this.#book.value(lookup);
  }

  add(moves: readonly Move[], at: number): void {
    for (const move of moves) this.#book.add(move, at);
  }
}

/** The digest under which receipts name a counter. */
export function counterDigest(identity: string): string {
  const known = digests.get(identity);
  if (known !== undefined) return known;
  const digest = hash("sha256", identity, "hex");
  digests.set(identity, digest);
  return digest;
}

const digests = new Map<string, string>();
