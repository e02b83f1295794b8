import { hash, randomBytes } from "node:crypto";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { countersOf } from "../checksums.ts";
import { columnsOf, tableSpecs, type Counters } from "../tables.ts";
import { schema } from "./schema.ts";
import { files } from "../../files/data-folder.ts";
import { makePrivate } from "../../files/private-files.ts";
import { flushAgain } from "./log.ts";
import { LedgerRefused, NoLedger } from "../../errors.ts";

/** The layout of the file. A file with another layout is refused, never converted silently. */
const layout = 2;

export function makeMissingError(folder: string): LedgerRefused {
  return new LedgerRefused(
    `the ledger's file in ${folder} is gone or empty, but its head is pinned: restore the file from a backup; ` +
      "a gate never starts a new history over an old one",
  );
}

export function makeNoLedgerError(folder: string): NoLedger {
  return new NoLedger(`the folder ${folder} has no ledger: name the data folder of a gate`);
}

/** A first start that was interrupted leaves a file without tables. */
export function makeEmptyError(folder: string): LedgerRefused {
  return new LedgerRefused(
    `the ledger's file in ${folder} is empty: start its gate, which makes the tables, or restore a backup`,
  );
}

/** Free space that a batch must leave: enough to stop cleanly and to copy the write-ahead log into the file. */
export const reserveBytes: number = 64 * 1024 * 1024;

/** The number of pages at which the write-ahead log is copied into the file: 16 MB. */
export const logPagesMax = 2000;

/** How long to wait for another process that reads the file or opens its log. */
export const busyTimeoutMs = 2000;

/**
 * Opens the file with a write-ahead log and a flush for each commit, and checks both settings. Automatic checkpoints are
 * off, because SQLite would hide a disk error in them. SQLite 3.51.3 fixes a loss of data in write-ahead logs.
 */
export function openForWriting(folder: string): DatabaseSync {
  makePrivate(join(folder, files.database)); // SQLite gives its log and index the mode of the file.
  flushAgain(folder, files.log);
  return openFile(folder, false, (database) => {
    requireVersion(database);
    database.exec(
      "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = 1;" +
        "PRAGMA checkpoint_fullfsync = 1; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -4096;" +
        "PRAGMA secure_delete = ON;",
    );
    const found = [pragma(database, "journal_mode"), pragma(database, "synchronous")].join(" ");
    if (found !== "wal 2")
      throw new LedgerRefused(
        `the ledger's file does not take the settings that durability needs (it says: ${found}); use a local disk`,
      );
  });
}

export function openForReading(folder: string): DatabaseSync {
  return openFile(folder, true, (database) => database.exec("PRAGMA cache_size = -2048;"));
}

