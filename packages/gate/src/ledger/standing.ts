import { noStops, withStopAct, type Grant, type Stops } from "../../../core/src/approvals/mod.ts";
import { changeMarks, grantMark, withGrantRow } from "../../../core/src/record/entry/grant-rows.ts";
import { changeColumns, type StoredRow } from "../../../core/src/record/entry/row.ts";
import { stopActIn, stopMarks } from "../../../core/src/record/entry/stop-rows.ts";
import { findRows } from "./history/table-reads.ts";
import type { Tables } from "./store/tables.ts";

/** The stops and grants of a ledger: a fold of its rows up to one of them. */
export class StopsAndGrants {
  readonly #tables: Pick<Tables, "find">;
  readonly #digest: (text: string) => string;
  readonly #size: () => Promise<number>;
  stops: Stops = noStops;
  /** The grants that have not ended by a row. The time of some may be over. */
  grants: readonly Grant[] = [];
  /** The last row that was read. */
  through = 0;

  /**
   * @param digest makes keyed digests
   * @param size returns the last row that another gate may have written; 0 if no other gate may write
   */
  constructor(tables: Pick<Tables, "find">, digest: (text: string) => string, size: () => Promise<number>) {
    this.#tables = tables;
    this.#digest = digest;
    this.#size = size;
  }

  /** The same after the rows that other gates have added. */
  async now(): Promise<Readonly<Pick<StopsAndGrants, "grants" | "stops">>> {
    await this.follow(await this.#size());
    return this;
  }

  /** Takes what a transaction has left, after its commit. */
  advance(through: number, stops: Stops, grants: readonly Grant[]): void {
    this.stops = stops;
    this.grants = grants;
    this.through = through;
  }

  /**
   * Reads the rows that this gate has not read yet.
   *
   * @param changed the last row of a person's act: without a new one, nothing is read
   */
  async follow(changed: number): Promise<void> {
    const through = this.through;
    const [stops, grants] = [this.stops, this.grants];
    if (changed <= through) return;
    const found = await this.#rows(through + 1, changed, [...stopMarks, grantMark]);
    // Uses are many, and matter only to a grant that exists.
    const first = grants.length > 0 ? through + 1 : found.find(({ leaf }) => leaf.includes(grantMark))?.seq;
    if (first !== undefined) found.push(...(await this.#rows(first, changed, changeMarks)));
    // Another call may have read more rows meanwhile.
    if (this.through >= changed) return;
    const rows = found.toSorted((a, b) => a.seq - b.seq);
    this.stops = rows.flatMap((row) => stopActIn(row) ?? []).reduce(withStopAct, stops);
    this.grants = rows.reduce((left, row) => withGrantRow(left, row, this.#digest), grants);
    this.through = changed;
  }

  async #rows(from: number, through: number, marks: readonly string[]): Promise<StoredRow[]> {
    const found: StoredRow[] = [];
    for (const mark of marks) {
      const query = { before: through + 1, from, limit: through, verdict: changeColumns.verdict };
      for await (const slice of findRows(this.#tables, { ...query, leafHas: [mark] })) found.push(...slice);
    }
    return found.toSorted((a, b) => a.seq - b.seq);
  }
}
