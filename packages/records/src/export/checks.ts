import type { Leaf } from "../../../core/src/record/entry/leaf.ts";

const chunkRows = 65_536;

/**
 * Remembers the checks of a walk from row 1, because each result must name an earlier check. Each row takes four bytes:
 * the number of its pair of key and tool. Each pair is stored once.
 */
export class Checks {
  readonly #numbers = new Map<string, number>();
  readonly #chunks: Uint32Array[] = [];

  /**
   * Takes the next row.
   *
   * @returns false for a result that does not name an earlier check with its key and its tool
   */
  pass({ check, key, kind, seq, tool }: Leaf): boolean {
    if (kind === "change") return true;
    const pair = JSON.stringify([key, tool]);
    if (check !== null) return this.#at(check) !== 0 && this.#at(check) === this.#numbers.get(pair);
    const number = this.#numbers.get(pair) ?? this.#numbers.size + 1;
    this.#numbers.set(pair, number);
    const chunk = (this.#chunks[Math.floor(seq / chunkRows)] ??= new Uint32Array(chunkRows));
    chunk[seq % chunkRows] = number;
    return true;
  }

  /** Returns 0 for a row that is not a check, or was not taken. */
  #at(seq: number): number {
    return this.#chunks[Math.floor(seq / chunkRows)]?.[seq % chunkRows] ?? 0;
  }
}
