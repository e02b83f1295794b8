import { open } from "node:fs/promises";
import { join } from "node:path";
import { files, pinIn } from "../files/data-folder.ts";
import { readIfThere } from "../files/durable-file.ts";
import { noRows, readPin, type Pin } from "./pin.ts";
import type { Anchor } from "../../../../core/src/record/tree/walk.ts";
import { LedgerRefused } from "../errors.ts";
import { openSignedBy, parseCheckpointText, type Checkpoint } from "../../../../core/src/record/tree/checkpoint.ts";
import { claimedText } from "../../../../core/src/record/tree/note.ts";
import { rootAt, type HashReader } from "../../../../core/src/record/tree/tiles.ts";

/** A head of a ledger that somebody outside has observed: a row's hash, the root over all rows up to it, or both. */
export interface ObservedHead extends Anchor {
  readonly log: string;
  /** Its file, if it is in the data folder. */
  readonly file?: string | undefined;
  /** When it was observed, in milliseconds; undefined if nobody says when. */
  readonly at?: number | undefined;
  /** The checkpoint, if a key of the ledger has signed it. A head without it is only a claim. */
  readonly proof?: string | undefined;
}

/**
 * An observed head that the ledger does not have. `truncated`: rows are missing from the end. `forked`: the ledger has
 * other rows with the same numbers.
 */
export interface Divergence {
  readonly kind: "truncated" | "forked";
  readonly head: ObservedHead;
}

/** Asks others how far they have observed the ledger with this name. */
export type AskOthers = (log: string) => Promise<readonly ObservedHead[]>;

const checkpointNames = [files.checkpoint, files.cosigned, files.seen];

/**
 * Returns the heads in a data folder and in a pin outside it.
 *
 * @param folder undefined if the ledger is in a database
 * @throws {LedgerRefused} if a pin or a checkpoint is damaged
 */
export async function seenHeads(
  folder: string | undefined,
  pinFile: string | undefined,
): Promise<readonly ObservedHead[]> {
  const pinFiles = [pinFile, folder && pinIn(folder)].filter((file) => file !== undefined);
  const pins = await Promise.all([...new Set(pinFiles)].map(readPin));
  const heads = pins.filter((pin) => pin !== undefined).map(pinnedHead);
  const notes = folder === undefined ? [] : checkpointNames.map((name) => join(folder, name));
  const checkpoints = await Promise.all(notes.map((file) => readCheckpoint(file)));
  return [...heads, ...checkpoints.filter((head) => head !== undefined)];
}

export function pinnedHead({ log, seq, hash, root }: Pin): ObservedHead {
  return { log, seq, hash, root, by: "head pin" };
}

/**
 * Reads the file of a checkpoint; undefined if it does not exist.
 *
 * @throws {LedgerRefused} if it is not a checkpoint
 */
async function readCheckpoint(file: string): Promise<ObservedHead | undefined> {
  const bytes = await readIfThere(file).catch(({ code }: NodeJS.ErrnoException) => {
    throw new LedgerRefused(`the checkpoint ${file} cannot be read (${code})`);
  });
  if (bytes === undefined) return undefined;
  const head = headOf(bytes.toString("utf8"), "checkpoint");
  if (head !== undefined) return { ...head, file };
  throw new LedgerRefused(`${file} is not a signed checkpoint: move it away`);
}

/** About 20,000 checkpoints. A start computes the root of the tree for each, in about a millisecond. */
const collectedBytesMax = 4 * 1024 * 1024;

/** A signed checkpoint that starts on its own line: origin, size, root, then signatures. */
const noteInText = /^(?!— )[^\n]+\n[0-9]+\n[A-Za-z0-9+/=]+\n\n(?:— [^\n]+\n)+/gm;

/** Returns the complete checkpoints in a text, in order. Damaged checkpoints and other text are skipped. */
export function notesIn(text: string): readonly string[] {
  return [...text.matchAll(noteInText)].map(([note]) => note).filter((note) => headOf(note, "") !== undefined);
}

/**
 * Reads a file of checkpoints that somebody outside has collected, of one ledger or several, in any order.
 *
 * @returns each checkpoint once
 * @throws {LedgerRefused} if the file cannot be read, is too large or has no checkpoint
 */
export async function readCollected(file: string): Promise<readonly string[]> {
  const notes = notesIn(await readBounded(file));
  if (notes.length > 0) return [...new Set(notes)];
  throw new LedgerRefused(`${file} has no signed checkpoint: collect the answers of GET /checkpoint in it`);
}

