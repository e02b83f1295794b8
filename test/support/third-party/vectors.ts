import { readFileSync } from "node:fs";
import { join } from "node:path";

const folder = join(import.meta.dirname, "..", "..", "..", "spec", "vectors", "third-party");

/** The text of a file that another project wrote; where it is from stands in the README beside it. */
export function readVector(path: string): string {
  return readFileSync(join(folder, path), "utf8");
}
