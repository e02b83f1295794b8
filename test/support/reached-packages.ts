import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Returns the packages that the gate needs, by the lock file: all that are installed for it, on any platform. */

interface LockEntry {
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const root = fileURLToPath(new URL("../..", import.meta.url));
const lock: { readonly packages: Readonly<Record<string, LockEntry>> } = JSON.parse(
  readFileSync(join(root, "package-lock.json"), "utf8"),
);

/** Finds a package for another one: in the other's own folder, or in one above it. */
function folderOf(from: string, name: string): string | undefined {
  const parts = from.split("/");
  const above = parts.map((_, at) => parts.slice(0, parts.length - at).join("/"));
  return [...above.map((folder) => `${folder}/node_modules/${name}`), `node_modules/${name}`].find(
    (path) => lock.packages[path] !== undefined,
  );
}

/** Maps folders, from the root, to the names and versions of their packages. */
export function reachedPackages(): readonly {
  readonly path: string;
  readonly name: string;
  readonly version: string;
}[] {
  const reached = new Set(["packages/svc-gate"]);
  for (const path of reached) {
    const { dependencies = {}, optionalDependencies = {} } = lock.packages[path] ?? {};
    for (const each of Object.keys({ ...dependencies, ...optionalDependencies })) {
      const found = folderOf(path, each);
      if (found !== undefined) reached.add(found);
    }
  }
  return [...reached].slice(1).map((path) => ({
    path,
    name: path.replace(/^.*node_modules\//, ""),
    version: lock.packages[path]?.version ?? "",
  }));
}