async function readBounded(file: string): Promise<string> {
  try {
    await using handle = await open(file, "r");
    const { size } = await handle.stat();
    if (size <= collectedBytesMax) return await handle.readFile("utf8");
  } catch (error) {
    throw new LedgerRefused(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  throw new LedgerRefused(
    `${file} is over 4 MiB: name a file with its newest checkpoints, such as its last 30000 lines`,
  );
}

/**
 * Returns the head of a checkpoint without checking its signatures. Anyone who has seen more rows can prevent a fork,
 * and the operator can move a false checkpoint away.
 *
 * @returns undefined if it is not a checkpoint
 */
export function headOf(checkpoint: string, by: string): ObservedHead | undefined {
  const claim = parseCheckpointText(claimedText(checkpoint) ?? "");
  return claim && signedHead(claim, by);
}

function signedHead({ origin, size, root }: Checkpoint, by: string): ObservedHead {
  return { log: origin, seq: size, root: root.toString("base64"), by };
}

/**
 * Returns the last head that the ledger's own key has signed, from the folder. The ledger must have all rows of it.
 *
 * @param signer the verifier key on record; undefined before the first
 * @returns undefined if the checkpoint is missing, or another key has signed it
 */
export async function ownHead(folder: string, signer: string | undefined): Promise<ObservedHead | undefined> {
  const note = await readCheckpointNote(folder);
  const opened = note === undefined || signer === undefined ? undefined : openSignedBy(signer, note);
  return opened?.ok === true ? signedHead(opened.value, "checkpoint") : undefined;
}

/** Reads the signed checkpoint in a ledger's folder, without checking it. */
export async function readCheckpointNote(folder: string): Promise<string | undefined> {
  return (await readIfThere(join(folder, files.checkpoint)))?.toString("utf8");
}

/** A ledger whose rows can be read, in a folder or a database. */
export interface Readable {
  readonly name: string;
  /** The number of its last row. */
  readonly rows: number;
  readonly hashes: HashReader;
}

/**
 * Finds the observed heads that a ledger does not have. Roots are computed from the stored inner hashes. Wrong inner
 * hashes can hide a head that the ledger has, but they never show a head that it does not have. So walk the rows before
 * you call the ledger forked.
 *
 * @throws {LedgerRefused} if a head is of another ledger
 */
export async function divergences(ledger: Readable, observed: readonly ObservedHead[]): Promise<readonly Divergence[]> {
  requireName(ledger.name, observed);
  const found: Divergence[] = [];
  for (const head of observed) {
    const kind = await divergenceOf(ledger, head);
    if (kind !== undefined) found.push({ kind, head });
  }
  return found;
}

/** How a ledger differs from an observed head; undefined if it has that head. */
export async function divergenceOf(
  ledger: Omit<Readable, "name">,
  { seq, hash, root }: Pick<ObservedHead, "hash" | "root" | "seq">,
): Promise<Divergence["kind"] | undefined> {
  if (seq > ledger.rows) return "truncated";
  if (seq === 0) return undefined;
  const isSame =
    (hash === undefined || hash === (await hashOf(ledger, seq))) &&
    (root === undefined || root === (await rootOf(ledger, seq)));
  return isSame ? undefined : "forked";
}

/** @throws {LedgerRefused} if a head is of a ledger with another name */
export function requireName(name: string, seen: readonly ObservedHead[]): void {
  const stranger = seen.find(({ log }) => log !== name);
  if (stranger === undefined) return;
  throw new LedgerRefused(
    `the ${stranger.by} is of the ledger "${stranger.log}", not of "${name}": put the right file back, or name the right file`,
  );
}

/** @throws {LedgerRefused} if the ledger lacks an observed head. Then it must not be served or extended */
export async function requireSeen(ledger: Readable, seen: readonly ObservedHead[]): Promise<void> {
  const [divergence] = await divergences(ledger, seen);
  if (divergence !== undefined) throw new LedgerRefused(refusalOf(divergence, ledger.rows));
}

function refusalOf({ kind, head: { by, root, seq } }: Divergence, rows: number): string {
  if (kind === "truncated")
    return (
      `the ledger ends at row ${rows}, but its ${by} has seen row ${seq}: rows are missing from its end; restore the file, ` +
      "or continue without them with `svc-gate resume --after-restore`"
    );
  if (root === undefined)
    return `row ${seq} of the ledger differs from the row that its ${by} has seen: the history was changed; restore the file`;
  return (
    `the tree over the first ${seq} rows differs from the tree that its ${by} has seen: the history, or an inner hash of its tree, ` +
    "was changed; run `svc-gate verify`, and restore the file from a backup"
  );
}

/** Returns the last row and the root over all rows, of a verified ledger. */
export async function lastHead(ledger: Readable): Promise<Pin> {
  const { name: log, rows: seq } = ledger;
  if (seq === 0) return { log, ...noRows };
  return { log, seq, hash: await hashOf(ledger, seq), root: await rootOf(ledger, seq) };
}

/** Recomputes the hash from the row's leaf. */
async function hashOf({ hashes }: Pick<Readable, "hashes">, seq: number): Promise<string> {
  return (await hashes(0, seq - 1, 1)).toString("hex");
}

async function rootOf({ hashes }: Pick<Readable, "hashes">, seq: number): Promise<string> {
  return (await rootAt(hashes, seq)).toString("base64");
}
