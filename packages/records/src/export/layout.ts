import { isUtf8 } from "node:buffer";
import { readFile, realpath, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import { parseVerifierKey, signatureTypes, type VerifierKey } from "../../../core/src/record/tree/note.ts";
import { indexPath, type Tile } from "../../../core/src/record/tree/tiles.ts";

/** The format in the file log.json of an export. The file is a hint, because nobody has signed it. */
const exportFormat = "svc-gate-export/1";

/** Names of files in the export's folder. `tilePath` returns those of tiles and bundles of leaves. */
export const checkpointName = "checkpoint";
export const hintName = "log.json";

/** Returns the file with the evidence of a bundle's rows, one line for each row. */
export function evidencePath(bundle: Pick<Tile, "index" | "width">): string {
  return `evidence/${indexPath(bundle)}`;
}

/** @param digest the SHA-256 of the text, in hex */
export function contractPath(digest: string): string {
  return `contracts/${digest}.txt`;
}

/**
 * The greatest sizes of files, and of a line of evidence, in bytes. They limit the memory that a stranger's folder
 * makes a verifier use.
 */
export const sizesMax: Readonly<
  Record<"checkpoint" | "contract" | "entries" | "evidence" | "hint" | "line" | "tile", number>
> = {
  checkpoint: 2 ** 16,
  contract: 2 ** 24,
  entries: 256 * 65_537,
  evidence: 2 ** 30,
  hint: 2 ** 16,
  line: 2 ** 22,
  tile: 256 * 32,
};

/**
 * Reads a file of an export that may be a stranger's.
 *
 * @returns undefined unless it is a regular file (another kind may never end) of at most `sizeMax` bytes, and in the
 *   folder itself, not outside through a link
 */
export async function readBounded(folder: string, name: string, sizeMax: number): Promise<Buffer | undefined> {
  try {
    const file = await realpath(join(folder, name));
    if (!file.startsWith(join(await realpath(folder), sep))) return undefined;
    const found = await stat(file);
    return found.isFile() && found.size <= sizeMax ? await readFile(file) : undefined;
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "ELOOP"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
}

export interface Hint {
  readonly log: string;
  /** The last row up to which all rows are exported, and their erasures are done. */
  readonly size: number;
  /** The verifier keys of the checkpoint's signatures. */
  readonly vkeys: readonly string[];
}

export function hintText({ log, size, vkeys }: Hint): string {
  return `${JSON.stringify({ format: exportFormat, log, size, vkeys })}\n`;
}

/** Reads the text that `hintText` writes; undefined for any other text, even with the same meaning. */
function parseHint(text: string): Hint | undefined {
  try {
    const { format, log, size, vkeys } = JSON.parse(text) as Partial<Hint> & { readonly format?: unknown };
    const isHint =
      format === exportFormat &&
      typeof log === "string" &&
      log.isWellFormed() &&
      Number.isSafeInteger(size) &&
      Array.isArray(vkeys) &&
      vkeys.every((key) => typeof key === "string" && key.isWellFormed());
    const hint = isHint ? { log, size: Number(size), vkeys } : undefined;
    const isWritten = hint !== undefined && hint.size >= 0 && hint.size < 1e15 && hintText(hint) === text;
    return isWritten ? hint : undefined;
  } catch {
    return undefined;
  }
}

/** Reads the hint of an export; undefined if the folder does not have a valid one. */
export async function readHint(folder: string): Promise<Hint | undefined> {
  const bytes = await readBounded(folder, hintName, sizesMax.hint);
  return bytes !== undefined && isUtf8(bytes) ? parseHint(bytes.toString("utf8")) : undefined;
}

/**
 * Returns the keys in the hint of an export; none if the hint is missing, or one of the keys is not the key of a log.
 */
export async function hintedKeys(folder: string): Promise<readonly VerifierKey[]> {
  const { vkeys = [] } = (await readHint(folder)) ?? {};
  const keys = vkeys.map(parseVerifierKey);
  const read = keys.flatMap((key) => (key.ok && key.value.type === signatureTypes.ed25519 ? [key.value] : []));
  return read.length === keys.length ? read : [];
}
