import type { Result } from "../wire/mod.ts";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { leafHash, parseLeaf, zeroHash } from "./leaf.ts";
import { keyDigester, Ledger, type LedgerCheck } from "./ledger.ts";
import { readIfThere } from "./durable-file.ts";
import { damaged, growTree, readerOf, treeAt } from "./growth.ts";
import { HeadPin, readPin, writePin, type Pin } from "./pin.ts";
import type { Database } from "./stores/postgres.ts";
import { inspectSqlite, openSqlite, readSqlite, type SqliteThreads } from "./stores/sqlite.ts";
import type { KeptCounter } from "./stores/seals.ts";
import {
  LedgerRefused,
  type Broken,
  type EventPlace,
  type LedgerStore,
  type StoredHead,
  type StoredRow,
} from "./stores/store.ts";
import { openSigner } from "./signer.ts";
import { openCheckpoint, type Checkpoint } from "./tree/checkpoint.ts";
import { emptyRoot } from "./tree/merkle.ts";
import { parseVerifierKey } from "./tree/note.ts";
import { requireSigningKeys, Signer } from "./tree/signing-key.ts";
import { rootAt, type HashReader } from "./tree/tiles.ts";
import type { LedgerHead } from "./turn.ts";

export interface LedgerOptions {
  /** Made with mode 0700 where it is not there. */
  readonly folder: string;
  /** The database that keeps the ledger in place of the folder, and the ledger's id there. */
  readonly shared?: { readonly database: Database; readonly ledger: string } | undefined;
  /** Threads that many ledgers in folders share; without them it has its own. */
  readonly threads?: SqliteThreads | undefined;
  /** Where the head pin is kept; when undefined in the folder, which anchors nothing outside it, and nowhere if shared. */
  readonly pinFile?: string | undefined;
  /** The name of a new ledger, at most 100 bytes; a random one when undefined. */
  readonly name?: string | undefined;
  /** What writes the receipts, such as `svc-gate/1.0.0`. */
  readonly engine: string;
  /** Where the private key lies that signs heads; by default `signing.key` in the folder, made where none ever was. */
  readonly signingKeyFile?: string | undefined;
  /** The operator says that the ledger is whole though its pin is not there. */
  readonly acceptMissingPin?: boolean;
  /** The operator says that the key which signed heads is lost, or given up, and vouches for the one there is now. */
  readonly acceptSigningKey?: boolean;
  /** It is known to be behind or beside its pin, which moves with the first commit: `openPastPin` alone says so. */
  readonly isPastPin?: boolean;
}

const tailRows = 1000;
const nameBytesMax = 100;

/**
 * Opens a ledger, or begins one where none ever was.
 *
 * @throws {LedgerRefused} with a sentence for the operator, when it must not be served
 */
export async function openLedger(options: LedgerOptions): Promise<Ledger> {
  const { folder, name } = options;
  if (name !== undefined && !isName(name)) {
    throw new LedgerRefused(
      `the ledger's name must be 1 to ${nameBytesMax} bytes of visible characters without + " \\, such as example.org/payments`,
    );
  }
  const { shared } = options;
  const pinFile = options.pinFile ?? (shared === undefined ? join(folder, "head.pin") : undefined);
  if (shared === undefined) await makeFolder(folder);
  const pin = pinFile === undefined ? undefined : await readPin(pinFile);
  const store =
    shared === undefined
      ? await openSqlite({ folder, log: name, mustExist: pin !== undefined }, options.threads)
      : await shared.database.open({ ledger: shared.ledger, log: name });
  try {
    return await admit(store, pin, pinFile, options);
  } catch (error) {
    await store.close();
    throw error;
  }
}

export interface InspectOptions extends Pick<LedgerOptions, "folder" | "pinFile"> {
  /** Order, links and hashes of the leaves, and nothing of what they commit to. */
  readonly chainAlone?: boolean;
}

/**
 * Walks the ledger of a folder from outside, whether a gate is serving it or not, and holds it against its pin.
 *
 * @throws {LedgerRefused} when there is none, or its pin is damaged
 */
export async function inspectLedger({ folder, pinFile, chainAlone }: InspectOptions): Promise<LedgerCheck> {
  const pin = await readPin(pinFile ?? join(folder, "head.pin"));
  const anchors =
    pin === undefined || pin.seq === 0 ? [] : [{ seq: pin.seq, hash: pin.hash, root: pin.root, by: "head pin" }];
  const check = await inspectSqlite(folder, {
    anchors,
    chainAlone: chainAlone === true,
    mustExist: pin !== undefined,
  });
  if (pin !== undefined && pin.log !== check.log)
    throw new LedgerRefused(
      `the head pin is of the ledger "${pin.log}", the file is "${check.log}": put the right file back`,
    );
  const isWhole = check.broken === undefined && chainAlone !== true;
  return {
    ...check,
    broken: isWhole ? await wrongCheckpoint(folder) : check.broken,
    anchored: pin === undefined || pinFile === undefined ? undefined : { seq: pin.seq, by: "head pin" },
  };
}

