import { isUtf8 } from "node:buffer";
import { readFile, realpath, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import { parseVerifierKey, signatureTypes, type VerifierKey } from "../tree/note.ts";
import { indexPath, type Tile } from "../tree/tiles.ts";

/** What the file log.json of an export says of itself. It is a hint: nobody has signed it. */
const exportFormat = "svc-gate-export/1";

/** Names of files, from the export's folder on; tiles and bundles of leaves are where `tilePath` says. */
export const checkpointName = "checkpoint";
export const hintName = "log.json";

/** The evidence of the rows whose leaves a bundle holds: one line for each. */
export function evidencePath(bundle: Pick<Tile, "index" | "width">): string {
  return `evidence/${indexPath(bundle)}`;
}

/** @param digest the SHA-256 of the text, in hex */
export function contractPath(digest: string): string {
  return `contracts/${digest}.txt`;
}

/** Bytes that files have at most, and a line of evidence: what a folder of a stranger makes a verifier hold in memory. */
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
 * @returns undefined unless it is there as a regular file (what is none may never end), in the folder itself and not where
 * a link leads out of it, of at most `sizeMax` bytes
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
  /** Through this row all is there, and what rows up to it erased is gone from it. */
  readonly size: number;
  /** Verifier keys that the checkpoint is signed with. */
  readonly vkeys: readonly string[];
}

export function hintText({ log, size, vkeys }: Hint): string {
  return `${JSON.stringify({ format: exportFormat, log, size, vkeys })}\n`;
}

/** Reads what `hintText` writes; undefined for anything else, be it the same in another spelling. */
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

/** What a folder says of itself where it holds an export; undefined where it says nothing of the kind. */
export async function readHint(folder: string): Promise<Hint | undefined> {
  const bytes = await readBounded(folder, hintName, sizesMax.hint);
  return bytes !== undefined && isUtf8(bytes) ? parseHint(bytes.toString("utf8")) : undefined;
}

/** The keys that a folder says it is signed with; none where it says nothing, or one of them is no key of a log. */
export async function hintedKeys(folder: string): Promise<readonly VerifierKey[]> {
  const { vkeys = [] } = (await readHint(folder)) ?? {};
  const keys = vkeys.map(parseVerifierKey);
  const read = keys.flatMap((key) => (key.ok && key.value.type === signatureTypes.ed25519 ? [key.value] : []));
  return read.length === keys.length ? read : [];
}

export async function readTextIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
}
