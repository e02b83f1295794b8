import { existsSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { parseSync, Visitor, type StringLiteral } from "oxc-parser";
import { root } from "./tracked.ts";

/** What one file imports from another, or from a package. */
export interface Import {
  /** A path from the repository's folder, or a package's name. */
  readonly to: string;
  /** True if only types are imported: it loads nothing. */
  readonly isType: boolean;
  /** True for `import()` of a fixed name: it loads nothing before it is called. */
  readonly isLater: boolean;
}

const known = new Map<string, readonly Import[]>();

/** Returns the imports and re-exports of a TypeScript file, and the modules that it names as `new URL("./a.ts", ...)`. */
export function importsOf(path: string): readonly Import[] {
  return known.getOrInsertComputed(path, () => importsIn(path, readFileSync(`${root}/${path}`, "utf8")));
}

/** @param path only tells where relative names begin */
export function importsIn(path: string, text: string): readonly Import[] {
  const found: Import[] = [];
  const add = ({ value }: StringLiteral, isType: boolean, isLater = false): void => {
    const to = value.startsWith(".") ? posix.join(posix.dirname(path), value) : value;
    found.push({ to, isType, isLater });
  };
  new Visitor({
    ImportDeclaration({ source, importKind, specifiers }) {
      const areTypes = specifiers.map((each) => each.type === "ImportSpecifier" && each.importKind === "type");
      add(source, importKind === "type" || (areTypes.length > 0 && areTypes.every(Boolean)));
    },
    ExportNamedDeclaration({ source, exportKind, specifiers }) {
      if (source === null) return;
      add(source, exportKind === "type" || specifiers.every((each) => each.exportKind === "type"));
    },
    ExportAllDeclaration({ source, exportKind }) {
      add(source, exportKind === "type");
    },
    ImportExpression({ source }) {
      if (source.type === "Literal" && typeof source.value === "string") add(source, false, true);
    },
    NewExpression({ callee, arguments: [name] }) {
      const isFile = callee.type === "Identifier" && callee.name === "URL" && name?.type === "Literal";
      if (isFile && typeof name.value === "string" && name.value.endsWith(".ts")) add(name, false, true);
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