/** The signed checkpoint that is left in the folder is of the key on record, and over these rows. */
async function wrongCheckpoint(folder: string): Promise<Broken | undefined> {
  const ledger = await readLedger(folder);
  const { signer = "", rows, hashes } = ledger;
  try {
    const kept = await readCheckpoint(folder, signer);
    if (kept === undefined) return undefined;
    const expected = `one that ${signer} signed; a gate that has just started with another key writes it within a second`;
    if (!kept.ok)
      return { seq: rows + 1, problem: "the checkpoint in the folder does not hold", expected, found: kept.problem };
    return await partedCheckpoint(kept.value, { rows, hashes });
  } finally {
    await ledger.close();
  }
}

/** The signed checkpoint in a ledger's folder, if the key on record has signed it; undefined where there is none. */
async function readCheckpoint(folder: string, signer: string): Promise<Result<Checkpoint, string> | undefined> {
  const note = (await readIfThere(join(folder, checkpointFile)))?.toString("utf8");
  if (note === undefined || signer === "") return undefined;
  const key = parseVerifierKey(signer);
  return key.ok ? openCheckpoint(note, [key.value]) : key;
}

interface RowsThere {
  readonly rows: number;
  readonly hashes: HashReader;
}

/** The ledger ends before a head that was signed, or has other rows under it. */
async function partedCheckpoint({ size, root }: Checkpoint, { rows, hashes }: RowsThere): Promise<Broken | undefined> {
  if (size > rows) {
    const problem = "rows are missing from the end: the checkpoint in the folder is of more";
    return { seq: rows + 1, problem, expected: `row ${size}`, found: `row ${rows}` };
  }
  const [expected, found] = [root, size === 0 ? emptyRoot : await rootAt(hashes, size)];
  const problem = "the checkpoint in the folder is of other rows";
  return found.equals(expected)
    ? undefined
    : { seq: size, problem, expected: expected.toString("base64"), found: found.toString("base64") };
}

/**
 * What the ledger's own key has signed, it must have: a folder whose file and pin were both put back is told by it. One
 * that another key signed says nothing here.
 */
async function holdAgainstCheckpoint(store: LedgerStore, folder: string): Promise<void> {
  const kept = await readCheckpoint(folder, store.opened.signer ?? "");
  const rows = store.opened.head?.seq ?? 0;
  const parted = kept?.ok === true ? await partedCheckpoint(kept.value, { rows, hashes: readerOf(store) }) : undefined;
  if (parted === undefined) return;
  throw new LedgerRefused(
    `${parted.problem} (it has ${parted.expected}, the ledger ${parted.found}): restore what is missing, or go on without it ` +
      "with `svc-gate resume --after-restore`",
  );
}

/** A ledger that is read from outside, whether a gate is serving it or not. */
export interface LedgerHistory {
  readonly name: string;
  /** The number of its last row when it was opened; 0 when there is none. */
  readonly rows: number;
  /** Stored rows oldest first, in slices. */
  scan(from: number): AsyncIterable<readonly StoredRow[]>;
  /** The body of GET /rules, by its SHA-256 in hex. */
  contractText(digest: string): Promise<string | undefined>;
  /** The digest under which a counter's key stands in effects. */
  keyDigest(key: string): string;
  /** The counters that it kept when it was opened: nothing had been folded into them of a row past `rows`. */
  readonly kept: readonly KeptCounter[];
  /** The same, as they stand now. */
  counters(): Promise<readonly KeptCounter[]>;
  /** For each place the total of all events before it, a decimal; undefined where no such counter is kept. */
  totals(places: readonly EventPlace[]): Promise<readonly (string | undefined)[]>;
  /** What the engine finds wrong in what it keeps beside the rows, such as an index; undefined where it cannot be asked. */
  structure(): Promise<Broken | undefined>;
  /** The verifier key on record for its heads; undefined before the first. */
  readonly signer: string | undefined;
  /** Signed checkpoints that were kept, a second old at most: the latest, then the latest that witnesses have cosigned. */
  readonly checkpoints: readonly string[];
  readonly hashes: HashReader;
  /** The leaves of so many rows from one on, as far as they are there. */
  leaves(from: number, count: number): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** @throws {LedgerRefused} when there is none, or it cannot be read */
export async function readLedger(folder: string): Promise<LedgerHistory> {
  const { log, counterSecret, ...history } = await readSqlite(folder);
  const kept = await Promise.all([checkpointFile, cosignedFile].map((name) => readIfThere(join(folder, name))));
  return {
    ...history,
    name: log,
    keyDigest: keyDigester(counterSecret),
    checkpoints: kept.filter((note) => note !== undefined).map(String),
    hashes: readerOf(history),
  };
}

/** The latest signed checkpoint, which a gate leaves in its data folder for who reads that from outside. */
const checkpointFile = "checkpoint";

/** The latest that a quorum of witnesses has cosigned. */
export const cosignedFile = "checkpoint.cosigned";

/** What a signed note takes as the name of its key, and what stands in a leaf as it is. */
function isName(name: string): boolean {
  return Buffer.byteLength(name) <= nameBytesMax && name.isWellFormed() && /^[^\s\p{C}+"\\]+$/u.test(name);
}

async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new LedgerRefused(
      `the data folder ${folder} cannot be made (${(error as NodeJS.ErrnoException).code}): make it, or name another with SVC_DATA_DIR`,
    );
  }
}

