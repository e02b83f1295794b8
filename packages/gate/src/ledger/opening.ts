import { historyOf, type LedgerHistory } from "./history/history.ts";
import { hashReader } from "./history/table-reads.ts";
import { join } from "node:path";
import { leafHash, parseLeaf, zeroHash } from "../../../core/src/record/entry/leaf.ts";
import { Ledger, type LedgerCheck } from "./ledger.ts";
import { files, pinIn, pinOf, signingKeyOf, type LedgerLocation } from "./files/data-folder.ts";
import { makeFolders, readIfThere } from "./files/durable-file.ts";
import { HeadPin, noRows, readPin, writePin, type Pin } from "./history/pin.ts";
import { missingCheckpoint } from "./history/folder-check.ts";
import { keepPrivate } from "./files/private-files.ts";
import { headOf, ownHead, pinnedHead, readCheckpointNote, requireName, requireSeen } from "./history/observed.ts";
import { inspectSqlite, openSqlite, readSqlite, type SqliteThreads } from "./store/sqlite/sqlite.ts";
import type { LedgerStore } from "./store/store.ts";
import type { StoredHead } from "./store/tables.ts";
import { damagedAt, LedgerRefused } from "./errors.ts";
import type { Mistake } from "../../../core/src/record/entry/row.ts";
import { openSigner } from "./signing/signer.ts";
import { openSignedBy } from "../../../core/src/record/tree/checkpoint.ts";
import { Frontier } from "../../../core/src/record/tree/merkle.ts";
import { frontierRoots } from "../../../core/src/record/tree/tiles.ts";
import { readSigningKeys, requireSigningKeys, Signer } from "./signing/signing-key.ts";
import type { Link } from "../../../core/src/record/entry/verifier.ts";

export interface LedgerOptions extends LedgerLocation {
  /** Refuses a ledger that does not exist; otherwise a new one is created. */
  readonly mustExist?: boolean | undefined;
  /** Threads that many ledgers in folders share; without them the ledger has its own. */
  readonly threads?: SqliteThreads | undefined;
  /** The program that writes the receipts, such as `svc-gate/1.0.0`. */
  readonly engine: string;
  /** The operator states that the ledger is complete although its pin is missing. */
  readonly acceptMissingPin?: boolean;
  /** The operator states that the old signing key is lost or abandoned, and trusts the current key. */
  readonly acceptSigningKey?: boolean;
  /**
   * The ledger is known to be behind its pin or forked from it, and the pin moves with the first commit. Only
   * `openPastPin` sets this.
   */
  readonly isPastPin?: boolean;
}

const tailRows = 1000;
const nameBytesMax = 100;

/**
 * Opens a ledger, or creates one if none ever existed.
 *
 * @throws {NoLedger} if it does not exist and `mustExist` is set
 * @throws {LedgerRefused} with a sentence for the operator, if it must not be served
 */
export async function openLedger(options: LedgerOptions): Promise<Ledger> {
  const { folder, name } = options;
  if (name !== undefined && !isName(name)) {
    throw new LedgerRefused(
      `the ledger's name must be 1 to ${nameBytesMax} bytes of visible characters without + " \\, such as example.org/payments`,
    );
  }
  const { mustExist = false, shared } = options;
  const pinFile = pinOf(options);
  const isFolder = shared === undefined;
  if (isFolder && mustExist) await requireFile(folder);
  // An unusable key is refused before a ledger is created. A key in the folder cannot exist before the folder.
  const keyFile = signingKeyOf(options);
  const isKeyInside = keyFile === signingKeyOf({ folder });
  if (!isKeyInside) await readSigningKeys(keyFile);
  if (isFolder && !mustExist) await makeFolder(folder);
  if (isKeyInside) await readSigningKeys(keyFile);
  const warnings = shared === undefined ? await keepPrivate(folder) : [];
  const pin = pinFile === undefined ? undefined : await readPin(pinFile);
  const store =
    shared === undefined
      ? await openSqlite({ folder, log: name, mustExist: mustExist || pin !== undefined }, options.threads)
      : await shared.database.open({ ledger: shared.ledger, log: name, mustExist });
  try {
    return await admit(store, pin, pinFile, { ...options, warnings });
  } catch (error) {
    await store.close();
    throw error;
  }
}

export interface InspectOptions extends Pick<LedgerOptions, "folder" | "pinFile"> {
  /** Checks only the order, links and hashes of the leaves, not the evidence. */
  readonly chainAlone?: boolean;
}

/**
 * Verifies the ledger of a folder from outside, even while a gate serves it, and compares it with its pin and the
 * checkpoint in the folder.
 *
 * @throws {LedgerRefused} if it does not exist, or its pin is damaged
 */
export async function inspectLedger({ folder, pinFile, chainAlone }: InspectOptions): Promise<LedgerCheck> {
  const pin = await readPin(pinIn(folder, pinFile));
  const pinned = pin === undefined ? [] : [pinnedHead(pin)];
  const note = await readCheckpointNote(folder);
  const signed = note && headOf(note, "checkpoint");
  const { signer, ...check } = await inspectSqlite(folder, {
    anchors: signed ? [...pinned, signed] : pinned,
    chainAlone: chainAlone === true,
    mustExist: pin !== undefined,
  });
  requireName(check.log, pinned);
  return {
    ...check,
    broken: check.broken ?? wrongSignature(note, signer, check.rows),
    anchored: pin === undefined || pinFile === undefined ? undefined : { seq: pin.seq, by: "head pin" },
  };
}

