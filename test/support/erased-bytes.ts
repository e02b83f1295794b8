import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/** What base64url makes of a text in the midst of others, at each of the three places where it may begin. */
export function encodings(text: string): readonly string[] {
  return [0, 1, 2].map((shift) => {
    const encoded = Buffer.from(`${"_".repeat(shift)}${text}`).toString("base64url");
    return encoded.slice(Math.ceil((shift * 4) / 3), Math.floor(((shift + text.length) * 8) / 6));
  });
}

/** In how many places the texts stand in the files of a folder, plain or encoded, by file. */
export function placesOf(folder: string, texts: readonly string[]): Readonly<Record<string, number>> {
  const needles = texts.flatMap((text) => [text, ...encodings(text)]).map((needle) => Buffer.from(needle));
  const found: Record<string, number> = {};
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const file = join(folder, name);
    if (!statSync(file).isFile()) continue;
    const bytes = readFileSync(file);
    const places = needles.filter((needle) => bytes.includes(needle)).length;
    if (places > 0) found[name] = places;
  }
  return found;
}

/** The files in which a text stands. */
export function filesWith(folder: string, text: string): readonly string[] {
  return Object.keys(placesOf(folder, [text]));
}
