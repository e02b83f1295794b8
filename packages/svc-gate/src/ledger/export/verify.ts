import { isUtf8 } from "node:buffer";
import { hash } from "node:crypto";
import { isErasable, Missing } from "../entry/erasure.ts";
import { areSalted, evidenceDigest, missingParts } from "../entry/evidence.ts";
import { leafHash, parseLeaf, zeroHash, type Leaf } from "../entry/leaf.ts";
import { parseCheckpointText, type Checkpoint } from "../tree/checkpoint.ts";
import { Frontier, hashAt, hashBytes, type TreeNode } from "../tree/merkle.ts";
import { parseNote, verifyNote, type VerifierKey } from "../tree/note.ts";
import { levelSize, tilePath, tilesOf, tileWidth, type Tile } from "../tree/tiles.ts";
import { Checks } from "./checks.ts";
import { checkpointName, contractPath, evidencePath, readBounded, sizesMax } from "./layout.ts";

/** The codes of spec/export.md: what can be wrong with an export. */
export type ExportProblem =
  | "checkpoint"
  | "signature"
  | "cosignature"
  | "unsigned"
  | "file"
  | "entry"
  | "leaf"
  | "seq"
  | "log"
  | "prev"
  | "time"
  | "result"
  | "tile"
  | "contract"
  | "evidence"
  | "digest"
  | "erasure"
  | "erase-body"
  | "root";

/** What a walk over an export has found so far. */
export interface ExportReport {
  /** Of the checkpoint; undefined where there is none that holds. */
  readonly checkpoint: Checkpoint | undefined;
  readonly rows: number;
  readonly contracts: number;
  readonly erasedParts: number;
  readonly signedBy: readonly VerifierKey[];
  readonly cosignedBy: readonly VerifierKey[];
  /** The first thing that does not hold; row 0 is none. */
  readonly problem: { readonly code: ExportProblem; readonly row: number; readonly text: string } | undefined;
}

export interface VerifyExportOptions {
  readonly folder: string;
  /** Keys of the log, of which one at least must have signed. */
  readonly keys: readonly VerifierKey[];
  readonly witnesses: readonly VerifierKey[];
  /** Leave out evidence and contracts. */
  readonly chainAlone: boolean;
  /** Called now and then. @param row the last that holds @param size of the tree */
  readonly passed?: (row: number, size: number) => void;
}

/** Verifies an export as spec/export.md says: a bundle of 256 rows is in memory, and the next one. */
export async function verifyExport(options: VerifyExportOptions): Promise<ExportReport> {
  const walk = new Walk(options);
  try {
    await walk.run();
    return walk.report(undefined);
  } catch (error) {
    if (error instanceof Broken) return walk.report(error);
    throw error;
  }
}

/** What ends a walk. It stays in this file. */
class Broken extends Error {
  readonly code: ExportProblem;
  readonly row: number;

  constructor(code: ExportProblem, row: number, text: string) {
    super(text);
    this.code = code;
    this.row = row;
  }
}

function need(holds: boolean, code: ExportProblem, row: number, text: string): asserts holds {
  if (!holds) throw new Broken(code, row, text);
}

/** A row's number has at most 15 digits in its leaf. */
const sizeEnd = 1e15;

class Walk {
  readonly #options: VerifyExportOptions;
  readonly #frontier = new Frontier();
  readonly #missing = new Missing();
  readonly #checks = new Checks();
  readonly #contracts = new Set<string>();
  readonly #tiles = new Map<number, Buffer>();
  #checkpoint: Checkpoint | undefined;
  #signedBy: readonly VerifierKey[] = [];
  #cosignedBy: readonly VerifierKey[] = [];
  #prev = zeroHash;
  #at = 0;
  #erasedParts = 0;

  constructor(options: VerifyExportOptions) {
    this.#options = options;
  }

