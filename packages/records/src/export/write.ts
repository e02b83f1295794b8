import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { eraseAct, MissingParts, readErasure, type Erasure } from "../../../core/src/record/entry/erasure.ts";
import { withoutParts } from "../../../core/src/record/entry/evidence.ts";
import { parseLeaf } from "../../../core/src/record/entry/leaf.ts";
import { makeFolders, replaceFile, type LedgerHistory } from "../../../gate/src/ledger/mod.ts";
import { readIfThere } from "../../../gate/src/ledger/engine.ts";
import { damagedAt, LedgerRefused } from "../../../gate/src/ledger/errors.ts";
import type { StoredRow } from "../../../core/src/record/entry/row.ts";
import { openSignedBy, parseCheckpointText, type Checkpoint } from "../../../core/src/record/tree/checkpoint.ts";
import { Frontier, hashBytes } from "../../../core/src/record/tree/merkle.ts";
import { claimedText } from "../../../core/src/record/tree/note.ts";
import {
  entryBundle,
  frontierRoots,
  levelSize,
  levelsOf,
  tilePath,
  tilesOf,
  tileWidth,
  type HashReader,
  type Tile,
} from "../../../core/src/record/tree/tiles.ts";
import { firstLink, linkOf, verifyRow, type Link } from "../../../core/src/record/entry/verifier.ts";
import { FlushedFiles } from "./files.ts";
import { checkpointName, contractPath, evidencePath, hintName, hintText, readHint } from "./layout.ts";

/** The result of writing an export. */
export interface ExportResult {
  readonly log: string;
  readonly size: number;
  /** The number of rows that the export had before. */
  readonly before: number;
  /** The verifier key on record. The recipient of the export must get it by another way. */
  readonly vkey: string;
}

/** An open ledger and the signed head up to which it is exported. */
export interface ExportSource {
  readonly history: LedgerHistory;
  /** A signed checkpoint of the ledger. */
  readonly note: string;
}

/** A part of a row was erased, and the signed head does not cover the row that records it. A later head is needed. */
export class NotYetUnderHead extends Error {}

/**
 * Updates an export to a signed head, or creates one. The old content stays a valid export until the new checkpoint
 * replaces the old one in one step. After that, erased parts are removed from it.
 *
 * @param passed called from time to time with the last row
 * @throws {LedgerRefused} if the folder has other files, or the ledger does not continue the export
 * @throws {NotYetUnderHead} if a later head is needed; the export is unchanged
 */
export async function writeExport(
  { history, note }: ExportSource,
  folder: string,
  passed: (row: number) => void,
): Promise<ExportResult> {
  const { name: log, signer: vkey = "" } = history;
  const head = readHead(note, history);
  const old = await openFolder(folder, log);
  if (old.size > head.size)
    throw new LedgerRefused(
      `the export in ${folder} has ${old.size} rows, but the signed head of the ledger only ${head.size}: ` +
        "the ledger lost rows, or it is an old copy",
    );
  const files = new FlushedFiles(folder);
  const writing = await ExportWriter.start(history, files, old);
  try {
    await writing.through(head, passed);
    await files.flush();
  } finally {
    await files.close();
  }
  await replaceFile(join(folder, checkpointName), note);
  for (const [index, erasures] of writing.touched) await takeOut(folder, index, erasures);
  await removePartials(folder, old.settled, head.size);
  await replaceFile(join(folder, hintName), hintText({ log, size: head.size, vkeys: [vkey] }));
  return { log, size: head.size, before: old.size, vkey };
}

function readHead(note: string, { name: log, signer = "" }: LedgerHistory): Checkpoint {
  const head = openSignedBy(signer, note);
  if (head.ok && head.value.origin === log) return head.value;
  throw new LedgerRefused(
    `the stored head of the ledger "${log}" is not signed by its key on record (${signer}): run \`svc-gate verify\``,
  );
}

/** The existing export in the folder. */
interface OldExport {
  /** The number of rows under its checkpoint. */
  readonly size: number;
  readonly root: Buffer | undefined;
  /**
   * The last row up to which everything is done, including erasures. It is less than `size` if an export was
   * interrupted.
   */
  readonly settled: number;
}

async function openFolder(folder: string, log: string): Promise<OldExport> {
  await makeFolder(folder);
  const hint = await readHint(folder);
  if (hint === undefined) {
    if ((await readdir(folder)).some((name) => !name.endsWith(".new")))
      throw new LedgerRefused(
        `${folder} has files that are not an export: name a new folder, or a folder with an export`,
      );
    // The hint names the ledger from the start, so that an interrupted export can be continued.
    await replaceFile(join(folder, hintName), hintText({ log, size: 0, vkeys: [] }));
    return { size: 0, root: undefined, settled: 0 };
  }
  if (hint.log !== log)
    throw new LedgerRefused(
      `${folder} has an export of the ledger "${hint.log}", not of "${log}": name another folder`,
    );
  const note = await readIfThere(join(folder, checkpointName));
  if (note === undefined) return { size: 0, root: undefined, settled: 0 };
  const checkpoint = parseCheckpointText(claimedText(String(note)) ?? "");
  if (checkpoint === undefined || checkpoint.origin !== log)
    throw new LedgerRefused(`the checkpoint in ${folder} is damaged: verify the export, or name a new folder`);
  return { size: checkpoint.size, root: checkpoint.root, settled: Math.min(hint.size, checkpoint.size) };
}

