import type { DatabaseSync } from "node:sqlite";
import type { Erasure } from "../../../../../core/src/record/entry/erasure.ts";
import { withoutParts } from "../../../../../core/src/record/entry/evidence.ts";
import { files } from "../../files/data-folder.ts";
import { busyTimeoutMs } from "./file.ts";
import { flushCut } from "./log.ts";
import { type ScrubResult } from "../store.ts";
import { changeColumns } from "../../../../../core/src/record/entry/row.ts";

// The file's `user_version` records whether pages may contain deleted data. SQLite overwrites deleted data
// (`secure_delete`), but a split page of an index keeps old copies of keys. So do pages from before that setting.
const cleared = 1;
const rewriteDue = 2;

/** Records that every page of a new file was written with `secure_delete`. */
export function markCleared(database: DatabaseSync): void {
  database.exec(`PRAGMA user_version = ${cleared}`);
}

/** Deletes the text and the salt of parts, within the transaction of the row that reports the erasure. */
export function eraseParts(database: DatabaseSync, { parts, rows }: Erasure): void {
  const hasCall = parts.includes("call");
  const find = database.prepare("SELECT seq, evidence FROM receipts WHERE seq BETWEEN ? AND ? AND verdict <> ?");
  const write = database.prepare(
    `UPDATE receipts SET evidence = ?${hasCall ? ", session = NULL, tool = ''" : ""} WHERE seq = ?`,
  );
  for (const [from, to] of rows) {
    for (const { seq, evidence } of find.all(from, to, changeColumns.verdict))
      write.run(withoutParts(String(evidence), parts), Number(seq));
  }
  const state = stateOf(database);
  if (hasCall || (state & cleared) === 0) database.exec(`PRAGMA user_version = ${state | rewriteDue}`);
}

/** Like `LedgerStore.scrub`: removes copies in pages first, if it may, and then the log. */
export function scrub(database: DatabaseSync, folder: string, mayRewrite: boolean): ScrubResult {
  const state = stateOf(database);
  const isDue = (state & rewriteDue) !== 0;
  const isRewritten = isDue && mayRewrite && rewrite(database, state);
  database.exec("PRAGMA busy_timeout = 0");
  const busy = database.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get()?.["busy"];
  database.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
  if (busy !== 0) return "busy";
  flushCut(folder, files.log);
  return isDue && !isRewritten ? "later" : "clean";
}

/** @returns false if the disk is full or another program uses the file; then nothing has changed */
function rewrite(database: DatabaseSync, state: number): boolean {
  try {
    if ((state & cleared) === 0) {
      database.exec("VACUUM");
      markCleared(database);
    } else {
      database.exec("BEGIN IMMEDIATE; REINDEX receipts_by_session; REINDEX receipts_by_tool");
      markCleared(database);
      database.exec("COMMIT");
    }
    return true;
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    if (passing.includes(((error as { readonly errcode?: number }).errcode ?? 0) & 0xff)) return false;
    throw error;
  }
}

/** SQLite's result codes for a busy file, a locked file and a full disk. */
const passing = [5, 6, 13];

function stateOf(database: DatabaseSync): number {
  return Number(database.prepare("PRAGMA user_version").get()?.["user_version"]);
}
