import { isUtf8 } from "node:buffer";
import { areSalted } from "../../../core/src/record/entry/evidence.ts";
import type { Leaf } from "../../../core/src/record/entry/leaf.ts";
import type { Finding, FindingCode } from "../../../core/src/record/entry/row.ts";
import { misnamedCheck, type Link } from "../../../core/src/record/entry/verifier.ts";
import {
  BrokenHere,
  Walk,
  type WalkResult,
  type WalkedRow,
  type WalkedSlice,
  type WalkSource,
} from "../../../gate/src/ledger/engine.ts";
import { parseCheckpointText, type Checkpoint } from "../../../core/src/record/tree/checkpoint.ts";
import { hashAt, hashBytes, lastUnder, type TreeNode } from "../../../core/src/record/tree/merkle.ts";
import { parseNote, verifySignature, type VerifierKey } from "../../../core/src/record/tree/note.ts";
import { levelSize, tilePath, tileWidth, type Tile } from "../../../core/src/record/tree/tiles.ts";
import { Checks } from "./checks.ts";
import { checkpointName, contractPath, evidencePath, readBounded, sizesMax } from "./layout.ts";

/** The codes of spec/export.md for mistakes in an export. */
export type ExportProblem = FindingCode | "checkpoint" | "cosignature" | "signature" | "unsigned";

/** The result of verifying an export. */
export interface ExportReport {
  /** The checkpoint; undefined if it is missing or not valid. */
  readonly checkpoint: Checkpoint | undefined;
  readonly rows: number;
  readonly contracts: number;
  readonly erasedParts: number;
  readonly signedBy: readonly VerifierKey[];
  readonly cosignedBy: readonly VerifierKey[];
  /** The first mistake; row 0 means that it is not in a row. */
  readonly problem: { readonly code: ExportProblem; readonly row: number; readonly text: string } | undefined;
}

export interface VerifyExportOptions {
  readonly folder: string;
  /** The keys of the log. At least one of them must have signed. */
  readonly keys: readonly VerifierKey[];
  readonly witnesses: readonly VerifierKey[];
  /** Skips evidence and contracts. */
  readonly chainAlone: boolean;
  /**
   * Called from time to time.
   *
   * @param row the last valid row
   * @param size the size of the tree
   */
  readonly passed?: (row: number, size: number) => void;
}

/** Verifies an export as spec/export.md defines. At most two bundles of 256 rows are in memory. */
export async function verifyExport(options: VerifyExportOptions): Promise<ExportReport> {
  const head = await openCheckpoint(options);
  const { checkpoint, problem } = head;
  if (checkpoint === undefined || problem !== undefined) return { ...head, rows: 0, contracts: 0, erasedParts: 0 };
  const { chainAlone } = options;
  const walk = new Walk(new ExportReader(options, checkpoint), { from: 1, anchors: [], chainAlone });
  const { broken, head: last } = await walk.run();
  const { row, code, problem: text } = (broken ?? {}) as Partial<ExportFinding>;
  const named = row ?? broken?.seq ?? 0;
  return {
    ...head,
    ...walk.counts,
    rows: named === 0 ? last.seq : named - 1,
    problem: broken && { code: code as ExportProblem, row: named, text: text ?? "" },
  };
}

type CheckpointReport = Pick<ExportReport, "checkpoint" | "cosignedBy" | "problem" | "signedBy">;

async function openCheckpoint({ folder, keys, witnesses }: VerifyExportOptions): Promise<CheckpointReport> {
  const head = { checkpoint: undefined as Checkpoint | undefined, signedBy: noKeys, cosignedBy: noKeys };
  const reportProblem = (code: ExportProblem, text: string): CheckpointReport => ({
    ...head,
    problem: { code, row: 0, text },
  });
  const bytes = await readBounded(folder, checkpointName, sizesMax.checkpoint);
  if (bytes === undefined) return reportProblem("checkpoint", notThere(checkpointName, sizesMax.checkpoint));
  const note = isUtf8(bytes) ? parseNote(bytes.toString("utf8")) : undefined;
  if (note === undefined) return reportProblem("checkpoint", "the checkpoint is not a signed note");
  const checkpoint = parseCheckpointText(note.text);
  if (checkpoint === undefined || checkpoint.size >= sizeEnd)
    return reportProblem("checkpoint", "the checkpoint does not state an origin, a tree size and a root hash");
  head.checkpoint = checkpoint;
  // In the order of their lines, because the first wrong signature is reported.
  for (const signature of note.signatures) {
    const byLog = verifySignature(note.text, signature, keys);
    if (!byLog.ok) return reportProblem("signature", byLog.problem);
    const byWitness = verifySignature(note.text, signature, witnesses);
    if (!byWitness.ok) return reportProblem("cosignature", byWitness.problem);
    if (byLog.value?.key.name === checkpoint.origin) head.signedBy = together(head.signedBy, [byLog.value.key]);
    if (byWitness.value !== undefined) head.cosignedBy = together(head.cosignedBy, [byWitness.value.key]);
  }
  if (head.signedBy.length === 0)
    return reportProblem("unsigned", "no given key that is named as the log has signed the checkpoint");
  return { ...head, problem: undefined };
}