async function makeFolder(folder: string): Promise<void> {
  try {
    await makeFolders(folder, 0o700);
  } catch (error) {
    throw new LedgerRefused(
      `the folder ${folder} cannot be made (${(error as NodeJS.ErrnoException).code}): name a new folder, or a folder with an export`,
    );
  }
}

/** Returns the number of rows in full old bundles, which stay as they are. */
const startOf = (size: number): number => size - (size % tileWidth);

/** Writes rows of a ledger into files. */
class ExportWriter {
  readonly #history: LedgerHistory;
  readonly #files: FlushedFiles;
  readonly #old: OldExport;
  readonly #frontier: Frontier;
  /** The hashes of the last, incomplete tile of each level. */
  readonly #open: Buffer[][];
  readonly #missing = new MissingParts();
  readonly #contracts = new Set<string>();
  #bundle: StoredRow[] = [];
  /** Erasures of rows in old bundles, by the index of the bundle. */
  readonly touched = new Map<number, Erasure[]>();

  private constructor(
    history: LedgerHistory,
    files: FlushedFiles,
    old: OldExport,
    { frontier, open }: { readonly frontier: Frontier; readonly open: Buffer[][] },
  ) {
    this.#history = history;
    this.#files = files;
    this.#old = old;
    this.#frontier = frontier;
    this.#open = open;
  }

  static async start(history: LedgerHistory, files: FlushedFiles, old: OldExport): Promise<ExportWriter> {
    const start = startOf(old.size);
    const frontier = new Frontier(start, await frontierRoots(history.hashes, start));
    // Level 0 starts a new tile here; the levels above continue their tiles.
    const above = levelsOf(start).slice(1);
    const open = [[], ...(await Promise.all(above.map((level) => openTile(history.hashes, level, start))))];
    const writing = new ExportWriter(history, files, old, { frontier, open });
    writing.#compareWithOld();
    return writing;
  }

