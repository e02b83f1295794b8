import { existsSync, globSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { parseSync, Visitor } from "oxc-parser";
import { root } from "./tracked.ts";

/** What one file imports from another, or from a package. */
export interface Import {
  /** As it is written. */
  readonly name: string;
  /** A path from the repository's folder, or a package's name. */
  readonly to: string;
  /** True for `import type`: it loads nothing. Node does load a module for `import { type A }`. */
  readonly isType: boolean;
  /** True for `import()` of a fixed name: it loads nothing before it is called. */
  readonly isLater: boolean;
}

/** The sources of the packages, as paths from the repository's folder. */
export const packageSources: readonly string[] = globSync("packages/*/src/**/*.ts", { cwd: root }).map((path) =>
  path.replaceAll("\\", "/"),
);

const known = new Map<string, readonly Import[]>();

/** Returns the imports and re-exports of a TypeScript file, and the modules that it names as `new URL("./a.ts", ...)`. */
export function importsOf(path: string): readonly Import[] {
  return known.getOrInsertComputed(path, () => importsIn(path, readFileSync(`${root}/${path}`, "utf8")));
}

/** @param path only tells where relative names start */
export function importsIn(path: string, text: string): readonly Import[] {
  const found: Import[] = [];
  const add = (value: string, isType: boolean, isLater = false): void => {
    const to = value.startsWith(".") ? posix.join(posix.dirname(path), value) : value;
    found.push({ name: value, to, isType, isLater });
  };
  new Visitor({
    ImportDeclaration({ source, importKind }) {
      add(source.value, importKind === "type");
    },
    ExportNamedDeclaration({ source, exportKind }) {
      if (source !== null) add(source.value, exportKind === "type");
    },
    ExportAllDeclaration({ source, exportKind }) {
      add(source.value, exportKind === "type");
    },
    TSImportType({ source }) {
      add(source.value, true);
    },
    ImportExpression({ source }) {
      if (source.type === "Literal" && typeof source.value === "string") add(source.value, false, true);
      if (source.type === "TemplateLiteral" && source.quasis.length === 1)
        add(source.quasis[0]?.value.cooked ?? "", false, true);
    },
    NewExpression({ callee, arguments: [name] }) {
      const isFile = callee.type === "Identifier" && callee.name === "URL" && name?.type === "Literal";
      if (isFile && typeof name.value === "string" && name.value.endsWith(".ts")) add(name.value, false, true);
    },
  }).visit(parseSync(path, text).program);
  return found;
}

/** Returns the files and packages that are loaded with a file: its own, and those that any of them imports at once. */
export function loadedWith(path: string): ReadonlySet<string> {
  const found = new Set([path]);
  for (const each of found) {
    if (!each.endsWith(".ts") || !existsSync(`${root}/${each}`)) continue;
    for (const { to, isType, isLater } of importsOf(each)) if (!isType && !isLater) found.add(to);
  }
  return found;
}
