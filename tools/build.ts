/**
 * Makes each package as `npm pack` takes it, in `dist/`: `node tools/build.ts [--to FOLDER] [NAME ...]`. Node does not
 * read types below `node_modules`, so each source becomes a JavaScript module at the same lines and columns, with blanks
 * in place of its types. Files that a package's `files` names and its folder lacks are copied from the root of this
 * repository.
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
}

const root = fileURLToPath(new URL("..", import.meta.url));
const all = ["svc-gate", "workbench", "agent"];
const { values, positionals: wanted } = parseArgs({ allowPositionals: true, options: { to: { type: "string" } } });

const packages: readonly Package[] = all.map((name) => {
  const folder = join(root, "packages", name);
  const manifest: Pick<Package, "name" | "files" | "exports"> = JSON.parse(
    readFileSync(join(folder, "package.json"), "utf8"),
  );
  return { ...manifest, folder, target: join(values.to ?? join(root, "dist"), name) };
});

for (const each of packages.filter(({ folder }) => wanted.length === 0 || wanted.includes(basename(folder)))) {
  rmSync(each.target, { recursive: true, force: true });
  for (const path of ["package.json", "LICENSE", ...each.files.filter((file) => file !== "dist")]) {
    const own = join(each.folder, path);
    cpSync(existsSync(own) ? own : join(root, path), join(each.target, path), { recursive: true });
  }
  for (const path of globSync("**/*.{css,svg}", { cwd: join(each.folder, "src") })) {
    cpSync(join(each.folder, "src", path), join(each.target, "dist", path), { recursive: true });
  }
  for (const path of globSync("**/*.ts", { cwd: join(each.folder, "src") })) {
    const source = join(each.folder, "src", path);
    const built = join(each.target, "dist", path.replace(/\.ts$/, ".js"));
    mkdirSync(dirname(built), { recursive: true });
    writeFileSync(built, renamed(withoutTypes(readFileSync(source, "utf8")), each, source, built));
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
  const sources = text.replaceAll(/(["'])((?:\.{1,2}\/)?[\w./-]+)\.ts\1/g, (literal, mark: string, name: string) => {
    const path = resolve(dirname(source), `${name}.ts`);
    if (!existsSync(path)) return literal;
    return `${mark}${isIn(from.folder, path) ? `${name}.js` : exportOf(path)}${mark}`;
  });
  return sources.replaceAll(/(?<=["'`])\.\.\/[\w./-]*/g, (path) => {
    const named = resolve(dirname(source), path);
    if (isIn(from.folder, named) || !isIn(root, named) || !existsSync(named)) return path;
    const copied = relative(dirname(built), join(from.target, relative(root, named))).replaceAll(sep, "/");
    return path.endsWith("/") ? `${copied}/` : copied;
  });
}

function isIn(folder: string, path: string): boolean {
  return !relative(folder, path).startsWith("..");
}

/** Returns how another package's module is imported. */
function exportOf(path: string): string {
  const owner = packages.find(({ folder }) => isIn(folder, path));
  const target =
    owner && `./dist/${relative(join(owner.folder, "src"), path).replaceAll(sep, "/").replace(/\.ts$/, ".js")}`;
  const [key] = Object.entries(owner?.exports ?? {}).find(([, each]) => each === target) ?? [];
  if (owner === undefined || key === undefined) throw new Error(`${path} is not an export of its package`);
  return `${owner.name}${key.slice(1)}`;
}
