import { hash } from "node:crypto";
import { LedgerRefused } from "../../../gate/src/ledger/errors.ts";
import { parseBundle, tilePath, tilesOf, tileWidth, type Tile } from "../../../core/src/record/tree/tiles.ts";
import { contractPath, evidencePath, readBounded, sizesMax } from "./layout.ts";

/** A row of an export: its leaf and its evidence. */
export interface ExportedRow {
  readonly seq: number;
  readonly leaf: string;
  readonly evidence: string;
}

/** Yields the rows of an export, oldest first, one bundle at a time. Call `verifyExport` first. */
export async function* scanExport(
  folder: string,
  size: number,
  from: number,
): AsyncGenerator<readonly ExportedRow[], undefined> {
  for (const bundle of tilesOf(size, "entries")) {
    const first = bundle.index * tileWidth + 1;
    if (first + bundle.width > from) yield (await readRows(folder, bundle)).filter(({ seq }) => seq >= from);
  }
}

/** Returns the body of GET /rules by its SHA-256 in hex; undefined unless the export has exactly that text. */
export async function exportedContract(folder: string, digest: string): Promise<string | undefined> {
  const text = await readBounded(folder, contractPath(digest), sizesMax.contract);
  return text !== undefined && hash("sha256", text, "hex") === digest ? text.toString("utf8") : undefined;
}

async function readRows(folder: string, bundle: Tile): Promise<readonly ExportedRow[]> {
  const [entries, evidence] = await Promise.all([
    readBounded(folder, tilePath(bundle), sizesMax.entries),
    readBounded(folder, evidencePath(bundle), sizesMax.evidence),
  ]);
  if (entries === undefined || evidence === undefined) throw makeChangedError(folder);
  const leaves = parseBundle(entries) ?? [];
  if (leaves.length < bundle.width) throw makeChangedError(folder);
  let lineAt = 0;
  return leaves.slice(0, bundle.width).map((leaf, index) => {
    const lineEnd = evidence.indexOf("\n", lineAt);
    if (lineEnd === -1) throw makeChangedError(folder);
    const line = evidence.toString("latin1", lineAt, lineEnd);
    lineAt = lineEnd + 1;
    return { seq: bundle.index * tileWidth + 1 + index, leaf: leaf.toString("utf8"), evidence: line };
  });
}

const makeChangedError = (folder: string): LedgerRefused =>
  new LedgerRefused(`the export in ${folder} has changed since it was verified: verify it again`);
