import type { DatabaseSync, StatementSync } from "node:sqlite";
import { limits } from "../../../wire/mod.ts";
import type { StoredRepeat } from "../../entry/repeat.ts";
import { repeatsDeletedMax } from "../store.ts";

/** The table of recorded answers, for the connection that writes. */
export class RepeatTable {
  readonly #find: StatementSync;
  readonly #keep: StatementSync;
  readonly #deleteOld: StatementSync;

  constructor(database: DatabaseSync) {
    this.#find = database.prepare("SELECT at, record FROM repeats WHERE id = ?");
    this.#keep = database.prepare("INSERT OR REPLACE INTO repeats (id, at, record) VALUES (?, ?, ?)");
    this.#deleteOld = database.prepare(
      `DELETE FROM repeats WHERE id IN (SELECT id FROM repeats WHERE at < ? ORDER BY at LIMIT ${repeatsDeletedMax})`,
    );
  }

  find(ids: readonly string[]): readonly StoredRepeat[] {
    return ids.flatMap((id) => {
      const found = this.#find.get(Buffer.from(id, "hex"));
      return found === undefined ? [] : [{ id, at: Number(found["at"]), record: String(found["record"]) }];
    });
  }

  /** Keeps answers and deletes old ones, within a transaction of the caller. */
  keep(repeats: readonly StoredRepeat[]): void {
    const [first] = repeats;
    if (first === undefined) return;
    for (const { id, at, record } of repeats) this.#keep.run(Buffer.from(id, "hex"), at, record);
    this.#deleteOld.run(first.at - limits.repeatWithinMs);
  }
}
