/** What people outside the gate know of it, which no crash of it takes from them. */
export class Outside {
  /** Rows that an answer, or a page of receipts, has told of: hash by number. */
  readonly #told = new Map<number, string>();
  /** Calls that were refused: nothing of them may ever be found. */
  readonly refused = new Set<string>();
  /** When rows were told of first, for the pin. */
  readonly #times: (readonly [at: number, seq: number])[] = [];
  /** Roots of the heads that have left the gate, by their size. */
  readonly heads = new Map<number, string>();
  /** Rows at the last inspection. */
  rows = 0;
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
    const [, size = "", root = ""] = checkpoint.split("\n");
    const known = this.heads.get(Number(size));
    if (known !== undefined && known !== root)
      this.wrong(`two heads over ${size} rows were signed: ${known} and ${root}`);
    this.heads.set(Number(size), root);
  }

  /** The last row that was known at a moment; 0 is none. */
  reached(at: number): number {
    return Math.max(0, ...this.#times.filter(([then]) => then <= at).map(([, seq]) => seq));
  }

  wrong(what: string): void {
    this.problem ??= what;
  }
}
