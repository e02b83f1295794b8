import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join, posix, sep } from "node:path";
import { fileURLToPath } from "node:url";

/** The repository's folder. */
export const root: string = fileURLToPath(new URL("../..", import.meta.url));

/** Returns the tracked files of a checkout, or else every file that a tool has not made. */
export function trackedPaths(): string[] {
  if (existsSync(join(root, ".git"))) {
    const listed = execFileSync("git", ["ls-files", "-z"], { cwd: root, encoding: "utf8" }).split("\0");
    return listed.filter((path) => path !== "" && existsSync(join(root, path)) && statSync(join(root, path)).isFile());
  }
  return filesBelow(".");
}

function filesBelow(folder: string): string[] {
  const made = new Set(["node_modules", "data", "dist", ".types", "__pycache__"]);
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = posix.join(folder.replaceAll(sep, "/"), entry.name);
    if (entry.isDirectory()) return made.has(entry.name) ? [] : filesBelow(path);
    return entry.isFile() ? [path] : [];
  });
}
