import { closeSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { files } from "../../files/data-folder.ts";
import { createTables } from "./file.ts";

/**
 * Checks the parts of a ledger's file that rows do not protect: its header, the names of its tables, its pages, and its
 * indexes. A damaged index would hide rows from readers. The time is proportional to the file's size.
 *
 * @returns the first problem; undefined if there is none
 */
export function structureProblem(database: DatabaseSync, folder: string): string | undefined {
  const [first] = database.prepare("PRAGMA integrity_check(1)").all();
  const found = String(first?.["integrity_check"]);
  return headerProblem(folder) ?? objectsProblem(database) ?? (found === "ok" ? undefined : found);
}

/** Compares every table and index, with the exact case of its name, because SQLite itself ignores case. */
function objectsProblem(database: DatabaseSync): string | undefined {
  using made = new DatabaseSync(":memory:");
  createTables(made, "made");
  const [expected, found] = [made, database].map((of) =>
    JSON.stringify(
      of.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY rowid").all().toSorted(byName),
    ),
  );
  const numbers = database.prepare("SELECT rowid AS number FROM sqlite_schema ORDER BY rowid").all();
  const isNumbered = numbers.every(({ number }, index) => number === index + 1);
  return isNumbered && expected === found ? undefined : "a table or an index is not described as it was made";
}

function byName(a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): number {
  return String(a["name"]) < String(b["name"]) ? -1 : 1;
}

/**
 * The constant bytes of the file's header, which has 100 bytes. SQLite reads some others only as a hint of a change: its
 * change counter (24), the schema's (40), and the version and change for which the size at 28 is valid (92 to 99). The
 * integrity check compares the page counts (28 to 39) with the pages.
 */
const constants: readonly (readonly [from: number, bytes: string])[] = [
  [0, Buffer.from("SQLite format 3\0").toString("hex")],
  [16, "2000"], // pages of 8192 bytes
  [20, "00402020"], // fixed by the format
  [44, "00000004"], // the schema's format
  [48, "00000000"], // no cache size, no vacuum
  [52, "00000000"],
  [56, "00000001"], // UTF-8
  [60, "000000"], // of `user_version`, whose last byte is the state of erasures
  [64, "00".repeat(28)], // no application id, and bytes that the format reserves
];

function headerProblem(folder: string): string | undefined {
  const header = Buffer.alloc(100);
  const file = openSync(join(folder, files.database), "r");
  try {
    readSync(file, header, 0, header.length, 0);
  } finally {
    closeSync(file);
  }
  const wrong = constants.find(([from, bytes]) => header.toString("hex", from, from + bytes.length / 2) !== bytes);
  if (wrong !== undefined) return `the file's header is not as it was made, at byte ${wrong[0]}`;
  if ((header[63] ?? 0) > 3) return "the file's header is not as it was made, at byte 63";
  // 2 is a write-ahead log. 1 is a copy that no gate has opened yet.
  const versions = header.toString("hex", 18, 20);
  return versions === "0202" || versions === "0101" ? undefined : "the file's header is not as it was made, at byte 18";
}