  async run(): Promise<void> {
    const checkpoint = await this.#openCheckpoint();
    const { size, root } = checkpoint;
    for await (const [bundle, files] of readAhead(tilesOf(size, "entries"), (tile) => this.#readBundle(tile))) {
      await this.#walkBundle(bundle, files, checkpoint);
      this.#options.passed?.(bundle.place * tileWidth + bundle.width, size);
    }
    need(this.#frontier.root().equals(root), "root", 0, "the rows' root hash is not the checkpoint's");
    const { first } = this.#missing;
    need(
      first === undefined,
      "erasure",
      first?.seq ?? 0,
      "a part is missing, and no later row says that it was erased",
    );
  }

  report(broken: Broken | undefined): ExportReport {
    return {
      checkpoint: this.#checkpoint,
      rows: broken === undefined || broken.row === 0 ? this.#frontier.size : broken.row - 1,
      contracts: this.#contracts.size,
      erasedParts: this.#erasedParts,
      signedBy: this.#signedBy,
      cosignedBy: this.#cosignedBy,
      problem: broken && { code: broken.code, row: broken.row, text: broken.message },
    };
  }

  async #openCheckpoint(): Promise<Checkpoint> {
    const { keys, witnesses } = this.#options;
    const bytes = await this.#read(checkpointName, sizesMax.checkpoint, "checkpoint", 0);
    const note = isUtf8(bytes) ? parseNote(bytes.toString("utf8")) : undefined;
    need(note !== undefined, "checkpoint", 0, "the checkpoint is not a signed note");
    const checkpoint = parseCheckpointText(note.text);
    const isHead = checkpoint !== undefined && checkpoint.size < sizeEnd;
    need(isHead, "checkpoint", 0, "the checkpoint does not state an origin, a tree size and a root hash");
    this.#checkpoint = checkpoint;
    // In the order of their lines: of two signatures that do not hold, the first is reported.
    for (const signature of note.signatures) {
      const one = { text: note.text, signatures: [signature] };
      const byLog = verifyNote(one, keys);
      need(byLog.ok, "signature", 0, byLog.ok ? "" : byLog.problem);
      const byWitness = verifyNote(one, witnesses);
      need(byWitness.ok, "cosignature", 0, byWitness.ok ? "" : byWitness.problem);
      const named = byLog.value.map(({ key }) => key).filter(({ name }) => name === checkpoint.origin);
      this.#signedBy = together(this.#signedBy, named);
      this.#cosignedBy = together(
        this.#cosignedBy,
        byWitness.value.map(({ key }) => key),
      );
    }
    need(this.#signedBy.length > 0, "unsigned", 0, "no given key that is named as the log has signed the checkpoint");
    return checkpoint;
  }

  async #readBundle(bundle: Tile): Promise<BundleFiles> {
    const { folder, chainAlone } = this.#options;
    const [entries, lines, tile] = await Promise.all([
      readBounded(folder, tilePath(bundle), sizesMax.entries),
      chainAlone ? undefined : readBounded(folder, evidencePath(bundle), sizesMax.evidence),
      this.#readTile({ ...bundle, level: 0 }),
    ]);
    return { entries, lines, tile };
  }

  async #walkBundle(bundle: Tile, files: BundleFiles, { origin, size }: Checkpoint): Promise<void> {
    const { entries, lines, tile } = files;
    const first = bundle.place * tileWidth + 1;
    need(entries !== undefined, "file", first, notThere(tilePath(bundle), sizesMax.entries));
    const isThere = lines !== undefined || this.#options.chainAlone;
    need(isThere, "file", first, notThere(evidencePath(bundle), sizesMax.evidence));
    let [at, lineAt, seq] = [0, 0, first];
    for (; seq < first + bundle.width; seq += 1) {
      const end = at + 2 <= entries.length ? at + 2 + entries.readUInt16BE(at) : Infinity;
      need(end <= entries.length, "entry", seq, "the bundle of leaves ends before the row does");
      const lineEnd = lines?.indexOf("\n", lineAt);
      need(lineEnd !== -1, "evidence", seq, "the bundle of evidence ends before the row does");
      const leaf = this.#readLeaf(entries.subarray(at + 2, end), seq, origin);
      if (seq === first) needTile(tile, { ...bundle, level: 0 }, seq);
      for (const node of this.#append(tile, seq)) await this.#compareNode(node, size);
      if (lines !== undefined && lineEnd !== undefined) {
        const { contract } = leaf;
        if (contract !== null && !this.#contracts.has(contract)) await this.#findContract(contract, seq);
        need(lineEnd - lineAt <= sizesMax.line, "evidence", seq, "the row's line of evidence is too long");
        this.#takeEvidence(leaf, lines.toString("latin1", lineAt, lineEnd));
        lineAt = lineEnd + 1;
      }
      at = end;
    }
    need(at === entries.length, "entry", seq - 1, "the bundle of leaves goes on behind this row");
    const isWhole = lines === undefined || lineAt === lines.length;
    need(isWhole, "evidence", seq - 1, "the bundle of evidence goes on behind this row");
  }

  /** The leaf alone, and how it follows the one before. */
  #readLeaf(bytes: Buffer, seq: number, origin: string): Leaf {
    const text = isUtf8(bytes) ? bytes.toString("utf8") : "";
    // Half a surrogate pair is the one escape that a leaf read and written again keeps, and is no text.
    const isHalf = text.includes("\\ud") && text.replaceAll("\\\\", "").includes("\\ud");
    const leaf = isHalf ? undefined : parseLeaf(text);
    need(leaf !== undefined, "leaf", seq, "the leaf is not canonical JSON of version 1");
    need(leaf.seq === seq, "seq", seq, "the leaf is another row's");
    need(leaf.log === origin, "log", seq, "the leaf is another log's");
    need(leaf.prev === this.#prev, "prev", seq, "the leaf does not follow the row before");
    need(leaf.at >= this.#at, "time", seq, "the clock went back");
    need(
      this.#checks.pass(leaf),
      "result",
      seq,
      "the row that it names is not an earlier check with its key and its tool",
    );
    this.#at = leaf.at;
    this.#prev = leafHash(text);
    return leaf;
  }

  /** Takes the row whose hash is `#prev` into the tree. @returns the inner hashes that are complete with it */
  #append(tile: Buffer | undefined, seq: number): readonly TreeNode[] {
    const at = ((seq - 1) % tileWidth) * hashBytes;
    const holds = tile?.toString("hex", at, at + hashBytes) === this.#prev;
    need(holds, "tile", seq, "the tile holds another hash here");
    return this.#frontier.append(this.#prev);
  }

  /** An inner hash stands in the tile of its level. */
  async #compareNode({ level, place, hash: computed }: TreeNode, size: number): Promise<void> {
    const seq = place * tileWidth ** level + 1;
    if (place % tileWidth === 0) {
      const width = Math.min(tileWidth, levelSize(size, level) - place);
      const wanted = { level, place: place / tileWidth, width };
      const tile = await this.#readTile(wanted);
      needTile(tile, wanted, seq);
      this.#tiles.set(level, tile);
    }
    const stored = hashAt(this.#tiles.get(level) ?? Buffer.alloc(0), place % tileWidth);
    need(computed.equals(stored), "tile", seq, "the tile holds another hash here");
  }

  async #findContract(name: string, seq: number): Promise<void> {
    const digest = /^sha256:([0-9a-f]{64})$/.exec(name)?.[1];
    need(digest !== undefined, "contract", seq, "the leaf names its contract by no digest");
    const text = await this.#read(contractPath(digest), sizesMax.contract, "contract", seq);
    need(hash("sha256", text, "hex") === digest, "contract", seq, "the contract's text is not what its name says");
    this.#contracts.add(name);
  }

