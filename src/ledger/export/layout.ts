import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { placePath, type Tile } from "../tree/tiles.ts";

/** What the file log.json of an export says of itself. It is a hint: nobody has signed it. */
const exportFormat = "svc-gate-export/1";

/** Names of files, from the export's folder on; tiles and bundles of leaves are where `tilePath` says. */
export const checkpointName = "checkpoint";
export const hintName = "log.json";

/** The evidence of the rows whose leaves a bundle holds: one line for each. */
export function evidencePath(bundle: Pick<Tile, "place" | "width">): string {
  return `evidence/${placePath(bundle)}`;
}

/** @param digest the SHA-256 of the text, in hex */
export function contractPath(digest: string): string {
  return `contracts/${digest}.txt`;
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

/** Reads what `hintText` writes; undefined for anything else. */
function parseHint(text: string): Hint | undefined {
  try {
    const { format, log, size, vkeys } = JSON.parse(text) as Partial<Hint> & { readonly format?: unknown };
    const isHint =
      format === exportFormat &&
      typeof log === "string" &&
      Number.isSafeInteger(size) &&
      Array.isArray(vkeys) &&
      vkeys.every((key) => typeof key === "string");
    return isHint ? { log, size: Number(size), vkeys } : undefined;
  } catch {
    return undefined;
  }
}

/** What a folder says of itself where it holds an export; undefined where it says nothing of the kind. */
export async function readHint(folder: string): Promise<Hint | undefined> {
  return parseHint((await readTextIfThere(join(folder, hintName))) ?? "");
}

export async function readTextIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
}
