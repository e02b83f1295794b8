import type { DatabaseSync, StatementSync } from "node:sqlite";
import { takenRows, withoutTaken, type KeptCounters, type TotalQuery } from "../running-totals.ts";
import type { StoredEffect } from "../store.ts";
import type { StoredOutcome } from "../../../../../core/src/record/entry/row.ts";
import { insertion } from "./insertion.ts";

/** The tables of outcomes and of the events that they took back, for the connection that writes. */
export class OutcomeTables {
  readonly #taken: StatementSync;
  readonly #take: StatementSync;
  readonly #keep: StatementSync;
  #hasTaken: boolean;

  constructor(database: DatabaseSync) {
    // Arrays cost a third of the driver's objects.
    const taken = "SELECT amount FROM withdrawals WHERE counter = ? AND key = ? AND at > ?";
    this.#taken = database.prepare(taken, { returnArrays: true });
    this.#take = insertion(database, "withdrawals");
    this.#keep = insertion(database, "outcomes", "OR REPLACE");
    this.#hasTaken = database.prepare("SELECT 1 FROM withdrawals LIMIT 1").get() !== undefined;
  }

  /** Subtracts what outcomes took back in a query's window from a value. */
  withoutTaken({ id, bytes, after }: TotalQuery, value: string): string {
    if (!this.#hasTaken) return value;
    return withoutTaken(
      value,
      (this.#taken.all(id, bytes, after) as unknown as readonly (readonly [string])[]).map(([amount]) => amount),
    );
  }

  /** Takes events back, within a transaction of the caller. @throws if one was taken back before */
  take(effects: readonly StoredEffect[], counters: KeptCounters, isFolded: boolean): void {
    for (const row of takenRows(effects, counters, isFolded)) {
      this.#take.run(...row);
      this.#hasTaken = true;
    }
  }

  /** Keeps the last outcomes of calls, within a transaction of the caller. */
  keep(outcomes: readonly StoredOutcome[]): void {
    for (const { seq, outcome, status } of outcomes) this.#keep.run(seq, outcome, status);
  }
}