/** Holds what was opened against the pin and its own tail before anything is served. */
async function admit(
  store: LedgerStore,
  pin: Pin | undefined,
  pinFile: string | undefined,
  options: LedgerOptions,
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
      `the ledger has ${head.seq} rows but its head pin ${pinFile} is not there: ` +
        "restore it, or verify the ledger and start once with --accept missing-pin",
    );
  }
  if (pin !== undefined && !isPastPin) await holdAgainstPin(store, pin);
  const keyPlace = {
    file: options.signingKeyFile ?? join(options.folder, "signing.key"),
    acceptNew: options.acceptSigningKey === true,
  };
  const signer = await openSigner(store, keyPlace);
  if (!store.opened.hasTree) await growTree(store, signer.signer, options.engine);
  const check = await store.verify(Math.max(1, (head?.seq ?? 0) - tailRows), []);
  if (check.broken !== undefined) throw damaged(check.broken);
  if (!isPastPin) await holdTreeAgainstPin(store, pin);
  const isShared = options.shared !== undefined;
  if (!isPastPin && !isShared) await holdAgainstCheckpoint(store, options.folder);
  const current = headOf(head);
  const tree = await treeAt(store, current.seq);
  const root = tree.root().toString("base64");
  const certain = !isShared || isPastPin ? { ...current, root } : (pin ?? { seq: 0, hash: zeroHash });
  if (pinFile !== undefined && !isPastPin) await placePin(pinFile, { ...certain, log });
  const besideFile = isShared ? undefined : join(options.folder, checkpointFile);
  const ledger = new Ledger({
    store,
    head: current,
    tree,
    signer,
    readSigner: async () => new Signer(log, await requireSigningKeys(keyPlace.file)),
    certain,
    pin: pinFile === undefined ? undefined : new HeadPin({ pin: pinFile, checkpoint: besideFile }),
    isShared,
    isAnchored: options.pinFile !== undefined,
    engine: options.engine,
  });
  if (!isShared && !isPastPin) ledger.pinHead();
  return ledger;
}

/** What the pin has seen of the tree is what the rows and the inner hashes that are kept make it. */
async function holdTreeAgainstPin(store: LedgerStore, pin: Pin | undefined): Promise<void> {
  if (pin?.root === undefined || pin.seq === 0) return;
  const root = await rootAt(readerOf(store), pin.seq);
  if (root.toString("base64") === pin.root) return;
  throw new LedgerRefused(
    `the tree over the first ${pin.seq} rows is not the one that the head pin has seen: the history, or an inner hash of its ` +
      "tree, was changed; run `svc-gate verify`, and restore the file from a backup",
  );
}

/** As it was when the store was opened: on a shared ledger others may have added rows since. */
function headOf(head: StoredHead | undefined): LedgerHead {
  if (head === undefined) return { seq: 0, hash: zeroHash, at: 0 };
  return { seq: head.seq, hash: leafHash(head.leaf), at: parseLeaf(head.leaf)?.at ?? 0 };
}

async function placePin(file: string, pin: Pin): Promise<void> {
  try {
    await writePin(file, pin);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new LedgerRefused(
      `the head pin ${file} cannot be written (${code}): SVC_PIN names a file that this user can write`,
    );
  }
}

async function holdAgainstPin(store: LedgerStore, pin: Pin): Promise<void> {
  const { log, head } = store.opened;
  if (pin.log !== log)
    throw new LedgerRefused(
      `the head pin is of the ledger "${pin.log}", the file is "${log}": put the right file back`,
    );
  const reached = head?.seq ?? 0;
  if (pin.seq > reached) {
    throw new LedgerRefused(
      `the ledger ends at row ${reached}, and its head pin has seen row ${pin.seq}: rows are missing from its end; restore the file`,
    );
  }
  for await (const [row] of pin.seq === 0 ? [] : store.scan(pin.seq)) {
    if (row !== undefined && row.seq === pin.seq && leafHash(row.leaf) === pin.hash) return;
    throw new LedgerRefused(
      `row ${pin.seq} of the ledger is not the one that its head pin has seen: the history was changed; restore the file`,
    );
  }
}
