import { hash } from "node:crypto";
import type { ContractInForce, Lookup, Move } from "../../contract/mod.ts";
import { countersOf, recountRow, type Owned } from "../../gate/mod.ts";
import { readResume } from "../../ledger/mod.ts";
import { readEffects, type Leaf } from "../../ledger/entry.ts";
import { addDecimals } from "../../wire/mod.ts";
import { Book } from "../book.ts";
import type { History } from "../history.ts";
import { hasErasedPart, readLeaf, recordedAt } from "./recorded.ts";

/** How far the history of a counter is known. */
interface Kept {
  /** The last row that it counted before it left; undefined while it is in force. */
  through: number | undefined;
  /** Milliseconds: a window that reaches back to it lacks what it needs, as it did then; -1 when nothing is lacking. */
  unknownThrough: number;
  /** Milliseconds: the same of what was known then and cannot be had now. */
  lackingThrough: number;
}

/**
 * Counters while a history is decided again, as the ledger kept them while it was written: one that comes into force is
 * folded from the rows before, one that leaves stays where it stands.
 */
export class Standing {
  readonly #book = new Book();
  readonly #kept = new Map<string, Kept>();
  readonly #history: History;
  /** By counter and digest of the key: amounts that an operator entered for rows that are lost. */
  readonly #entered = new Map<string, { readonly at: number; readonly amount: string }[]>();
  /** Milliseconds: the moment of a loss after which no check was answered yet; -1 where there is none. */
  #freshLoss = -1;

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
      this.#kept.set(counter.identity, {
        through: undefined,
        unknownThrough:
          this.#kept.get(counter.identity)?.unknownThrough ?? (counter.startsEmpty ? this.#freshLoss : -1),
        lackingThrough: this.#lacking(counter.identity),
      });
  }

  #next(identity: string): number {
    return (this.#kept.get(identity)?.through ?? 0) + 1;
  }

  #lacking(identity: string): number {
    return this.#kept.get(identity)?.lackingThrough ?? -1;
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
          const moves = leaf === undefined ? undefined : recounted(owned, leaf, evidence);
          if (moves === undefined)
            this.#lacks(owned.counter.identity, leaf?.at ?? recordedAt(row.leaf), hasErasedPart(evidence));
          else for (const move of moves) this.#book.add(move, leaf?.at ?? 0);
        }
      }
    }
  }

  /** What was erased may have been there when the counter was folded, so it is not said to have been unknown then. */
  #lacks(identity: string, at: number, isErased: boolean): void {
    const { through = 0, unknownThrough = -1, lackingThrough = -1 } = this.#kept.get(identity) ?? {};
    const [unknown, lacking] = isErased ? [-1, at] : [at, -1];
    this.#kept.set(identity, {
      through,
      unknownThrough: Math.max(unknownThrough, unknown),
      lackingThrough: Math.max(lackingThrough, lacking),
    });
  }

  /**
   * A row that cannot be decided again leaves counters in force without what it moved.
   *
   * @param moved the digests of those that it recorded; undefined where that cannot be read, so that it may be any
   */
  skip(at: number, moved: ReadonlySet<string> | undefined): void {
    for (const [identity, kept] of this.#kept) {
      if (kept.through === undefined && moved?.has(counterDigest(identity)) !== false) kept.lackingThrough = at;
    }
  }

  value({ counter, key, after }: Lookup): string | undefined {
    const { unknownThrough = -1 } = this.#kept.get(counter.identity) ?? {};
    return after < unknownThrough ? undefined : this.#withEntered({ counter, key, after });
  }

  #withEntered(lookup: Lookup): string {
    const value = this.#book.value(lookup);
    if (this.#entered.size === 0) return value;
    const { counter, key, after } = lookup;
    const found = this.#entered.get(`${counterDigest(counter.identity)} ${this.#history.keyDigest?.(key)}`) ?? [];
    return found.reduce((sum, { at, amount }) => (at > after ? addDecimals(sum, amount) : sum), value);
  }

  /**
   * Takes up a person's act. After one that says what is lost, counters are unknown, but for those whose lost amounts were
   * entered; a later one enters them.
   */
  act(leaf: Leaf, evidence: string): void {
    const row = readResume(leaf, evidence);
    if (row === undefined) return;
    for (const [identity, kept] of this.#kept) {
      const through = row.entered.get(counterDigest(identity));
      if (through === undefined && row.lost !== undefined) kept.unknownThrough = Math.max(kept.unknownThrough, leaf.at);
      if (through === undefined) continue;
      if (kept.unknownThrough === row.resumed?.[1]) kept.unknownThrough = through;
      // Keys stand under digests: without the ledger's secret none of them can be found.
      if (this.#history.keyDigest === undefined) kept.lackingThrough = leaf.at;
    }
    if (row.lost !== undefined) this.#freshLoss = leaf.at;
    for (const { counter, key, amount } of readEffects(evidence) ?? []) {
      const under = `${counter} ${key}`;
      this.#entered.set(under, [...(this.#entered.get(under) ?? []), { at: leaf.at, amount }]);
    }
  }

  /** A check was passed: what starts empty from here on has lost nothing. */
  answered(): void {
    this.#freshLoss = -1;
  }

  /** Does the counter stand on a row that cannot be read any more? */
  isLacking({ counter, after }: Lookup): boolean {
    return after < this.#lacking(counter.identity);
  }

  add(moves: readonly Move[], at: number): void {
    for (const move of moves) this.#book.add(move, at);
  }
}

/** What was entered of a counter for rows that are lost stands beside the book. */
function recounted(owned: Owned, leaf: Leaf, evidence: string): ReturnType<typeof recountRow> {
  const isEntered = readResume(leaf, evidence)?.entered.has(counterDigest(owned.counter.identity)) === true;
  return isEntered ? [] : recountRow(owned, leaf, evidence);
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
