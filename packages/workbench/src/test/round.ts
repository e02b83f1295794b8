import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Diagnostic } from "../../../core/src/contract/mod.ts";
import { loadContracts } from "../../../gate/src/server/policy/mod.ts";
import { bad, good, type Result } from "../../../core/src/wire/mod.ts";
import { EvaluationTrace } from "../../../records/src/mod.ts";
import { Coverage } from "./coverage.ts";
import type { TestFile } from "./document.ts";
import { readTests } from "./read.ts";
import { runTests, type CaseResult, type TestSubject } from "./run.ts";

export interface FileResult {
  readonly file: TestFile;
  /** The contract or mandate under test. */
  readonly subject: string;
  readonly results: readonly CaseResult[];
}

/** All test files, run once. */
export interface TestRound {
  /** The files with a selected case. */
  readonly files: readonly FileResult[];
  /** The contracts and mandates that the files name, whether or not they compile. */
  readonly names: readonly string[];
  /** By the name of the contract or mandate. */
  readonly subjects: ReadonlyMap<string, TestSubject>;
  /** If there are any, nothing was run. */
  readonly problems: readonly Diagnostic[];
}

/** Reads, compiles and runs test files. @param filter a part of a case's name, or of its file's title */
export async function runRound(paths: readonly string[], filter: string): Promise<TestRound> {
  const read = await Promise.all(
    paths.map(async (path) => readTests({ name: path, text: await readFile(path, "utf8") })),
  );
  const problems = read.flatMap((file) => (file.ok ? [] : file.problem));
  const files = read.flatMap((file) => (file.ok ? [file.value] : []));
  const subjects = new Map<string, TestSubject>();
  const names = [...new Set(files.map(subjectOf))];
  for (const name of names) {
    const subject = await loadSubject(name);
    if (subject.ok) subjects.set(name, subject.value);
    else problems.push(...subject.problem);
  }
  if (problems.length > 0) return { files: [], names, subjects, problems };
  const isWanted = (name: string): boolean => name.toLowerCase().includes(filter.toLowerCase());
  const results: FileResult[] = [];
  for (const file of files) {
    const name = subjectOf(file);
    const subject = subjects.get(name);
    if (subject !== undefined) results.push({ file, subject: name, results: await runTests(file, subject, isWanted) });
  }
  return { files: results.filter((file) => file.results.length > 0), names, subjects, problems };
}

/** Contracts are named relative to the file that tests them. */
function subjectOf({ source, subject }: TestFile): string {
  return join(dirname(source.name), subject);
}

async function loadSubject(name: string): Promise<Result<TestSubject, readonly Diagnostic[]>> {
  const trace = new EvaluationTrace();
  const loaded = await loadContracts(name, name, { probe: trace.probe });
  if (!loaded.ok) return bad(loaded.problem);
  return good({ policySet: loaded.value, trace, coverage: new Coverage(loaded.value) });
}
