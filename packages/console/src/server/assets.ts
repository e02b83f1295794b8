import { hash } from "node:crypto";
import { globSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { dirname, extname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzip } from "node:zlib";

/** A file that the console's page loads. */
export interface Asset {
  readonly type: string;
  readonly plain: Buffer;
  readonly gzip: Buffer;
}

/** The files of the console, by their path below the digest. */
export interface Assets {
  /** A digest of all files. It is in their path, so browsers may keep them. */
  readonly digest: string;
  readonly files: ReadonlyMap<string, Asset>;
  /** The modules of the first page, for `modulepreload`. */
  readonly first: readonly string[];
}

const types: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** The packages that the pages import, and the name of each file below `npm/`. */
const packages: Readonly<Record<string, string>> = {
  diff: "diff.js",
  preact: "preact.js",
  "preact/hooks": "hooks.js",
  uplot: "uplot.js",
};

/** The module that a page starts with, and the page that most people open first. */
const entries = ["main.js", "pages/inbox.js"].map((name) => `console/src/browser/${name}`);

/** The folder of the packages. */
const source = fileURLToPath(new URL("../../../", import.meta.url));
const compress = promisify(gzip);

let loaded: Promise<Assets> | undefined;

/**
 * Returns the browser's files. A clone has their sources, whose types are removed here; a package has the files
 * already.
 */
export function consoleAssets(): Promise<Assets> {
  return (loaded ??= load());
}

async function load(): Promise<Assets> {
  const texts = new Map<string, string>();
  for (const path of globSync("{console/src/browser,core/src/wire}/**/*.{ts,js,css,svg}", {
    cwd: source,
  }).toSorted()) {
    const text = await readFile(join(source, path), "utf8");
    const name = path.replaceAll("\\", "/").replace(/\.ts$/, ".js");
    texts.set(
      name,
      extname(name) === ".js" ? browserModule(name, path.endsWith(".ts") ? withoutTypes(text) : text) : text,
    );
  }
  for (const [name, file] of Object.entries(packages)) texts.set(`npm/${file}`, await packageText(name));
  const files = new Map<string, Asset>();
  for (const [name, text] of texts) {
    const plain = Buffer.from(text);
    files.set(name, { type: types[extname(name)] ?? "text/plain", plain, gzip: await compress(plain, { level: 9 }) });
  }
  const digest = hash("sha256", JSON.stringify([...texts]), "hex").slice(0, 16);
  return { digest, files, first: importedBy(entries, texts) };
}

/** Node warns that this function is experimental. That does not belong in the gate's log. */
function withoutTypes(text: string): string {
  const own = Object.getOwnPropertyDescriptor(process, "emitWarning") ?? {};
  Object.defineProperty(process, "emitWarning", { ...own, value: () => undefined });
  try {
    return stripTypeScriptTypes(text);
  } finally {
    Object.defineProperty(process, "emitWarning", own);
  }
}

/** A browser resolves no packages and reads no types: each import gets the path of a file. Comments are left out. */
function browserModule(name: string, text: string): string {
  const up = posix.relative(posix.dirname(name), "npm");
  return text
    .replaceAll(/(\bfrom |\bimport\()"([^".][^"]*)"/g, (whole, before: string, from: string) => {
      const file = packages[from];
      return file === undefined ? whole : `${before}"${up.startsWith(".") ? up : `./${up}`}/${file}"`;
    })
    .replaceAll(/(\bfrom |\bimport\()"(\.[^"]*)\.ts"/g, '$1"$2.js"')
    .replaceAll(/^ *(?:\/\/|\/?\*).*$\n?/gm, "")
    .replaceAll(/ +$/gm, "");
}

/** Packages whose shortest file is a script: the file, and the line that makes it a module. */
const scripts: Readonly<Record<string, readonly [file: string, line: string]>> = {
  diff: ["../dist/diff.min.js", "export const { diffLines } = globalThis.Diff;"],
  uplot: ["uPlot.iife.min.js", "export default uPlot;"],
};

async function packageText(name: string): Promise<string> {
  const main = fileURLToPath(import.meta.resolve(name));
  const [file, line] = scripts[name] ?? [];
  if (file !== undefined) return `${await readFile(join(dirname(main), file), "utf8")}\n${line}\n`;
  const text = await readFile(main, "utf8");
  return text.replace(/\n\/\/# sourceMappingURL=.*\s*$/, "\n").replaceAll(/(from ?)"preact"/g, '$1"./preact.js"');
}

/** The modules that these modules import, and they themselves. */
function importedBy(names: readonly string[], texts: ReadonlyMap<string, string>): readonly string[] {
  const found = new Set<string>();
  const open = [...names];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    const text = texts.get(name);
    if (found.has(name) || text === undefined) continue;
    found.add(name);
    for (const [, path = ""] of text.matchAll(/\bfrom ?"(\.[^"]*)"/g)) open.push(posix.join(posix.dirname(name), path));
  }
  return [...found].toSorted();
}