/** Closes the file if preparing it fails: the thread that opened it lives on. */
function openFile(folder: string, readOnly: boolean, prepare: (database: DatabaseSync) => void): DatabaseSync {
  const database = new DatabaseSync(join(folder, files.database), { readOnly, timeout: busyTimeoutMs });
  try {
    prepare(database);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
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
 * Takes the ledger for this process: locks a separate file, which nothing else opens. The lock ends with the process,
 * even if the process is killed.
 *
 * @throws {LedgerRefused} while another process owns the ledger
 */
export function takeOwnership(folder: string): DatabaseSync {
  makePrivate(join(folder, files.lock));
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
  /** The verifier key of the key that signs heads; undefined before the first. */
  readonly signer: string | undefined;
  /** The last mode of a ledger without rows; undefined if no gate has served it yet, or if rows name the mode. */
  readonly mode: string | undefined;
  /** The note about the first key; undefined if there is none. */
  readonly firstKey: string | undefined;
}

/** Writes the empty tables and the ledger's name, in one transaction. */
export function createTables(database: DatabaseSync, log: string | undefined): Meta {
  const name = log ?? `svc-gate/${randomBytes(16).toString("hex")}`;
  const counterSecret = randomBytes(32).toString("hex");
  database.exec("BEGIN IMMEDIATE");
  database.exec(schema.join("\n"));
  const meta = { log: name, counterSecret, signer: undefined, mode: undefined, firstKey: undefined };
  writeMeta(database, meta);
  database.exec("COMMIT");
  return meta;
}

/** Writes the ledger's description, within a transaction of the caller. */
export function writeMeta(database: DatabaseSync, { log, counterSecret, signer, ...noted }: Meta): void {
  const kept = notesOf(noted.mode, noted.firstKey);
  const meta = { layout: String(layout), log, counter_secret: counterSecret, signer: signer ?? "", ...kept };
  const write = database.prepare("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)");
  if (noted.mode === undefined) database.exec("DELETE FROM meta WHERE name = 'mode'");
  for (const [name, value] of Object.entries({ ...meta, check: metaCheck(meta) })) write.run(name, value);
}

/** Returns undefined if the file has no tables, so that it never was a ledger. @throws {LedgerRefused} if it is damaged */
export function readMeta(database: DatabaseSync): Meta | undefined {
  if (objectsOf(database).length === 0) return undefined;
  const values = Object.fromEntries(readMetaTable(database));
  const { layout: found = "", log = "", counter_secret: counterSecret = "", signer = "", mode } = values;
  if (found !== String(layout) && /^[0-9]+$/.test(found))
    throw new LedgerRefused(`the ledger's file has layout ${found}; this version reads layout ${layout}`);
  const firstKey = values["first_key"];
  const meta = { layout: found, log, counter_secret: counterSecret, signer, ...notesOf(mode, firstKey) };
  requireWhole(values, meta, database);
  if (found !== String(layout)) throw damagedMeta;
  return { log, counterSecret, signer: signer === "" ? undefined : signer, mode, firstKey };
}

/** A ledger that no gate has served has no notes. */
function notesOf(mode: string | undefined, firstKey: string | undefined): Readonly<Record<string, string>> {
  return { ...(mode !== undefined && { mode }), ...(firstKey !== undefined && { first_key: firstKey }) };
}

const damagedMeta = new LedgerRefused(
  "the ledger's own description (its layout, its name, its signing key, or the secret of its counters) is damaged: " +
    "restore the file from a backup",
);

/** @throws {LedgerRefused} if the description or the tables are not those that were written */
function requireWhole(
  values: Readonly<Record<string, string>>,
  meta: Readonly<Record<string, string>>,
  database: DatabaseSync,
): void {
  const isSame = Object.keys(values).length === Object.keys(meta).length + 1 && values["check"] === metaCheck(meta);
  if (!isSame) throw damagedMeta;
  if (objectsOf(database).join("\n") === schema.toSorted().join("\n")) return;
  throw new LedgerRefused(
    "the tables of the ledger's file are not those that it was made with: restore the file from a backup",
  );
}

function objectsOf(database: DatabaseSync): readonly string[] {
  return database
    .prepare("SELECT sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
    .all()
    .map(({ sql }) => `${String(sql)};`)
    .toSorted();
}

function readMetaTable(database: DatabaseSync): readonly (readonly [string, string])[] {
  try {
    const found = database.prepare("SELECT name, value FROM meta").all();
    return found.map(({ name, value }) => [String(name), String(value)] as const);
  } catch (error) {
    if (!String(error).includes("no such")) throw error;
    return [];
  }
}

function metaCheck(meta: Readonly<Record<string, string>>): string {
  return hash("sha256", JSON.stringify(meta), "hex");
}

/** Numbers are read as text, because the driver may not be able to read a changed number. */
const counterColumns = columnsOf("counters").map((name) =>
  tableSpecs.counters.columns[name].startsWith("number") ? `cast(${name} AS TEXT)` : name,
);

export function readCounters(database: DatabaseSync): Counters {
  const sql = `SELECT ${counterColumns.join(", ")} FROM counters ORDER BY counters.id`;
  return countersOf(database.prepare(sql, { returnArrays: true }).all() as unknown as readonly (readonly unknown[])[]);
}

const unwritable = [3, 8, 14, 23];
const unwritableFiles = ["EACCES", "ENOENT", "EPERM", "EROFS", "EISDIR"];
const damage = [1, 11, 26];

/**
 * Explains an error while a ledger is opened to the operator. Any other error is a fault and stays unchanged. The numbers
 * are SQLite's result codes. The names are codes of the operating system, which flushing the log can return.
 */
export function explain(error: unknown, folder: string): unknown {
  const { errcode, errstr, code } = error as {
    readonly errcode?: number;
    readonly errstr?: string;
    readonly code?: string;
  };
  const primary = (errcode ?? 0) & 0xff;
  if (unwritable.includes(primary) || unwritableFiles.includes(code ?? "")) {
    return new LedgerRefused(
      `the ledger in ${folder} cannot be written (${errstr ?? code}): let this user write the folder, or name another with SVC_DATA_DIR`,
    );
  }
  if (damage.includes(primary) || code === "ERR_OUT_OF_RANGE") {
    return new LedgerRefused(
      `the ledger's file in ${folder} is damaged (${errstr ?? "a number is out of range"}): restore it from a backup`,
    );
  }
  if (primary === 5)
    return new LedgerRefused(`another program uses the ledger's file in ${folder}: let it finish, and start again`);
  if (primary === 10 || primary === 13 || ["ENOSPC", "EDQUOT"].includes(code ?? "")) {
    return new LedgerRefused(
      `the disk of ${folder} is full or fails (${errstr ?? code}): free space on it, or restore the ledger on another`,
    );
  }
  return error;
}