  /** Writes all rows up to a head, and the other files of its tree, but not the checkpoint. */
  async through(head: Checkpoint, passed: (row: number) => void): Promise<void> {
    const start = startOf(this.#old.size);
    await this.#findErasures(this.#old.settled + 1, start);
    let link = start === 0 ? firstLink : await this.#linkAt(start);
    for await (const slice of start < head.size ? this.#history.scan(start + 1) : []) {
      for (const row of slice.slice(0, head.size - link.seq)) {
        link = await this.#take(row, link);
        passed(row.seq);
      }
      if (link.seq >= head.size) break;
    }
    if (link.seq < head.size) throw damagedAt(link.seq + 1, "the row is missing, but the signed head covers it");
    if (!this.#frontier.root().equals(head.root))
      throw damagedAt(head.size, "the rows differ from those of the signed head");
    const { first } = this.#missing;
    if (first !== undefined)
      throw new NotYetUnderHead(`row ${first.seq} lacks a part, and no row under the signed head records its erasure`);
    await this.#closeBundle();
    for (const [level, hashes] of this.#open.entries()) if (hashes.length > 0) await this.#writeTile(level, hashes);
  }

  async #take(row: StoredRow, before: Link): Promise<Link> {
    const verified = verifyRow(row, before, this.#history.name);
    if ("problem" in verified) throw damagedAt(verified.seq, verified.problem);
    const { link, leaf, missing } = verified;
    const broken = this.#missing.pass(leaf, row.evidence, missing);
    if (broken !== undefined) throw damagedAt(broken.seq, broken.problem);
    if (leaf.act === eraseAct && leaf.seq > this.#old.settled) this.#touch(readErasure(row.evidence, leaf.seq));
    if (leaf.contract !== null) await this.#keepContract(leaf.contract);
    await this.#grow(link.hash);
    this.#bundle.push(row);
    if (this.#bundle.length === tileWidth) await this.#closeBundle();
    return link;
  }

  async #grow(hash: string): Promise<void> {
    const nodes = this.#frontier.append(hash);
    for (const node of [{ level: 0, hash: Buffer.from(hash, "hex") }, ...nodes]) {
      const hashes = (this.#open[node.level] ??= []);
      hashes.push(node.hash);
      if (hashes.length === tileWidth) {
        await this.#writeTile(node.level, hashes);
        this.#open[node.level] = [];
      }
    }
    this.#compareWithOld();
  }

  /** Refuses to write unless the old export is a prefix of this tree. */
  #compareWithOld(): void {
    const { size, root } = this.#old;
    if (root === undefined || this.#frontier.size !== size || this.#frontier.root().equals(root)) return;
    throw new LedgerRefused(
      `the ledger's first ${size} rows differ from the exported rows: ` +
        "the ledger or the export was changed; keep both, and verify both",
    );
  }

  async #writeTile(level: number, hashes: readonly Buffer[]): Promise<void> {
    const reached = levelSize(this.#frontier.size, level);
    const tile = { level, index: (reached - hashes.length) / tileWidth, width: hashes.length };
    await this.#files.write(tilePath(tile), Buffer.concat(hashes));
  }

  async #closeBundle(): Promise<void> {
    const [first] = this.#bundle;
    if (first === undefined) return;
    const bundle: Tile = { level: "entries", index: (first.seq - 1) / tileWidth, width: this.#bundle.length };
    await this.#files.write(tilePath(bundle), entryBundle(this.#bundle.map(({ leaf }) => leaf)));
    await this.#files.write(evidencePath(bundle), this.#bundle.map(({ evidence }) => `${evidence}\n`).join(""));
    this.#bundle = [];
  }

  async #keepContract(name: string): Promise<void> {
    if (this.#contracts.has(name)) return;
    const digest = name.replace(/^sha256:/, "");
    const text = await this.#history.contractText(digest);
    if (text === undefined)
      throw new LedgerRefused(`the ledger lacks the text of the contract ${name}: run \`svc-gate verify --deep\``);
    await this.#files.write(contractPath(digest), text);
    this.#contracts.add(name);
  }

  /** Finds erasures that an interrupted export already had under its checkpoint but did not apply. */
  async #findErasures(from: number, to: number): Promise<void> {
    if (from > to) return;
    for await (const slice of this.#history.scan(from)) {
      for (const { seq, leaf, evidence } of slice) {
        if (seq > to) return;
        if (parseLeaf(leaf)?.act === eraseAct) this.#touch(readErasure(evidence, seq));
      }
    }
  }

  #touch(erasure: Erasure | undefined): void {
    const bundles = startOf(this.#old.size) / tileWidth;
    for (const [from, to] of erasure?.rows ?? []) {
      const last = Math.min(bundles - 1, Math.floor((to - 1) / tileWidth));
      for (let index = Math.floor((from - 1) / tileWidth); index <= last; index += 1) {
        const known = this.touched.getOrInsertComputed(index, () => []);
        known.push({ parts: erasure?.parts ?? [], rows: [[from, to]] });
      }
    }
  }

  async #linkAt(seq: number): Promise<Link> {
    for await (const [row] of this.#history.scan(seq)) if (row?.seq === seq) return linkOf(row);
    throw damagedAt(seq, "the row is missing, but the signed head covers it");
  }
}

async function openTile(read: HashReader, level: number, size: number): Promise<Buffer[]> {
  const reached = levelSize(size, level);
  const count = reached % tileWidth;
  if (count === 0) return [];
  const hashes = await read(level, reached - count, count);
  return Array.from({ length: count }, (_, at) => hashes.subarray(at * hashBytes, (at + 1) * hashBytes));
}

/** Removes parts from an old bundle of evidence, and replaces the file in one step. */
async function takeOut(folder: string, index: number, erasures: readonly Erasure[]): Promise<void> {
  const file = join(folder, evidencePath({ index, width: tileWidth }));
  const text = await readIfThere(file);
  if (text === undefined)
    throw new LedgerRefused(`${file} is missing, so erased data may remain in a copy of it: export into a new folder`);
  const lines = String(text).split("\n");
  for (const { parts, rows } of erasures) {
    for (const [from, to] of rows) {
      const first = Math.max(from - 1 - index * tileWidth, 0);
      const last = Math.min(to - 1 - index * tileWidth, tileWidth - 1);
      for (let at = first; at <= last; at += 1) lines[at] = withoutParts(lines[at] ?? "", parts);
    }
  }
  await replaceFile(file, lines.join("\n"));
}

/** Removes partial tiles and bundles of older sizes, which would still have the text of erased parts. */
async function removePartials(folder: string, from: number, size: number): Promise<void> {
  const kinds = [
    { entry: (tile: Tile) => evidencePath(tile), level: "entries" as const },
    { entry: tilePath, level: "entries" as const },
    ...levelsOf(size).map((level) => ({ entry: tilePath, level })),
  ];
  for (const { entry, level } of kinds) {
    const first = Math.floor((level === "entries" ? from : levelSize(from, level)) / tileWidth);
    for (const tile of tilesOf(size, level, first)) await keepOnly(folder, entry({ ...tile, width: 1 }), tile.width);
  }
}

/** @param partial the path of a tile's narrowest form, `.../067.p/1` */
async function keepOnly(folder: string, partial: string, width: number): Promise<void> {
  const widths = join(folder, partial.slice(0, partial.lastIndexOf("/")));
  if (width === tileWidth) return rm(widths, { recursive: true, force: true });
  for (const name of await readdir(widths))
    if (name !== String(width)) await rm(join(widths, name), { recursive: true });
}
