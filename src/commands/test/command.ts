import { readdir, readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { renderDiagnostic, type Diagnostic } from "../../contract/mod.ts";
import { loadContracts, NoSuchFile } from "../../gate/mod.ts";
import { bad, good, type Result } from "../../wire/mod.ts";
import type { Outcome } from "../outcome.ts";
import { Witness } from "../witness.ts";
import { Coverage } from "./coverage.ts";
import type { TestFile } from "./document.ts";
import { percent, printCoverage, printFile, printTotal, type FileResult } from "./print.ts";
import { readTests } from "./read.ts";
import { runTests, type Subject } from "./run.ts";

export interface TestOptions {
  readonly json: boolean;
  readonly junit: string | undefined;
  readonly coverage: boolean;
  /** Percent of outcomes that must be seen. */
  readonly min: string | undefined;
  readonly filter: string | undefined;
  readonly watch: boolean;
}

/** `svc-gate test`: decides the calls of test files as the gate would, and compares. */
export async function testCommand(paths: readonly string[], options: TestOptions): Promise<Outcome> {
  const files = await findTests(paths);
  if (files.length === 0) return { exitCode: 2, text: nothingFound(paths) };
  const round = await runRound(files, options.filter);
  if (round.problems.length > 0) return { exitCode: 2, text: problemsText(round.problems) };
  const lacking = lackingOf(round, options.min);
  const passed = round.files.every(({ results }) => results.every(({ failure }) => failure === undefined));
  const text = [
    ...round.files.map(printFile),
    ...(options.coverage ? [...round.subjects].map(([name, { coverage }]) => printCoverage(name, coverage)) : []),
    [printTotal(round.files), ...lacking].join("\n"),
  ].join("\n\n");
  return { exitCode: passed && lacking.length === 0 ? 0 : 1, text, forPrograms: true };
}

interface Round {
  readonly files: readonly FileResult[];
  /** By the name of the contract or mandate. */
  readonly subjects: ReadonlyMap<string, Subject>;
  readonly problems: readonly Diagnostic[];
}

/** Reads, compiles and runs all; where anything does not compile, nothing is run. */
async function runRound(paths: readonly string[], filter = ""): Promise<Round> {
  const read = await Promise.all(
    paths.map(async (path) => readTests({ name: path, text: await readFile(path, "utf8") })),
  );
  const problems = read.flatMap((file) => (file.ok ? [] : file.problem));
  const files = read.flatMap((file) => (file.ok ? [file.value] : []));
  const subjects = new Map<string, Subject>();
  for (const name of new Set(files.map(subjectOf))) {
    const subject = await loadSubject(name);
    if (subject.ok) subjects.set(name, subject.value);
    else problems.push(...subject.problem);
  }
  if (problems.length > 0) return { files: [], subjects, problems };
  const isWanted = (name: string): boolean => name.toLowerCase().includes(filter.toLowerCase());
  const results = files.flatMap((file): FileResult[] => {
    const subject = subjects.get(subjectOf(file));
    return subject === undefined ? [] : [{ file, results: runTests(file, subject, isWanted) }];
  });
  return { files: results.filter((file) => file.results.length > 0), subjects, problems };
}

/** Contracts are named beside the file that tests them. */
function subjectOf({ source, subject }: TestFile): string {
  return join(dirname(source.name), subject);
}

async function loadSubject(name: string): Promise<Result<Subject, readonly Diagnostic[]>> {
  const witness = new Witness();
  const loaded = await loadContracts(name, name, { probe: witness.probe });
  if (!loaded.ok) return bad(loaded.problem);
  return good({ force: loaded.value, witness, coverage: new Coverage(loaded.value) });
}

/** Every `*.test.yaml` at or below the paths, in order. */
async function findTests(paths: readonly string[]): Promise<readonly string[]> {
  const starts = paths.length > 0 ? paths : [(await isFolder("contracts")) ? "contracts" : "."];
  const found: string[] = [];
  for (const start of starts) {
    if (!(await isFolder(start))) found.push(start);
    else found.push(...(await testsBelow(start)));
  }
  return [...new Set(found)];
}

async function testsBelow(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true });
  const hidden = /(?:^|[/\\])(?:node_modules|\.[^/\\.][^/\\]*)(?:[/\\]|$)/;
  return entries
    .filter((entry) => entry.isFile() && /\.test\.ya?ml$/.test(entry.name) && !hidden.test(entry.parentPath))
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted();
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    if (path !== "contracts") throw new NoSuchFile(`${path} cannot be read: there is no such file`);
    return false;
  }
}

function nothingFound(paths: readonly string[]): string {
  const where = paths.length === 0 ? "" : ` in ${paths.join(", ")}`;
  return `no tests were found${where}: write them beside a contract, for x.yaml in x.test.yaml (docs/testing.md)`;
}

function problemsText(problems: readonly Diagnostic[]): string {
  const count = `${problems.length} ${problems.length === 1 ? "error" : "errors"}`;
  return `${problems.map(renderDiagnostic).join("\n\n")}\n\n${count}: nothing was tested`;
}

function lackingOf({ subjects }: Round, min: string | undefined): readonly string[] {
  if (min === undefined) return [];
  return [...subjects].flatMap(([name, { coverage }]) => {
    const reached = percent(coverage);
    return reached >= Number(min) ? [] : [`${name}: coverage is ${reached} %, below ${min} %`];
  });
}
