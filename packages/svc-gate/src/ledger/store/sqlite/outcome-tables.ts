import type { DatabaseSync, StatementSync } from "node:sqlite";
import { takenRows, withoutTaken, type KeptCounters, type TotalQuery } from "../running-totals.ts";
import type { StoredEffect, TakenQuery } from "../store.ts";
import type { StoredOutcome } from "../../entry/row.ts";

/** The tables of outcomes and of the events that they took back, for the connection that writes. */
export class OutcomeTables {
  readonly #database: DatabaseSync;
  readonly #taken: StatementSync;
  readonly #take: StatementSync;
  readonly #keep: StatementSync;
  #hasTaken: boolean;

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#taken = database.prepare("SELECT amount FROM withdrawals WHERE counter = ? AND key = ? AND at > ?");
    this.#taken.setReturnArrays(true); // Arrays cost a third of the driver's objects.
    this.#take = database.prepare(
      "INSERT INTO withdrawals (counter, key, at, seq, amount, outcome, folded) VALUES (?, ?, ?, ?, ?, ?, ?)",
    );
    this.#keep = database.prepare("INSERT OR REPLACE INTO outcomes (seq, outcome, status) VALUES (?, ?, ?)");
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
    for (const { seq, row, status } of outcomes) this.#keep.run(seq, row, status);
  }

  find(rows: readonly number[]): readonly StoredOutcome[] {
    return lastOutcomes(this.#database, rows);
  }
}

/** Reads the last outcomes of calls by the rows of their checks. */
export function lastOutcomes(database: DatabaseSync, rows: readonly number[]): readonly StoredOutcome[] {
  const last = database.prepare("SELECT outcome, status FROM outcomes WHERE seq = ?");
  return rows.flatMap((seq) => {
    const found = last.get(seq);
    return found === undefined ? [] : [{ seq, row: Number(found["outcome"]), status: String(found["status"]) }];
  });
}

/** Reads the amounts that outcomes took back, for each query. */
export function takenAmounts(
  database: DatabaseSync,
  queries: readonly (Omit<TakenQuery, "counter"> & { readonly id: number })[],
): readonly (readonly string[])[] {
  const taken = database.prepare(
    "SELECT amount FROM withdrawals WHERE counter = ? AND key = ? AND at > ? AND outcome < ?",
  );
  return queries.map(({ id, key, after, before }) =>
    taken.all(id, Buffer.from(key, "hex"), after, before).map(({ amount }) => String(amount)),
  );
}
