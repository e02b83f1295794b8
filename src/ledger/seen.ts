import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { leafHash, zeroHash } from "./leaf.ts";
import { readPin, type Pin } from "./pin.ts";
import { LedgerRefused, type StoredRow } from "./stores/store.ts";
import { parseCheckpointText } from "./tree/checkpoint.ts";
import { Frontier } from "./tree/merkle.ts";
import { parseNote } from "./tree/note.ts";

/** How far something outside a ledger's file has seen it: a row's hash, or the root over all rows up to it. */
export interface SeenHead {
  readonly log: string;
  readonly seq: number;
  /** SHA-256 in hex. */
  readonly hash?: string | undefined;
  /** Base64. */
  readonly root?: string | undefined;
  /** Who says so, for a sentence: `head pin`. */
  readonly by: string;
  /** Where it lies, in the data folder. */
  readonly file?: string | undefined;
}

/** A head that was seen and is not in the file: beyond its last row, or another row than the one there. */
export interface Parting {
  readonly seen: SeenHead;
  readonly is: "beyond" | "beside";
}

/** Asks others how far they have seen a ledger of that name: sinks, or whoever keeps a checkpoint. */
export type AskOthers = (log: string) => Promise<readonly SeenHead[]>;

/** What a gate leaves in its data folder: the head that it signed last, the last that a quorum cosigned, one that it lacks. */
const checkpointNames = ["checkpoint", "checkpoint.cosigned", "checkpoint.seen"];

/**
 * What a data folder and a pin elsewhere say of how far the ledger went. What others say is a `SeenHead` too.
 *
 * @param folder undefined where the ledger is in a database
 * @throws {LedgerRefused} for a pin or a checkpoint that is damaged
 */
export async function seenHeads(folder: string | undefined, pinFile: string | undefined): Promise<readonly SeenHead[]> {
  const places = [pinFile, folder && join(folder, "head.pin")].filter((file) => file !== undefined);
  const pins = await Promise.all([...new Set(places)].map(readPin));
  const heads = pins
    .filter((pin) => pin !== undefined)
    .map(({ log, seq, hash }): SeenHead => ({ log, seq, hash, by: "head pin" }));
  const files = folder === undefined ? [] : checkpointNames.map((name) => join(folder, name));
  const checkpoints = await Promise.all(files.map((file) => readCheckpoint(file)));
  return [...heads, ...checkpoints.filter((head) => head !== undefined)];
}

/** Reads a checkpoint's file; undefined where there is none. @throws {LedgerRefused} for anything else */
export async function readCheckpoint(file: string): Promise<SeenHead | undefined> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    throw new LedgerRefused(`the checkpoint ${file} cannot be read (${code})`);
  }
  const head = headOf(text, "checkpoint");
  if (head !== undefined) return { ...head, file };
  throw new LedgerRefused(`${file} is no signed checkpoint: it says nothing of the ledger; move it away`);
}

/**
 * What a checkpoint says. Who signed it is not asked: the word of anybody who has seen more keeps a history from being forked,
 * and its operator can put it aside.
 *
 * @returns undefined where it is none
 */
export function headOf(checkpoint: string, by: string): SeenHead | undefined {
  const note = parseNote(checkpoint);
  const said = note && parseCheckpointText(note.text);
  return said && { log: said.origin, seq: said.size, root: said.root.toString("base64"), by };
}

/** A ledger whose rows can be read, wherever it is. */
export interface Readable {
  readonly name: string;
  /** The number of its last row. */
  readonly rows: number;
  scan(from: number): AsyncIterable<readonly Pick<StoredRow, "leaf" | "seq">[]>;
}

/**
 * Which of the heads that were seen are not in a ledger.
 *
 * @throws {LedgerRefused} where one is of another ledger
 */
export async function partings(ledger: Readable, seen: readonly SeenHead[]): Promise<readonly Parting[]> {
  const stranger = seen.find(({ log }) => log !== ledger.name);
  if (stranger !== undefined)
    throw new LedgerRefused(
      `the ${stranger.by} is of the ledger "${stranger.log}", and this one is "${ledger.name}": name the right one`,
    );
  const inside = seen.filter(({ seq }) => seq > 0 && seq <= ledger.rows);
  const found = await headsAt(ledger, inside);
  return seen.flatMap((head): readonly Parting[] => {
    if (head.seq > ledger.rows) return [{ seen: head, is: "beyond" }];
    const here = found.get(head.seq);
    if (here === undefined) return [];
    const isSame = (head.hash ?? here.hash) === here.hash && (head.root ?? here.root) === here.root;
    return isSame ? [] : [{ seen: head, is: "beside" }];
  });
}

/** The pin of the last row. */
export async function pinOf(ledger: Readable): Promise<Pin> {
  const { name: log, rows: seq } = ledger;
  const head = (await headsAt(ledger, [{ seq, root: "" }])).get(seq);
  return head === undefined ? { log, seq, hash: zeroHash } : { log, seq, ...head };
}

interface FoundHead {
  readonly hash: string;
  /** Base64; undefined where none was asked for. */
  readonly root: string | undefined;
}

/** The hashes of some rows, and where a root is asked for the roots of the trees that end with them. */
async function headsAt(
  ledger: Readable,
  wanted: readonly Pick<SeenHead, "root" | "seq">[],
): Promise<ReadonlyMap<number, FoundHead>> {
  const found = new Map<number, FoundHead>();
  const places = new Set(wanted.map(({ seq }) => seq));
  if (places.size === 0) return found;
  const last = Math.max(...places);
  const tree = wanted.some(({ root }) => root !== undefined) ? new Frontier() : undefined;
  for await (const slice of ledger.scan(tree === undefined ? Math.max(1, Math.min(...places)) : 1)) {
    for (const { seq, leaf } of slice) {
      const hash = leafHash(leaf);
      tree?.append(hash);
      if (places.has(seq)) found.set(seq, { hash, root: tree?.root().toString("base64") });
    }
    if ((slice.at(-1)?.seq ?? last) >= last) break;
  }
  return found;
}
