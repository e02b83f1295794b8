import { headOf, type Head } from "./heads.ts";

/** What people outside the gate know of it, which no crash of it takes from them. */
export class Outside {
  /** Rows that an answer, or a page of receipts, has told of: hash by number. */
  readonly #told = new Map<number, string>();
  /** Calls that were refused: nothing of them may ever be found. */
  readonly refused = new Set<string>();
  /** When rows were told of first, for the pin. */
  readonly #times: (readonly [at: number, seq: number])[] = [];
  /** Heads that have left the gate, by their size. */
  readonly heads = new Map<number, Head>();
  /** Of these, what no inspection has seen. */
  #newHeads: Head[] = [];
  /** Texts that stand in parts of rows and nowhere else, as they are stored: by `SEQ PART`. */
  readonly texts = new Map<string, readonly string[]>();
  /** Parts that were said to be erased. */
  readonly erased = new Set<string>();
  /** Of these, nothing was said to be left in any file. */
  readonly cleared = new Set<string>();
  /** Rows at the last inspection, and those of them that rotate the signing key. */
  rows = 0;
  rotations = 0;
  answers = 0;
  /** What was seen to be wrong while the gate served. */
  problem: string | undefined;

  get told(): ReadonlyMap<number, string> {
    return this.#told;
  }

  /** An answer came. */
  answered({ seq, hash }: { readonly seq: number; readonly hash: string }, now: number): void {
    this.answers += 1;
    this.shown(seq, hash, now);
  }

  /** A row was seen. */
  shown(seq: number, hash: string, now: number): void {
    const known = this.#told.get(seq);
    if (known !== undefined && known !== hash) this.wrong(`row ${seq} was told of twice, as ${known} and as ${hash}`);
    if (known === undefined) this.#times.push([now, seq]);
    this.#told.set(seq, hash);
  }

  /** A signed head left the gate. */
  signed(checkpoint: string): void {
    const head = headOf(checkpoint);
    const known = this.heads.get(head.size);
    if (known !== undefined && known.root !== head.root)
      this.wrong(`two heads over ${head.size} rows were signed: ${known.root} and ${head.root}`);
    this.heads.set(head.size, head);
    this.#newHeads.push(head);
  }

  /** Heads since it was asked last. */
  newHeads(): readonly Head[] {
    const heads = this.#newHeads;
    this.#newHeads = [];
    return heads;
  }

  /** Parts were answered to be erased. */
  forgot(parts: readonly string[]): void {
    for (const part of parts) this.erased.add(part);
  }

  /** All that was erased until now was answered to be nowhere. */
  clear(): void {
    for (const part of this.erased) this.cleared.add(part);
  }

  /** The last row that was known at a moment; 0 is none. */
  reached(at: number): number {
    return Math.max(0, ...this.#times.filter(([then]) => then <= at).map(([, seq]) => seq));
  }

  wrong(what: string): void {
    this.problem ??= what;
  }
}
