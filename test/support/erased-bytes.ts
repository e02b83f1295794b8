import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/** Returns the base64url forms of a text inside others, one for each of its three possible alignments. */
export function encodings(text: string): readonly string[] {
  return [0, 1, 2].map((shift) => {
    const encoded = Buffer.from(`${"_".repeat(shift)}${text}`).toString("base64url");
    return encoded.slice(Math.ceil((shift * 4) / 3), Math.floor(((shift + text.length) * 8) / 6));
  });
}

/** Counts the occurrences of the texts in a folder's files, plain or encoded, by file. */
export function positionsOf(folder: string, texts: readonly string[]): Readonly<Record<string, number>> {
  const needles = texts.flatMap((text) => [text, ...encodings(text)]).map((needle) => Buffer.from(needle));
  const found: Record<string, number> = {};
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const file = join(folder, name);
    if (!statSync(file).isFile()) continue;
    const bytes = readFileSync(file);
    const count = needles.filter((needle) => bytes.includes(needle)).length;
    if (count > 0) found[name] = count;
  }
  return found;
}

/** Returns the files that contain a text. */
export function filesWith(folder: string, text: string): readonly string[] {
  return Object.keys(positionsOf(folder, [text]));
}
