import { hash, randomBytes } from "node:crypto";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { LedgerRefused } from "./store.ts";

/** The layout of the file. A file of another layout is refused, never converted in silence. */
const layout = 1;

const schema = `
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE receipts (
  seq INTEGER PRIMARY KEY, session TEXT, tool TEXT NOT NULL, verdict TEXT NOT NULL, leaf TEXT NOT NULL, evidence TEXT NOT NULL
) STRICT;
CREATE INDEX receipts_by_session ON receipts (session, seq) WHERE session IS NOT NULL;
CREATE INDEX receipts_by_tool ON receipts (tool, seq);
CREATE INDEX receipts_refused ON receipts (verdict, seq) WHERE verdict <> 'ALLOW';
CREATE TABLE contracts (digest TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE counters (
  id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, definition TEXT NOT NULL, through INTEGER, unknown_through INTEGER NOT NULL
) STRICT;
CREATE TABLE effects (
  counter INTEGER NOT NULL, key BLOB NOT NULL, at INTEGER NOT NULL, seq INTEGER NOT NULL, total TEXT NOT NULL, folded INTEGER NOT NULL,
  PRIMARY KEY (counter, key, at, seq)
) STRICT, WITHOUT ROWID;
`;

export const files = { database: "ledger.db", lock: "owner.lock" } as const;

/** Free space that a batch must leave: enough to stop cleanly, and for the write-ahead log to be folded back. */
export const reserveBytes: number = 64 * 1024 * 1024;

/** WAL with a flush for each commit, checked and not assumed. SQLite 3.51.3 mends a loss in write-ahead logs. */
export function openForWriting(folder: string): DatabaseSync {
  const database = new DatabaseSync(join(folder, files.database));
  requireVersion(database);
  database.exec(
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1; PRAGMA cache_size = -4096;",
  );
  const found = [pragma(database, "journal_mode"), pragma(database, "synchronous")].join(" ");
  if (found !== "wal 2")
    throw new LedgerRefused(
      `the ledger's file does not take the settings that durability needs (it says: ${found}); use a local disk`,
    );
  return database;
}

export function openForReading(folder: string): DatabaseSync {
  const database = new DatabaseSync(join(folder, files.database), { readOnly: true });
  database.exec("PRAGMA cache_size = -2048;");
  return database;
}

function pragma(database: DatabaseSync, name: string): string {
  return String(Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0]);
}

function requireVersion(database: DatabaseSync): void {
  const version = String(database.prepare("SELECT sqlite_version() AS version").get()?.["version"]);
  const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number);
  if (major * 1e6 + minor * 1e3 + patch < 3_051_003)
    throw new LedgerRefused(`this runtime brings SQLite ${version}; the ledger needs 3.51.3 or later`);
}

/**
 * Takes the ledger for this process: a file of its own that nothing else opens, locked until the process ends, however
 * it ends.
 *
 * @throws {LedgerRefused} while another process has it
 */
export function takeOwnership(folder: string): DatabaseSync {
  const lock = new DatabaseSync(join(folder, files.lock));
  try {
    lock.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;");
    return lock;
  } catch (error) {
    lock.close();
    if (!String(error).includes("locked")) throw error;
    throw new LedgerRefused(
      `another gate is serving the ledger in ${folder}; stop it, or give this one a folder of its own (SVC_DATA_DIR)`,
    );
  }
}

export interface Meta {
  readonly log: string;
  readonly counterSecret: string;
}

/** Writes the empty tables and the ledger's name, in one transaction. */
export function createTables(database: DatabaseSync, log: string | undefined): void {
  const name = log ?? `svc-gate/${randomBytes(16).toString("hex")}`;
  const counterSecret = randomBytes(32).toString("hex");
  database.exec("BEGIN IMMEDIATE");
  database.exec(schema);
  const insert = database.prepare("INSERT INTO meta (name, value) VALUES (?, ?)");
  const meta = { layout: String(layout), log: name, counter_secret: counterSecret };
  for (const [key, value] of Object.entries({ ...meta, check: metaCheck(meta) })) insert.run(key, value);
  database.exec("COMMIT");
}

/** Undefined for a file without tables: one that was never a ledger. @throws {LedgerRefused} for a damaged one */
export function readMeta(database: DatabaseSync): Meta | undefined {
  const tables = database.prepare("SELECT count(*) AS count FROM sqlite_schema").get()?.["count"];
  if (tables === 0) return undefined;
  const rows = database.prepare("SELECT name, value FROM meta").all();
  const values = new Map(rows.map((row) => [String(row["name"]), String(row["value"])]));
  const [found, log, secret] = [values.get("layout"), values.get("log"), values.get("counter_secret")];
  if (found !== undefined && found !== String(layout))
    throw new LedgerRefused(`the ledger's file has layout ${found}; this version reads layout ${layout}`);
  const meta = { layout: found ?? "", log: log ?? "", counter_secret: secret ?? "" };
  if (log === undefined || secret === undefined || values.get("check") !== metaCheck(meta)) {
    throw new LedgerRefused(
      "the ledger's own description (its name, or the secret of its counters) is damaged: restore the file from a backup",
    );
  }
  return { log, counterSecret: secret };
}

function metaCheck(meta: Readonly<Record<string, string>>): string {
  return hash("sha256", JSON.stringify(meta), "hex");
}

/** The number that stands for a counter's digest in the rows of its events. */
export function counterIds(database: DatabaseSync): Map<string, number> {
  const rows = database.prepare("SELECT id, digest FROM counters").all();
  return new Map(rows.map((row) => [String(row["digest"]), Number(row["id"])]));
}
