import { canonical, isMemberName, type Canonical, type MemberName } from "../../wire/mod.ts";
import type { PartName } from "./disclosure.ts";
import { covers, writtenText } from "./evidence.ts";
import type { Leaf } from "./leaf.ts";
import type { Finding } from "./row.ts";

/**
 * The parts of a check that may be erased, besides sensitive members, sorted by name. `effects` is never erased,
 * because counters are computed from it.
 */
export const erasableParts = ["call", "input", "outcome", "platform", "reason"] as const;
export type ErasablePart = (typeof erasableParts)[number] | MemberName;

/** A range of rows, both ends included. */
export type RowRange = readonly [from: number, to: number];

/** An erasure: the parts whose text and salt are removed from rows. Their digests stay. */
export interface Erasure {
  /** Sorted by name. Erasing `input` or `platform` also erases their members. */
  readonly parts: readonly ErasablePart[];
  /** Ascending ranges that do not touch. */
  readonly rows: readonly RowRange[];
}

/** The act of the row that records an erasure. */
export const eraseAct = "erase";

/** The look-up columns of a check whose `call` was erased. */
export const erasedColumns = { tool: "", session: null } as const;

/** The most ranges in one row, so that its evidence stays small. */
export const rangesMax = 1000;

export function isErasable(name: string): name is ErasablePart {
  return erasableParts.some((part) => part === name) || isMemberName(name);
}

/**
 * Adds reasons and outcomes, which may quote any value of the call.
 *
 * @returns the parts sorted by name
 */
export function withWhatQuotes(parts: readonly ErasablePart[]): readonly ErasablePart[] {
  const isQuoted = parts.some((part) => part !== "reason" && part !== "outcome");
  return [...new Set<ErasablePart>(isQuoted ? [...parts, "reason", "outcome"] : parts)].toSorted();
}

/** Returns ascending numbers of rows as ranges. */
export function rangesOf(rows: Iterable<number>): readonly RowRange[] {
  const ranges: [number, number][] = [];
  for (const seq of rows) {
    const last = ranges.at(-1);
    if (last?.[1] === seq - 1) last[1] = seq;
    else ranges.push([seq, seq]);
  }
  return ranges;
}

/** Returns the body of the row that records an erasure. */
export function erasureBody({ parts, rows }: Erasure): Canonical {
  return { parts: [...parts], rows };
}

/**
 * Reads the erasure in a row of act `erase`.
 *
 * @param seq the row's own number; it can only erase earlier rows
 * @returns undefined if the row is not what a gate writes
 */
export function readErasure(evidence: string, seq: number): Erasure | undefined {
  // An administrative event has no sensitive members, so the text of its body must match exactly.
  const text = writtenText(evidence, "input");
  try {
    const { parts, rows } = JSON.parse(text ?? "null") as Erasure;
    const isWritten = canonical({ parts: [...parts], rows }) === text;
    const areNames = parts.length > 0 && parts.every((part) => typeof part === "string" && isErasable(part));
    const areSorted = parts.every((part, index) => index === 0 || (parts[index - 1] ?? "") < part);
    return isWritten && areNames && areSorted && areApart(rows, seq) ? { parts, rows } : undefined;
  } catch {
    return undefined;
  }
}

function areApart(rows: Erasure["rows"], seq: number): boolean {
  let before = 0;
  for (const range of rows) {
    const [from, to] = range;
    if (range.length !== 2 || !range.every(Number.isSafeInteger)) return false;
    if (!(before < from && from <= to && to < seq)) return false;
    before = to;
  }
  return before > 0;
}

const chunkRows = 65_536;

/**
 * The missing parts that a walk has found and whose erasure it has not read yet. The row of an erasure comes after the
 * erased rows, so a walk may start at any row. Each row needs four bytes, for the number of its combination of missing
 * parts; there are few combinations.
 */
export class MissingParts {
  readonly #chunks = new Map<number, Uint32Array>();
  readonly #combinations: (readonly number[])[] = [[]];
  readonly #numbers = new Map<string, number>([["", 0]]);
  readonly #names: PartName[] = [];
  readonly #indexes = new Map<PartName, number>();

  /**
   * Takes a valid row and its missing parts.
   *
   * @returns the mistake in a row of an erasure
   */
  pass({ act, kind, seq }: Leaf, evidence: string, missing: readonly PartName[]): Finding | undefined {
    if (missing.length > 0) this.#note(seq, missing);
    if (kind !== "change" || act !== eraseAct) return undefined;
    const erasure = readErasure(evidence, seq);
    if (erasure !== undefined) return this.#strike(erasure);
    const problem = "the row of an erasure does not list correctly what was erased";
    const found = writtenText(evidence, "input") ?? "nothing";
    return { code: "erase-body", seq, problem, expected: "parts, and rows before it", found };
  }

  /** The first row that lacks a part without a row that records the erasure. */
  get first(): Finding | undefined {
    const chunks = [...this.#chunks].toSorted(([a], [b]) => a - b);
    for (const [number, chunk] of chunks) {
      const offset = chunk.findIndex((combination) => combination !== 0);
      if (offset === -1) continue;
      const problem = "a part of the evidence is missing, and no row records its erasure";
      const found = `no ${this.#namesOf(chunk[offset] ?? 0).join(", ")}`;
      return { code: "erasure", seq: number * chunkRows + offset, problem, expected: "all its parts", found };
    }
    return undefined;
  }

  #note(seq: number, parts: readonly PartName[]): void {
    const number = Math.floor(seq / chunkRows);
    const chunk = this.#chunks.getOrInsertComputed(number, () => new Uint32Array(chunkRows));
    chunk[seq % chunkRows] = this.#numberOf(parts);
  }

  #numberOf(parts: readonly PartName[]): number {
    // The ledger of a stranger may lack any combination of members. So a combination has numbers, not long names.
    const combination = parts.map((part) => this.#indexOf(part));
    const key = combination.join();
    const number = this.#numbers.get(key) ?? this.#combinations.push(combination) - 1;
    this.#numbers.set(key, number);
    return number;
  }

  #indexOf(part: PartName): number {
    const index = this.#indexes.get(part) ?? this.#names.push(part) - 1;
    this.#indexes.set(part, index);
    return index;
  }

  #namesOf(combination: number): readonly PartName[] {
    return (this.#combinations[combination] ?? []).map((index) => this.#names[index] as PartName);
  }

  #strike({ parts, rows }: Erasure): undefined {
    const left = new Map<number, number>();
    for (const [from, to] of rows) {
      for (let number = Math.floor(from / chunkRows); number * chunkRows <= to; number += 1) {
        const chunk = this.#chunks.get(number);
        if (chunk === undefined) continue;
        const first = Math.max(0, from - number * chunkRows);
        const last = Math.min(chunkRows - 1, to - number * chunkRows);
        for (let index = first; index <= last; index += 1) {
          const before = chunk[index] ?? 0;
          if (before === 0) continue;
          const listUncovered = (): readonly PartName[] => this.#namesOf(before).filter((part) => !covers(parts, part));
          const after = left.get(before) ?? this.#numberOf(listUncovered());
          left.set(before, after);
          chunk[index] = after;
        }
      }
    }
  }
}
