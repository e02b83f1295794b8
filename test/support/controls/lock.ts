/**
 * What is known about the positive controls: for each the digest of all that it depended on when it last noticed its
 * fault. The same is kept for whole files of tests that read documents or files of deployment. `test/controls.lock` has
 * one line for each, sorted. Nobody edits it; only a run writes it.
 */
import { createHash } from "node:crypto";
import { globSync, readFileSync, statSync } from "node:fs";
import { dirname, posix } from "node:path";
import { reading, slowestFile } from "../rings.ts";

export const lockFile = "test/controls.lock";

/** A control and what it depended on when it last noticed its fault. All paths are relative to the repository. */
export interface Noticed {
  readonly file: string;
  /** Empty for a whole file of tests that `reading` in test/support/rings.ts names. */
  readonly title: string;
  /** The files in which it planted a fault. */
  readonly mutated: readonly string[];
  readonly digest: string;
}

type Dependent = Pick<Noticed, "file" | "title" | "mutated">;

export type Lock = ReadonlyMap<string, Noticed>;

export function keyOf({ file, title }: Pick<Noticed, "file" | "title">): string {
  return `${file} ${title}`;
}

/** @returns no line for a text that is not a lock's: such a control is stale, and runs */
export function readLock(text: string): Lock {
  const lines = text.split("\n").flatMap((line) => {
    const found = /^(\[.*\]) ([0-9a-f]{32})$/.exec(line);
    if (found === null) return [];
    const [file, title, ...mutated] = JSON.parse(found[1] ?? "") as readonly string[];
    const { [2]: digest = "" } = found;
    return file === undefined || title === undefined ? [] : [{ file, title, mutated, digest }];
  });
  return new Map(lines.map((line) => [keyOf(line), line]));
}

export function writeLock(lock: Lock): string {
  const lines = [...lock.values()].map(
    ({ file, title, mutated, digest }) => `${JSON.stringify([file, title, ...mutated])} ${digest}\n`,
  );
  return lines.toSorted().join("");
}

/** Where the product's sources are: a control depends on those that it changes, and not on all that it starts. */
const product = /^(?:packages\/[^/]+\/src\/|clients\/(?:python|javascript)\/|adapters\/[^/]+$)/;

const productFolders = ["packages/*/src/**/*", "clients/python/*", "clients/javascript/*", "adapters/*"];

/** The files of a repository, each read once. Paths are relative to the present folder, with slashes. */
export class Inputs {
  readonly #texts = new Map<string, string>();
  readonly #hashes = new Map<string, string>();
  readonly #imports = new Map<string, readonly string[]>();
  readonly #ofTests = new Map<string, readonly string[]>();
  readonly #globs = new Map<string, readonly string[]>();
  readonly #changes = new Map<string, number>();

  /** Returns whether nothing has changed on which the control depends. */
  isFresh(line: Noticed): boolean {
    return this.digestOf(line) === line.digest;
  }

  /** Returns the digest of all that a control depends on; `undefined` if one of the files is gone. */
  digestOf(line: Dependent): string | undefined {
    if (![line.file, ...line.mutated].every(isFile)) return undefined;
    const digest = createHash("sha256");
    for (const path of this.of(line)) digest.update(`${this.#hashOf(path)} ${path}\n`);
    return digest.digest("hex").slice(0, 32);
  }

  /**
   * Returns the control's test, the files beside it, all that it imports or names below the repository, and the
   * mutated files with all that these import from their own module. A control that changes no file of the product may
   * depend on any of them. A whole file of tests depends on all that it may read.
   */
  of({ file, title, mutated }: Dependent): readonly string[] {
    return [...new Set([...this.#ofTest(file), ...this.#beyondTest(file, title, mutated)])].toSorted();
  }

  #beyondTest(file: string, title: string, mutated: readonly string[]): readonly string[] {
    if (title === "") return this.#matching(readsOf(file));
    if (mutated.length === 0) return this.#matching(productFolders);
    return mutated.flatMap((path) => [...this.#module(path)]);
  }

  /** Returns whether one of the files has changed since that moment, in milliseconds since 1970. */
  changedSince(moment: number, line: Dependent): boolean {
    const changeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Infinity;
    return this.of(line).some((path) => this.#changes.getOrInsertComputed(path, changeOf) > moment);
  }

  #ofTest(file: string): readonly string[] {
    return this.#ofTests.getOrInsertComputed(file, () => {
      const beside = globSync(`${file.replace(/\.test\.ts$/, "")}.*`).map(slashed);
      const code = [...closure([file], (path) => this.#importsOf(path).filter(isSupport))];
      return [...code, ...beside, ...code.flatMap((path) => this.#namedIn(path)).filter(isSupport)];
    });
  }

  #matching(patterns: readonly string[]): readonly string[] {
    return this.#globs.getOrInsertComputed(patterns.join(" "), () =>
      globSync(patterns)
        .map(slashed)
        .filter((path) => isFile(path) && !isMade.test(path)),
    );
  }

  #module(file: string): ReadonlySet<string> {
    const own = moduleOf(file);
    if (!isCode.test(file)) return new Set(globSync(`${dirname(file)}/*${posix.extname(file)}`).map(slashed));
    return closure([file], (path) => this.#importsOf(path).filter((other) => moduleOf(other) === own));
  }

  #importsOf(path: string): readonly string[] {
    return this.#imports.getOrInsertComputed(path, () => {
      const names = isCode.test(path) ? [...this.#textOf(path).matchAll(importPattern)] : [];
      return names.map(([, name = ""]) => posix.join(dirname(path), name)).filter(isFile);
    });
  }

  /** Files that a program names in a text, from its own folder or from the repository's. */
  #namedIn(path: string): readonly string[] {
    const names = [...this.#textOf(path).matchAll(namePattern)].map(([, name = ""]) => name);
    return names.flatMap((name) => [posix.join(dirname(path), name), posix.normalize(name)]).filter(isFile);
  }

  #hashOf(path: string): string {
    return this.#hashes.getOrInsertComputed(path, () => createHash("sha256").update(this.#textOf(path)).digest("hex"));
  }

  #textOf(path: string): string {
    return this.#texts.getOrInsertComputed(path, () => (isFile(path) ? readFileSync(path, "utf8") : ""));
  }
}

const isMade = /(?:^|\/)(?:node_modules|dist|\.types|__pycache__)\//;
const isCode = /\.m?[jt]s$/;
const importPattern = /(?:\bfrom|\bimport)\s*\(?\s*"(\.{1,2}\/[^"\n]+)"/g;
const namePattern = /["'`]([\w@./-]+\.\w{1,10})["'`]/g;

/** `packages/gate/src/ledger` for each file of the ledger. */
function moduleOf(path: string): string {
  return /^packages\/[^/]+\/src\/[^/]+(?=\/)/.exec(path)?.[0] ?? dirname(path);
}

function closure(from: readonly string[], next: (path: string) => readonly string[]): ReadonlySet<string> {
  const found = new Set(from);
  for (const path of found) for (const other of next(path)) found.add(other);
  return found;
}

function readsOf(file: string): readonly string[] {
  return reading.filter(({ tests }) => posix.matchesGlob(file, tests)).flatMap(({ reads }) => reads);
}

/** Returns whether the result of a whole file of tests is kept. */
export function isKept(file: string): boolean {
  return readsOf(file).length > 0;
}

function isSupport(path: string): boolean {
  return !product.test(path) && path !== lockFile && path !== slowestFile;
}

function isFile(path: string): boolean {
  if (path.startsWith("..") || path.startsWith("/")) return false;
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function slashed(path: string): string {
  return path.replaceAll("\\", "/");
}
