/**
 * Makes `dist/`, which a package holds in place of `src/`: Node reads no types below `node_modules`. Each source becomes a
 * module of JavaScript at the same lines and columns, its types blanked out; a text that names another source names its copy.
 */
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const from = join(root, "src");
const to = join(root, "dist");

rmSync(to, { recursive: true, force: true });
for (const name of globSync("**/*.ts", { cwd: from })) {
  const source = join(from, name);
  const built = join(to, name.replace(/\.ts$/, ".js"));
  mkdirSync(dirname(built), { recursive: true });
  writeFileSync(built, renamed(withoutTypes(readFileSync(source, "utf8")), source));
}

/** No source has a blank at the end of a line (test/tidy.test.ts), so those that are there now were types. */
function withoutTypes(text: string): string {
  return stripTypeScriptTypes(text).replaceAll(/ +$/gm, "");
}

/** The text with `.js` for `.ts` in each literal that names a source: an import, or the file of a worker. */
function renamed(text: string, source: string): string {
  return text.replaceAll(/(["'])((?:\.{1,2}\/)?[\w./-]+)\.ts\1/g, (literal, mark: string, name: string) =>
    existsSync(resolve(dirname(source), `${name}.ts`)) ? `${mark}${name}.js${mark}` : literal,
  );
}
