import type { DatabaseSync } from "node:sqlite";
import { serveOpened } from "../calls.ts";
import { explain, makeEmptyError, openForReading, readMeta } from "./file.ts";
import { unreadable } from "../../history/findings.ts";
import { walkStore, type WalkOptions } from "../../history/walk.ts";
import { Steps, type Pause } from "../steps.ts";
import { structureProblem } from "./structure.ts";
import { asUnreadable, SqliteTables } from "./tables.ts";
import type { Verification } from "../store.ts";
import { tableMethods, withPromises } from "../tables.ts";
import { Unreadable } from "../../errors.ts";
import type { Mistake } from "../../../../../core/src/record/entry/row.ts";

/** A connection that only reads, in its own thread, so that it never delays a commit. */
class SqliteReader extends SqliteTables {
  readonly #folder: string;
  readonly #database: DatabaseSync;
  readonly #walks = new Map<number, Steps<Verification>>();
  #startedCount = 0;

  constructor(folder: string, database: DatabaseSync) {
    super(database);
    this.#folder = folder;
    this.#database = database;
  }

  /** Walks from a row to the last row. The thread answers other calls between slices. */
  verify(walk: WalkOptions, pause?: Pause): Promise<Verification> {
    return walkStore(withPromises(this), walk, pause);
  }

  /** Starts such a walk. @returns its number, for `goOn` */
  startWalk(walk: WalkOptions): number {
    this.#startedCount += 1;
    this.#walks.set(this.#startedCount, new Steps((pause) => this.verify(walk, pause)));
    return this.#startedCount;
  }

  /** Walks for some milliseconds. @returns undefined if the walk has not ended */
  async goOn(walk: number): Promise<{ readonly result: Verification } | undefined> {
    const steps = this.#walks.get(walk);
    if (steps === undefined) throw new Error("the walk has ended");
    this.#walks.delete(walk);
    const ended = await steps.next();
    if (ended === undefined) this.#walks.set(walk, steps);
    return ended;
  }

  /** Checks the parts of the file that rows do not protect. Other calls wait for its long statement. */
  structure(): Mistake | undefined {
    const seq = this.head().rows + 1;
    try {
      const found = structureProblem(this.#database, this.#folder);
      if (found === undefined) return undefined;
      const row = /^row (\d+) missing from index/.exec(found)?.[1];
      const problem = "the file's structure is not as its engine keeps it";
      return { seq: row === undefined ? seq : Number(row), problem, expected: "ok", found };
    } catch (error) {
      const explained = asUnreadable(error);
      if (explained instanceof Unreadable) return unreadable(seq, explained);
      throw explained;
    }
  }

  close(): void {
    this.#database.close();
  }
}

function openReader(folder: string): SqliteReader {
  const database = openForReading(folder);
  try {
    if (readMeta(database) === undefined) throw makeEmptyError(folder);
    return new SqliteReader(folder, database);
  } catch (error) {
    database.close();
    throw error;
  }
}

serveOpened(
  (folder: string) => {
    try {
      return { opened: openReader(folder), said: undefined };
    } catch (error) {
      throw explain(error, folder);
    }
  },
  [...tableMethods, "structure", "verify", "startWalk", "goOn"],
);
