import type { DatabaseSync, StatementSync } from "node:sqlite";
import { limits } from "../../../../../core/src/wire/mod.ts";
import type { StoredRepeat } from "../../../../../core/src/record/entry/repeat.ts";
import { repeatsDeletedMax } from "../store.ts";
import { storedValues } from "../tables.ts";
import { insertion } from "./insertion.ts";

/** The table of recorded answers, for the connection that writes. */
export class RepeatTable {
  readonly #keep: StatementSync;
  readonly #deleteOld: StatementSync;

  constructor(database: DatabaseSync) {
    this.#keep = insertion(database, "repeats", "OR REPLACE");
    this.#deleteOld = database.prepare(
      `DELETE FROM repeats WHERE id IN (SELECT id FROM repeats WHERE at < ? ORDER BY at LIMIT ${repeatsDeletedMax})`,
    );
  }

  /** Keeps answers and deletes old ones, within a transaction of the caller. */
  keep(repeats: readonly StoredRepeat[]): void {
    const [first] = repeats;
    if (first === undefined) return;
    for (const repeat of repeats) this.#keep.run(...storedValues("repeats", repeat));
    this.#deleteOld.run(first.at - limits.repeatWithinMs);
  }
}
