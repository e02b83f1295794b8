import { readdir, readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Diagnostic } from "../../contract/mod.ts";
import { loadContracts, NoSuchFile } from "../../gate/mod.ts";
import { bad, good, type Result } from "../../wire/mod.ts";
import { Witness } from "../witness.ts";
import { Coverage } from "./coverage.ts";
import type { TestFile } from "./document.ts";
import { readTests } from "./read.ts";
import { runTests, type CaseResult, type Subject } from "./run.ts";

export interface FileResult {
  readonly file: TestFile;
  /** The contract or mandate under test. */
  readonly subject: string;
  readonly results: readonly CaseResult[];
}

/** All test files, run once. */
export interface Round {
  /** Those with a case that was wanted. */
  readonly files: readonly FileResult[];
  /** The contracts and mandates that the files name, whether they compile or not. */
  readonly names: readonly string[];
  /** By the name of the contract or mandate. */
  readonly subjects: ReadonlyMap<string, Subject>;
  /** Where there are any, nothing was run. */
  readonly problems: readonly Diagnostic[];
}

/** Reads, compiles and runs test files. @param filter a part of a case's name, or of its file's title */
export async function runRound(paths: readonly string[], filter: string): Promise<Round> {
  const read = await Promise.all(
    paths.map(async (path) => readTests({ name: path, text: await readFile(path, "utf8") })),
  );
  const problems = read.flatMap((file) => (file.ok ? [] : file.problem));
  const files = read.flatMap((file) => (file.ok ? [file.value] : []));
  const subjects = new Map<string, Subject>();
  const names = [...new Set(files.map(subjectOf))];
  for (const name of names) {
    const subject = await loadSubject(name);
    if (subject.ok) subjects.set(name, subject.value);
    else problems.push(...subject.problem);
  }
  if (problems.length > 0) return { files: [], names, subjects, problems };
  const isWanted = (name: string): boolean => name.toLowerCase().includes(filter.toLowerCase());
  const results = files.flatMap((file): FileResult[] => {
    const name = subjectOf(file);
    const subject = subjects.get(name);
    return subject === undefined ? [] : [{ file, subject: name, results: runTests(file, subject, isWanted) }];
  });
  return { files: results.filter((file) => file.results.length > 0), names, subjects, problems };
}

/** Contracts are named as seen from the file that tests them. */
function subjectOf({ source, subject }: TestFile): string {
  return join(dirname(source.name), subject);
}

async function loadSubject(name: string): Promise<Result<Subject, readonly Diagnostic[]>> {
  const witness = new Witness();
  const loaded = await loadContracts(name, name, { probe: witness.probe });
  if (!loaded.ok) return bad(loaded.problem);
  return good({ force: loaded.value, witness, coverage: new Coverage(loaded.value) });
}

/** Every `*.test.yaml` at or below the paths, in order; `contracts`, else the current folder, where none is given. */
export async function findTests(paths: readonly string[]): Promise<readonly string[]> {
  const starts = paths.length > 0 ? paths : [(await isFolder("contracts")) === true ? "contracts" : "."];
  const found: string[] = [];
  for (const start of starts) {
    const folder = await isFolder(start);
    if (folder === undefined) throw new NoSuchFile(`${start} cannot be read: there is no such file`);
    found.push(...(folder ? await testsBelow(start) : [start]));
  }
  return [...new Set(found)];
}

/** Folders of tools are left out. */
const skipped = /(?:^|[/\\])(?:node_modules|\.[^/\\.][^/\\]*)(?:[/\\]|$)/;

async function testsBelow(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const below = await Promise.all(
    entries.map(async (entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory() && !skipped.test(entry.name)) return testsBelow(path);
      return entry.isFile() && /\.test\.ya?ml$/.test(entry.name) ? [path] : [];
    }),
  );
  return below.flat().toSorted();
}

/** Undefined where there is nothing. */
async function isFolder(path: string): Promise<boolean | undefined> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