/**
 * Returns the mistake if the key on record has not signed the checkpoint in the folder. The walk has compared only its
 * content.
 */
function wrongSignature(note: string | undefined, signer: string | undefined, rows: number): Mistake | undefined {
  if (note === undefined || signer === undefined) return undefined;
  const opened = openSignedBy(signer, note);
  const expected = `a checkpoint that ${signer} signed; a gate that has just started with another key writes it within a second`;
  const problem = "the checkpoint in the folder is not valid";
  return opened.ok ? undefined : { seq: rows + 1, problem, expected, found: opened.problem };
}

/** @throws {LedgerRefused} if the ledger does not exist or cannot be read */
export async function readLedger(folder: string): Promise<LedgerHistory> {
  const { tables, close } = await readSqlite(folder);
  const kept = await Promise.all([files.checkpoint, files.cosigned].map((name) => readIfThere(join(folder, name))));
  const checkpoints = kept.filter((note) => note !== undefined).map(String);
  return { ...(await historyOf(tables)), checkpoints, close, [Symbol.asyncDispose]: close };
}

/** Returns true for a name that is valid in a signed note and needs no escape in a leaf. */
function isName(name: string): boolean {
  return Buffer.byteLength(name) <= nameBytesMax && name.isWellFormed() && /^[^\s\p{C}+"\\]+$/u.test(name);
}

/** @throws {NoLedger} if the folder has no ledger */
async function requireFile(folder: string): Promise<void> {
  await (await readLedger(folder)).close();
}

async function makeFolder(folder: string): Promise<void> {
  try {
    await makeFolders(folder, 0o700);
  } catch (error) {
    throw new LedgerRefused(
      `the data folder ${folder} cannot be made (${(error as NodeJS.ErrnoException).code}): ` +
        "make it, or name another folder with SVC_DATA_DIR",
    );
  }
}

/** Compares an opened ledger with its pin and verifies its last rows, before it is served. */
async function admit(
  store: LedgerStore,
  pin: Pin | undefined,
  pinFile: string | undefined,
  options: LedgerOptions & Pick<Ledger, "warnings">,
): Promise<Ledger> {
  const { log, head } = store.opened;
  const where = options.shared === undefined ? options.folder : "the database";
  if (options.name !== undefined && options.name !== log) {
    throw new LedgerRefused(
      `the ledger in ${where} is called "${log}", not "${options.name}": remove SVC_LEDGER_NAME, or name another folder`,
    );
  }
  const isPastPin = options.isPastPin === true;
  const mayLack = isPastPin || options.acceptMissingPin === true;
  if (pinFile !== undefined && pin === undefined && head !== undefined && !mayLack) {
    throw new LedgerRefused(
      `the ledger has ${head.seq} rows, but its head pin ${pinFile} is missing: ` +
        "restore it. If no row after the last can be missing, verify the ledger and start once with --accept missing-pin; " +
        'if rows may be missing, run `svc-gate resume --after-restore --reason "..."`',
    );
  }
  const isShared = options.shared !== undefined;
  const own = isShared ? undefined : await ownHead(options.folder, store.opened.signer);
  const seen = isPastPin ? [] : [pin && pinnedHead(pin), own].filter((known) => known !== undefined);
  const found = { name: log, rows: head?.seq ?? 0, hashes: hashReader(store.tables) };
  const rowsSeen = seen.map((known) => ({ ...known, root: undefined }));
  await requireSeen(found, rowsSeen); // before anything is written, such as a key
  const keyOptions = {
    file: signingKeyOf(options),
    acceptNew: options.acceptSigningKey === true,
  };
  const signer = await openSigner(store, keyOptions);
  const check = await store.verify(Math.max(1, (head?.seq ?? 0) - tailRows), []);
  if (check.broken !== undefined) throw damagedAt(check.broken.seq, check.broken.problem);
  await requireSeen(found, seen);
  const current = lastRow(head);
  const tree = new Frontier(current.seq, await frontierRoots(found.hashes, current.seq));
  const root = tree.root().toString("base64");
  const certain = !isShared || isPastPin ? { ...current, root } : (pin ?? noRows);
  if (pinFile !== undefined && !isPastPin) await writePinOrRefuse(pinFile, { ...certain, log });
  const besideFile = isShared ? undefined : join(options.folder, files.checkpoint);
  const ledger = new Ledger({
    store,
    head: current,
    tree,
    signer,
    readSigner: async () => new Signer(log, await requireSigningKeys(keyOptions.file)),
    certain,
    pin:
      pinFile === undefined
        ? undefined
        : new HeadPin({ pin: pinFile, checkpoint: besideFile }, isPastPin ? 0 : certain.seq),
    isShared,
    isAnchored: options.pinFile !== undefined,
    engine: options.engine,
    warnings: [...options.warnings, ...(isShared || isPastPin ? [] : await missingCheckpoint(options.folder, pin))],
  });
  if (!isShared && !isPastPin) ledger.pinHead();
  return ledger;
}

/** Returns the last row from opening the store. On a shared ledger others may have added rows since. */
function lastRow(head: StoredHead | undefined): Link {
  if (head === undefined) return { seq: 0, hash: zeroHash, at: 0 };
  return { seq: head.seq, hash: leafHash(head.leaf), at: parseLeaf(head.leaf)?.at ?? 0 };
}

async function writePinOrRefuse(file: string, pin: Pin): Promise<void> {
  try {
    await writePin(file, pin);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new LedgerRefused(
      `the head pin ${file} cannot be written (${code}): set SVC_PIN to a file that this user can write`,
    );
  }
}