const noKeys: readonly VerifierKey[] = [];

/** A row's number has at most 15 digits in its leaf. */
const sizeEnd = 1e15;

/** A finding that is reported at the first row below a tile, not at the row where it was found. */
interface ExportFinding extends Finding {
  readonly row?: number;
}

function need(
  isTrue: boolean,
  code: FindingCode,
  at: number | readonly [seq: number, row: number],
  problem: string,
): asserts isTrue {
  if (isTrue) return;
  const [seq, row] = typeof at === "number" ? [at, at] : at;
  const finding: ExportFinding = { code, seq, row, problem, expected: "", found: "" };
  throw new BrokenHere(finding);
}

class ExportReader implements WalkSource {
  readonly #options: VerifyExportOptions;
  readonly #checkpoint: Checkpoint;
  readonly #checks = new Checks();
  readonly #tiles = new Map<number, Buffer>();
  #ahead: Promise<BundleFiles>;
  #open: Bundle | undefined;
  /** The tile over the leaves of the open bundle. */
  #leaves: Buffer | undefined;

  constructor(options: VerifyExportOptions, checkpoint: Checkpoint) {
    this.#options = options;
    this.#checkpoint = checkpoint;
    this.#ahead = this.#readBundle(1);
    this.#ahead.catch(() => undefined);
  }

