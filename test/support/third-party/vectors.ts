import { readFileSync } from "node:fs";
import { join } from "node:path";

const folder = join(import.meta.dirname, "..", "..", "..", "spec", "vectors", "third-party");

/** Returns the text of a file that another project wrote; the README next to it names its origin. */
export function readVector(path: string): string {
  return readFileSync(join(folder, path), "utf8");
}
