import { readFileSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { ringOf, slowestFiles } from "../../test/support/rings.ts";
import type { Selection } from "./select.ts";

/** A process starts longer than most unit tests take, so it runs this many files. */
const batchSize = 8;

/** It tests what a process does before its first parser is loaded. */
const alone = ["test/unit/contract/functions/functions.test.ts"];

/** The files that the runner starts. Some of them run several files of unit tests, one after another. */
export class Batches {
  readonly started: readonly string[];
  readonly #filesOf: ReadonlyMap<string, readonly string[]>;

  /** @param folder where the files of batches are written */
  constructor({ areNamed }: Pick<Selection, "areNamed">, files: readonly string[], folder: string) {
    const slow = slowestFiles();
    const apart = (file: string): boolean => alone.includes(file) || slow.has(file) || needsOwn.test(textOf(file));
    const together = areNamed ? [] : files.filter((file) => ringOf(file) === "unit" && !apart(file));
    const batches = Array.from({ length: Math.ceil(together.length / batchSize) }, (_, at) =>
      together.slice(at * batchSize, (at + 1) * batchSize),
    );
    this.#filesOf = new Map(batches.map((batch, at) => [writeBatch(join(folder, `unit-${at + 1}.mjs`), batch), batch]));
    this.started = [...files.filter((file) => !together.includes(file)), ...this.#filesOf.keys()];
  }

  /** Returns the test files that a started file ran, from the repository's folder. */
  filesOf(started: string): readonly string[] {
    return this.#filesOf.get(started) ?? [relative(".", started)];
  }
}

/**
 * A hook outside a suite would run for the tests of other files too. A fault that is planted outside a control counts for
 * each control of the process.
 */
const needsOwn = /^(?:await )?(?:before|after|beforeEach|afterEach)\(|support\/mutation\//m;

function textOf(file: string): string {
  return readFileSync(file, "utf8");
}

function writeBatch(path: string, files: readonly string[]): string {
  writeFileSync(path, files.map((file) => `import ${JSON.stringify(pathToFileURL(resolve(file)).href)};\n`).join(""));
  return path;
}