  describe(): Promise<{ readonly log: string; readonly rows: number }> {
    return Promise.resolve({ log: this.#checkpoint.origin, rows: this.#checkpoint.size });
  }

  /** Returns rows of a bundle, of bounded size, while the next bundle is read. */
  async next(from: number): Promise<WalkedSlice> {
    const { size } = this.#checkpoint;
    const isBetween = (from - 1) % tileWidth === 0 || from > size;
    if (isBetween && from > 1) this.#options.passed?.(from - 1, size);
    if (from > size) return { rows: [] };
    if (isBetween) await this.#openBundle(from);
    const rows: WalkedRow[] = [];
    return { rows, broken: this.#open && takeRows(rows, this.#open, from) };
  }

  async #openBundle(from: number): Promise<void> {
    const { entries, lines, tile, bundle } = await this.#ahead;
    this.#ahead = this.#readBundle(from + bundle.width);
    this.#ahead.catch(() => undefined); // The error is reported when the walk comes to this bundle.
    need(entries !== undefined, "file", from, notThere(tilePath(bundle), sizesMax.entries));
    const isThere = lines !== undefined || this.#options.chainAlone;
    need(isThere, "file", from, notThere(evidencePath(bundle), sizesMax.evidence));
    this.#leaves = tile;
    this.#open = { entries, lines, at: 0, lineAt: 0, last: from + bundle.width - 1 };
  }

  async #readBundle(from: number): Promise<BundleFiles> {
    const { folder, chainAlone } = this.#options;
    const width = Math.min(tileWidth, this.#checkpoint.size - from + 1);
    const bundle: Tile = { level: "entries", index: (from - 1) / tileWidth, width };
    if (width <= 0) return { bundle, entries: undefined, lines: undefined, tile: undefined };
    const [entries, lines, tile] = await Promise.all([
      readBounded(folder, tilePath(bundle), sizesMax.entries),
      chainAlone ? undefined : readBounded(folder, evidencePath(bundle), sizesMax.evidence),
      this.#readTile({ ...bundle, level: 0 }),
    ]);
    return { bundle, entries, lines, tile };
  }

  checks(leaves: readonly Leaf[]): Promise<Finding | undefined> {
    const wrong = leaves.find((leaf) => !this.#checks.pass(leaf));
    return Promise.resolve(wrong && misnamedCheck(wrong, `row ${wrong.check}`));
  }

  /** Checks that each leaf's hash, and each inner hash that is complete with it, is in the tile of its level. */
  async nodes(nodes: readonly TreeNode[], links: readonly Link[]): Promise<undefined> {
    let next = 0;
    for (const { seq, hash } of links) {
      const index = (seq - 1) % tileWidth;
      const width = Math.min(tileWidth, this.#checkpoint.size - seq + 1);
      if (index === 0) needTile(this.#leaves, { level: 0, index: (seq - 1) / tileWidth, width }, seq);
      const stored = this.#leaves?.toString("hex", index * hashBytes, (index + 1) * hashBytes);
      need(stored === hash, "tile", seq, "the tile has another hash here");
      for (let node = nodes[next]; node !== undefined && lastUnder(node) === seq; node = nodes[next]) {
        await this.#compareNode(node, seq);
        next += 1;
      }
    }
  }

  async #compareNode({ level, index, hash: computed }: TreeNode, seq: number): Promise<void> {
    const at = [seq, index * tileWidth ** level + 1] as const;
    if (index % tileWidth === 0) {
      const width = Math.min(tileWidth, levelSize(this.#checkpoint.size, level) - index);
      const wanted = { level, index: index / tileWidth, width };
      const tile = await this.#readTile(wanted);
      needTile(tile, wanted, at);
      this.#tiles.set(level, tile);
    }
    const stored = hashAt(this.#tiles.get(level) ?? Buffer.alloc(0), index % tileWidth);
    need(computed.equals(stored), "tile", at, "the tile has another hash here");
  }

  async contract(digest: string, seq: number): Promise<Buffer> {
    const name = contractPath(digest);
    const text = await readBounded(this.#options.folder, name, sizesMax.contract);
    need(text !== undefined, "contract", seq, notThere(name, sizesMax.contract));
    return text;
  }

  end({ tree }: WalkResult): Promise<Finding | undefined> {
    if (tree?.root().equals(this.#checkpoint.root) === true) return Promise.resolve(undefined);
    const problem = "the rows' root hash differs from the checkpoint's";
    return Promise.resolve({ code: "root", seq: 0, problem, expected: "", found: "" });
  }

  #readTile(tile: Tile): Promise<Buffer | undefined> {
    return readBounded(this.#options.folder, tilePath(tile), sizesMax.tile);
  }
}

/** The files of a bundle; undefined if a file is missing or wrong, or was not requested. */
interface BundleFiles {
  readonly bundle: Tile;
  readonly entries: Buffer | undefined;
  readonly lines: Buffer | undefined;
  readonly tile: Buffer | undefined;
}

/** A bundle and the position up to which it was read. */
interface Bundle {
  readonly entries: Buffer;
  readonly lines: Buffer | undefined;
  readonly last: number;
  at: number;
  lineAt: number;
}

/** The number of bytes of rows that are taken at once; the last row may exceed it. */
const sliceBytes = 2 ** 20;

/**
 * Takes some rows of a bundle.
 *
 * @returns the mistake if the rows end too early, or if data follows the last one
 */
function takeRows(rows: WalkedRow[], bundle: Bundle, from: number): Finding | undefined {
  const { entries, lines, last } = bundle;
  const makeFinding = (code: FindingCode, seq: number, problem: string): Finding => {
    return { code, seq, problem, expected: "", found: "" };
  };
  for (let [seq, until] = [from, bundle.lineAt + sliceBytes]; seq <= last; seq += 1) {
    if (bundle.lineAt > until) return undefined;
    const { at, lineAt } = bundle;
    const end = at + 2 <= entries.length ? at + 2 + entries.readUInt16BE(at) : Infinity;
    if (end > entries.length) return makeFinding("entry", seq, "the bundle of leaves ends before the row does");
    const lineEnd = lines?.indexOf("\n", lineAt) ?? 0;
    if (lineEnd === -1) return makeFinding("evidence", seq, "the bundle of evidence ends before the row does");
    const evidence = lines && evidenceOf(lines, lineAt, lineEnd);
    rows.push({ seq, leaf: leafOf(entries.subarray(at + 2, end)), ...(evidence === undefined ? {} : { evidence }) });
    [bundle.at, bundle.lineAt] = [end, lineEnd + 1];
  }
  if (bundle.at !== entries.length) return makeFinding("entry", last, "the bundle of leaves has data after this row");
  const isWhole = lines === undefined || bundle.lineAt === lines.length;
  return isWhole ? undefined : makeFinding("evidence", last, "the bundle of evidence has data after this row");
}

/**
 * Returns the text of a leaf; "" for bytes that are not UTF-8. An escape of half a surrogate pair also gives "",
 * because reading and writing the leaf again would keep it.
 */
function leafOf(bytes: Buffer): string {
  const text = isUtf8(bytes) ? bytes.toString("utf8") : "";
  return text.includes("\\ud") && text.replaceAll("\\\\", "").includes("\\ud") ? "" : text;
}

/**
 * Returns a line of evidence; "" for a line that no gate writes: one that is too long, or has a part without a salt.
 */
function evidenceOf(lines: Buffer, from: number, to: number): string {
  const line = to - from > sizesMax.line ? "" : lines.toString("latin1", from, to);
  return areSalted(line) ? line : "";
}

function needTile(
  tile: Buffer | undefined,
  wanted: Tile,
  at: number | readonly [seq: number, row: number],
): asserts tile is Buffer {
  need(tile !== undefined, "file", at, notThere(tilePath(wanted), sizesMax.tile));
  const isWide = tile.length === wanted.width * hashBytes;
  need(isWide, "tile", at, `${tilePath(wanted)} does not have ${wanted.width} hashes`);
}

/** Returns the keys of both lists, each once. */
function together(known: readonly VerifierKey[], more: readonly VerifierKey[]): readonly VerifierKey[] {
  return [...new Set([...known, ...more])];
}

const notThere = (name: string, sizeMax: number): string =>
  `${name} is missing, or is not a regular file of at most ${sizeMax} bytes`;
