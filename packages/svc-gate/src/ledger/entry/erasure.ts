import { canonical, isMemberName, type Canonical, type MemberName } from "../../wire/mod.ts";
import type { PartName } from "./disclosure.ts";
import { covers, writtenText } from "./evidence.ts";
import type { Leaf } from "./leaf.ts";
import type { Finding } from "./row.ts";

/**
 * What may be erased of a check beside sensitive members, in the order of names. `effects` never: counters fold them.
 */
export const erasableParts = ["call", "input", "outcome", "platform", "reason"] as const;
export type ErasablePart = (typeof erasableParts)[number] | MemberName;

/** Rows from one to another, both included. */
export type RowRange = readonly [from: number, to: number];

/** Parts of rows whose text and salt are taken out of the ledger; their digests stay. */
export interface Erasure {
  /** In the order of their names. With `input` and `platform` go the members that are parts of their own. */
  readonly parts: readonly ErasablePart[];
  /** Ascending, and apart from each other. */
  readonly rows: readonly RowRange[];
}

/** The act of the row that says who erased what, and why. */
export const eraseAct = "erase";

/** What the columns for look-up hold of a check whose `call` was erased. */
export const erasedColumns = { tool: "", session: null } as const;

/** Ranges that one row may name: its evidence stays small. */
export const rangesMax = 1000;

export function isErasable(name: string): name is ErasablePart {
  return erasableParts.some((part) => part === name) || isMemberName(name);
}

/** Reasons and outcomes may quote any value of the call: they go with it. @returns in the order of names */
export function withWhatQuotes(parts: readonly ErasablePart[]): readonly ErasablePart[] {
  const isQuoted = parts.some((part) => part !== "reason" && part !== "outcome");
  return [...new Set<ErasablePart>(isQuoted ? [...parts, "reason", "outcome"] : parts)].toSorted();
}

/** Numbers of rows, ascending, as ranges. */
export function rangesOf(rows: Iterable<number>): readonly RowRange[] {
  const ranges: [number, number][] = [];
  for (const seq of rows) {
    const last = ranges.at(-1);
    if (last?.[1] === seq - 1) last[1] = seq;
    else ranges.push([seq, seq]);
  }
  return ranges;
}

/** The body of the row that records it. */
export function erasureBody({ parts, rows }: Erasure): Canonical {
  return { parts: [...parts], rows };
}

/**
 * What a row of act `erase` says was erased.
 *
 * @param seq the row's own number: only rows before it are erased by it
 * @returns undefined where it does not say that as a gate writes it
 */
export function readErasure(evidence: string, seq: number): Erasure | undefined {
  // Nobody has sensitive members put into an act: a body is what is written, to the last character.
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
 * The parts that a walk has found missing, until the row that says that they were erased is met: an erasure stands
 * behind what it erased, so a walk may begin anywhere. Where rows lack anything, four bytes for each row: the number of
 * the combination of parts that it lacks, and there are few.
 */
export class Missing {
  readonly #chunks = new Map<number, Uint32Array>();
  readonly #combinations: (readonly number[])[] = [[]];
  readonly #numbers = new Map<string, number>([["", 0]]);
  readonly #names: PartName[] = [];
  readonly #places = new Map<PartName, number>();

  /** Takes a row that holds, and what it lacks. @returns what is wrong with the row of an erasure */
  pass({ act, kind, seq }: Leaf, evidence: string, missing: readonly PartName[]): Finding | undefined {
    if (missing.length > 0) this.#note(seq, missing);
    if (kind !== "change" || act !== eraseAct) return undefined;
    const erasure = readErasure(evidence, seq);
    if (erasure !== undefined) return this.#strike(erasure);
    const problem = "the row of an erasure does not say properly what was erased";
    const found = writtenText(evidence, "input") ?? "nothing";
    return { code: "erase-body", seq, problem, expected: "parts, and rows before it", found };
  }

  /** The first row that lacks a part of which no row has said that it was erased. */
  get first(): Finding | undefined {
    const chunks = [...this.#chunks].toSorted(([a], [b]) => a - b);
    for (const [number, chunk] of chunks) {
      const place = chunk.findIndex((combination) => combination !== 0);
      if (place === -1) continue;
      const problem = "a part of the evidence is missing, and no row records its erasure";
      const found = `no ${this.#namesOf(chunk[place] ?? 0).join(", ")}`;
      return { code: "erasure", seq: number * chunkRows + place, problem, expected: "all its parts", found };
    }
    return undefined;
  }

  #note(seq: number, parts: readonly PartName[]): void {
    const number = Math.floor(seq / chunkRows);
    const chunk = this.#chunks.get(number) ?? new Uint32Array(chunkRows);
    this.#chunks.set(number, chunk);
    chunk[seq % chunkRows] = this.#numberOf(parts);
  }

  #numberOf(parts: readonly PartName[]): number {
    // A stranger's ledger may lack any of its members in any combination: of long names only numbers are kept for each.
    const combination = parts.map((part) => this.#placeOf(part));
    const key = combination.join();
    const number = this.#numbers.get(key) ?? this.#combinations.push(combination) - 1;
    this.#numbers.set(key, number);
    return number;
  }

  #placeOf(part: PartName): number {
    const place = this.#places.get(part) ?? this.#names.push(part) - 1;
    this.#places.set(part, place);
    return place;
  }

  #namesOf(combination: number): readonly PartName[] {
    return (this.#combinations[combination] ?? []).map((place) => this.#names[place] as PartName);
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
          const unnamed = (): readonly PartName[] => this.#namesOf(before).filter((part) => !covers(parts, part));
          const after = left.get(before) ?? this.#numberOf(unnamed());
          left.set(before, after);
          chunk[index] = after;
        }
      }
    }
  }
}
