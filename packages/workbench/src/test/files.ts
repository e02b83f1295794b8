import { readdir, readFile, stat } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { isContract } from "../../../core/src/contract/mod.ts";
import { NoSuchFile } from "../../../gate/src/server/errors.ts";
import type { TestRound } from "./round.ts";

/** The files found at the paths of the command line. */
export interface FileSelection {
  /** Every `*.test.yaml`, in order. */
  readonly tests: readonly string[];
  /** Other YAML files below the given folders: some may be contracts without tests. */
  readonly others: readonly string[];
  /** The given folders. */
  readonly folders: readonly string[];
}

/**
 * Finds test files at or below the paths. The default path is `contracts`, or else the current folder.
 *
 * @throws {NoSuchFile} if a path does not exist
 */
export async function findFiles(paths: readonly string[]): Promise<FileSelection> {
  const starts = paths.length > 0 ? paths : [(await isFolder("contracts")) === true ? "contracts" : "."];
  const named: string[] = [];
  const below: string[] = [];
  const folders: string[] = [];
  for (const start of starts) {
    const folder = await isFolder(start);
    if (folder === undefined) throw new NoSuchFile(`${start} cannot be read: there is no such file`);
    if (!folder) named.push(await testsOf(start));
    else {
      folders.push(start);
      below.push(...(await yamlBelow(start)));
    }
  }
  const tests = [...named, ...below.filter((file) => isTest(file))].map((file) => normalize(file));
  return { tests: [...new Set(tests)], others: below.filter((file) => !isTest(file)), folders };
}

/** A test file itself, or the one next to a contract or mandate: `x.test.yaml` for `x.yaml`. */
async function testsOf(file: string): Promise<string> {
  if (isTest(file)) return file;
  const beside = file.replace(/(\.ya?ml)$/, ".test$1");
  if (beside !== file && (await isFolder(beside)) === false) return beside;
  throw new NoSuchFile(`${file} is not a test file (*.test.yaml), and there is none next to it`);
}

function isTest(file: string): boolean {
  return /\.test\.ya?ml$/.test(file);
}

/** Folders of tools are left out. */
async function yamlBelow(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const below = await Promise.all(
    entries.map(async (entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory() && !/^(?:node_modules$|\.)/.test(entry.name)) return yamlBelow(path);
      return entry.isFile() && /\.ya?ml$/.test(entry.name) ? [path] : [];
    }),
  );
  return below.flat().toSorted();
}

/** Undefined if the path does not exist. */
async function isFolder(path: string): Promise<boolean | undefined> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Contracts in the folders that no test file tests, neither directly nor in a mandate. */
export async function findUntestedContracts({ others }: FileSelection, round: TestRound): Promise<readonly string[]> {
  const tested = new Set(listTestedFiles(round).map((file) => normalize(file)));
  const left = others.filter((file) => !tested.has(normalize(file)));
  const texts = await Promise.all(left.map((file) => readFile(file, "utf8")));
  return left.filter((_, at) => isContract(texts[at] ?? ""));
}

/** The folders whose files affect the result of a round. */
export function foldersOf({ tests, folders }: FileSelection, round: TestRound): readonly string[] {
  return [...new Set([...folders, ...[...tests, ...listTestedFiles(round)].map((file) => dirname(file))])];
}

/** The contracts and mandates under test, and the contracts that the mandates name. */
function listTestedFiles({ names, subjects }: TestRound): readonly string[] {
  const inMandates = [...subjects].flatMap(([subject, { policySet }]) => {
    const parts = Array.from(policySet.text.matchAll(/^--- # (.*)$/gm), ([, name = ""]) => name);
    return parts.slice(1).map((name) => join(dirname(subject), name));
  });
  return [...names, ...inMandates];
}
