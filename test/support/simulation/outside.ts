import type { Answered, Parked } from "./approvers.ts";
import { headOf, type Head } from "./heads.ts";
import type { IdentifiedCall } from "./repeats.ts";

/** The knowledge of people outside the gate, which survives its crashes. */
export class Outside {
  /** Rows known from an answer, or from a page of receipts: hash by number. */
  readonly #told = new Map<number, string>();
  /** Refused calls: the ledger must never contain them. */
  readonly refused = new Set<string>();
  /** When each row was first known, for the pin. */
  readonly #times: (readonly [at: number, seq: number])[] = [];
  /** Heads that have left the gate, by their size. */
  readonly heads = new Map<number, Head>();
  /** The heads that no inspection has seen. */
  #newHeads: Head[] = [];
  /** Unique texts in parts of rows, as they are stored: by `SEQ PART`. */
  readonly texts = new Map<string, readonly string[]>();
  /** Parts that were confirmed as erased. */
  readonly erased = new Set<string>();
  /** The erased parts of which no file contains anything, as confirmed. */
  readonly cleared = new Set<string>();
  /** The calls that wait for a person, by the ids of their approvals, and the decisions that were answered. */
  readonly parked = new Map<string, Parked>();
  readonly decided: Answered[] = [];
  /** The calls with a `call_id`, and the number of answers that said that they repeat another. */
  readonly identified: IdentifiedCall[] = [];
  repeated = 0;
  /** The number of checks that were let through by an approval. */
  used = 0;
  /** The number of rows at the last inspection, and of those that rotate the signing key. */
  rows = 0;
  rotations = 0;
  answers = 0;
  /** The faults that were observed while the gate served. */
  problem: string | undefined;

  get told(): ReadonlyMap<number, string> {
    return this.#told;
  }

  /** Records an answer. */
  answered({ seq, hash }: { readonly seq: number; readonly hash: string }, now: number): void {
    this.answers += 1;
    this.shown(seq, hash, now);
  }

  /** Records an observed row. */
  shown(seq: number, hash: string, now: number): void {
    const known = this.#told.get(seq);
    if (known !== undefined && known !== hash) this.wrong(`row ${seq} was told of twice, as ${known} and as ${hash}`);
    if (known === undefined) this.#times.push([now, seq]);
    this.#told.set(seq, hash);
  }

  /** Records a signed head that left the gate. */
  signed(checkpoint: string): void {
    const head = headOf(checkpoint);
    const known = this.heads.get(head.size);
    if (known !== undefined && known.root !== head.root)
      this.wrong(`two heads over ${head.size} rows were signed: ${known.root} and ${head.root}`);
    this.heads.set(head.size, head);
    this.#newHeads.push(head);
  }

  /** Returns the heads since the last call. */
  newHeads(): readonly Head[] {
    const heads = this.#newHeads;
    this.#newHeads = [];
    return heads;
  }

  /** Records parts whose erasure was confirmed. */
  forgot(parts: readonly string[]): void {
    for (const part of parts) this.erased.add(part);
  }

  /** Records that no file contains any part erased until now. */
  clear(): void {
    for (const part of this.erased) this.cleared.add(part);
  }

  /** Returns the last row that was known at a moment; 0 if none was. */
  reached(at: number): number {
    return Math.max(0, ...this.#times.filter(([then]) => then <= at).map(([, seq]) => seq));
  }

  wrong(what: string): void {
    this.problem ??= what;
  }
}