  #takeEvidence(leaf: Leaf, line: string): void {
    const { seq } = leaf;
    const digest = evidenceDigest(line);
    const isEvidence = digest !== undefined && areSalted(line);
    need(isEvidence, "evidence", seq, "the evidence has not its parts, each in its place");
    need(digest === leaf.evidence, "digest", seq, "the evidence is not what the leaf commits to");
    const missing = missingParts(line);
    const may = missing.length === 0 || (leaf.kind !== "change" && missing.every(isErasable));
    need(may, "erasure", seq, "a part is missing that is never erased");
    const broken = this.#missing.pass(leaf, line, missing);
    need(broken === undefined, "erase-body", seq, "the row does not say properly what it erased");
    this.#erasedParts += missing.length;
  }

  async #readTile(tile: Tile): Promise<Buffer | undefined> {
    return readBounded(this.#options.folder, tilePath(tile), sizesMax.tile);
  }

  async #read(name: string, sizeMax: number, code: ExportProblem, seq: number): Promise<Buffer> {
    const bytes = await readBounded(this.#options.folder, name, sizeMax);
    need(bytes !== undefined, code, seq, notThere(name, sizeMax));
    return bytes;
  }
}

/** What the rows of a bundle are read from; undefined where a file is not there as it must be, or not asked for. */
interface BundleFiles {
  readonly entries: Buffer | undefined;
  readonly lines: Buffer | undefined;
  readonly tile: Buffer | undefined;
}

/** Reads the next one while this one is looked at. */
async function* readAhead<Item, Read>(
  items: Iterable<Item>,
  read: (item: Item) => Promise<Read>,
): AsyncGenerator<readonly [Item, Read]> {
  let before: readonly [Item, Promise<Read>] | undefined;
  for (const item of items) {
    const reading = read(item);
    reading.catch(() => undefined); // Told where it is waited for, if the walk comes so far.
    if (before !== undefined) yield [before[0], await before[1]];
    before = [item, reading];
  }
  if (before !== undefined) yield [before[0], await before[1]];
}

function needTile(tile: Buffer | undefined, wanted: Tile, seq: number): asserts tile is Buffer {
  need(tile !== undefined, "file", seq, notThere(tilePath(wanted), sizesMax.tile));
  need(
    tile.length === wanted.width * hashBytes,
    "tile",
    seq,
    `${tilePath(wanted)} does not hold ${wanted.width} hashes`,
  );
}

/** Both without those that stand in them twice. */
function together(known: readonly VerifierKey[], more: readonly VerifierKey[]): readonly VerifierKey[] {
  return [...new Set([...known, ...more])];
}

const notThere = (name: string, sizeMax: number): string =>
  `${name} is not there, or no regular file of at most ${sizeMax} bytes`;
