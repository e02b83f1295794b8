/**
 * Makes each package as `npm pack` takes it, in `dist/`: `node tools/build.ts [--to FOLDER] [NAME ...]`. Node does not
 * read types below `node_modules`, so each source becomes a JavaScript module at the same lines and columns, with blanks
 * instead of its types. Sources keep their relative paths. Files that a package's `files` names and its folder
 * lacks are copied from the root of this repository.
 */
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

interface Package {
  readonly name: string;
  readonly files: readonly string[];
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
  /** The package's folder in this repository. */
  readonly folder: string;
  /** Its folder in `dist/`. */
  readonly target: string;
  /** The folders of its sources, and where each goes below `target`. */
  readonly sources: readonly (readonly [from: string, to: string])[];
}

const root = fileURLToPath(new URL("..", import.meta.url));
/** Each package has its own copy of this folder, as `dist/`. */
const sourcesRoot = join(root, "packages");
/** The folders of `packages/` that each package is made of, and where they go. */
const sources: Readonly<Record<string, readonly (readonly [from: string, to: string])[]>> = {
  "svc-gate": ["core", "readers", "gate", "records", "console", "workbench/src/test", "svc-gate"].map((path) => {
    const from = path.includes("/") ? path : `${path}/src`;
    return [from, `dist/${from}`];
  }),
  workbench: [
    ["workbench/src/analysis", "dist/analysis"],
    ["workbench/src/commands", "dist/commands"],
  ],
  agent: [["agent/src", "dist"]],
};
const { values, positionals: wanted } = parseArgs({ allowPositionals: true, options: { to: { type: "string" } } });

const packages: readonly Package[] = Object.entries(sources).map(([name, folders]) => {
  const folder = join(root, "packages", name);
  const manifest: Pick<Package, "name" | "files" | "exports"> = JSON.parse(
    readFileSync(join(folder, "package.json"), "utf8"),
  );
  const target = join(values.to ?? join(root, "dist"), name);
  const pairs = folders.map(([from, to]) => [join(root, "packages", from), join(target, to)] as const);
  return { ...manifest, folder, target, sources: pairs };
});

for (const each of packages.filter(({ folder }) => wanted.length === 0 || wanted.includes(basename(folder)))) {
  rmSync(each.target, { recursive: true, force: true });
  for (const path of ["package.json", "LICENSE", ...each.files.filter((file) => file !== "dist")]) {
    const own = join(each.folder, path);
    cpSync(existsSync(own) ? own : join(root, path), join(each.target, path), { recursive: true });
  }
  for (const [from, to] of each.sources) {
    for (const path of globSync("**/*.{css,svg}", { cwd: from }))
      cpSync(join(from, path), join(to, path), { recursive: true });
    for (const path of globSync("**/*.ts", { cwd: from })) {
      const built = join(to, path.replace(/\.ts$/, ".js"));
      mkdirSync(dirname(built), { recursive: true });
      writeFileSync(
        built,
        renamed(withoutTypes(readFileSync(join(from, path), "utf8")), each, join(from, path), built),
      );
    }
  }
}

/**
 * No source has a blank at the end of a line (test/repository/tidy.test.ts), so blanks at the end of a line were types.
 */
function withoutTypes(text: string): string {
  return stripTypeScriptTypes(text).replaceAll(/ +$/gm, "");
}

/**
 * Returns the text with each literal that names a file of this repository changed to the file's name in the package.
 */
function renamed(text: string, from: Package, source: string, built: string): string {
  const modules = text.replaceAll(/(["'])((?:\.{1,2}\/)?[\w./-]+)\.ts\1/g, (literal, mark: string, name: string) => {
    const path = resolve(dirname(source), `${name}.ts`);
    if (!existsSync(path)) return literal;
    return `${mark}${builtPathOf(path, from) === undefined ? exportOf(path) : `${name}.js`}${mark}`;
  });
  return modules.replaceAll(/(?<=["'`])\.\.\/[\w./-]*/g, (path) => {
    const named = resolve(dirname(source), path);
    if (builtPathOf(named, from) !== undefined || named === sourcesRoot) return path;
    if (!isIn(root, named) || !existsSync(named)) return path;
    const owner = isIn(from.folder, named) ? from.folder : root;
    const copied = relative(dirname(built), join(from.target, relative(owner, named))).replaceAll(sep, "/");
    return path.endsWith("/") ? `${copied}/` : copied;
  });
}

/** Returns where a source goes in a package that is made of it. */
function builtPathOf(path: string, { sources: pairs }: Package): string | undefined {
  const [from, to] = pairs.find(([folder]) => isIn(folder, path)) ?? [];
  return from === undefined || to === undefined ? undefined : join(to, relative(from, path));
}

function isIn(folder: string, path: string): boolean {
  return !relative(folder, path).startsWith("..");
}

/** Returns how another package's module is imported. */
function exportOf(path: string): string {
  for (const owner of packages) {
    const built = builtPathOf(path, owner);
    if (built === undefined) continue;
    const target = `./${relative(owner.target, built).replaceAll(sep, "/").replace(/\.ts$/, ".js")}`;
    const [key] = Object.entries(owner.exports).find(([, each]) => each === target) ?? [];
    if (key !== undefined) return `${owner.name}${key.slice(1)}`;
  }
  throw new Error(`${path} is not an export of its package`);
}
