import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { renderDiagnostic, type Diagnostic } from "../../contract/mod.ts";
import { badInput } from "../check.ts";
import { BadInput, type Outcome } from "../outcome.ts";
import { junitText } from "./junit.ts";
import { roundJson } from "./json.ts";
import { percent, printCoverage, printFile, printTotal } from "./print.ts";
import { findTests, runRound, type Round } from "./round.ts";
import { watch } from "./watch.ts";

export interface TestOptions {
  readonly json: boolean;
  /** A file to write. */
  readonly junit: string | undefined;
  readonly coverage: boolean;
  /** Percent of outcomes that must be seen. */
  readonly min: string | undefined;
  readonly filter: string | undefined;
  readonly watch: boolean;
}

/** `svc-gate test`: decides the calls of test files as the gate would, and compares. */
export async function testCommand(paths: readonly string[], options: TestOptions): Promise<Outcome> {
  const min = readMin(options.min);
  if (!options.watch) return (await testOnce(paths, { ...options, min })).outcome;
  if (options.json) throw new BadInput("--watch prints for a person: it goes without --json");
  return watch(() => testOnce(paths, { ...options, min }));
}

/** What one run came to, and the folders whose files would change that. */
export interface Tested {
  readonly outcome: Outcome;
  readonly folders: readonly string[];
}

async function testOnce(
  paths: readonly string[],
  options: Omit<TestOptions, "min"> & { readonly min: number | undefined },
): Promise<Tested> {
  const files = await findTests(paths);
  if (files.length === 0) throw new BadInput(nothingFound(paths));
  const round = await runRound(files, options.filter ?? "");
  return { outcome: await outcomeOf(round, options), folders: foldersOf(files, round) };
}

async function outcomeOf(
  round: Round,
  { json, junit, coverage, min, filter }: Omit<TestOptions, "min"> & { readonly min: number | undefined },
): Promise<Outcome> {
  if (round.problems.length > 0)
    return json ? badInput(round.problems, true) : { exitCode: 2, text: problemsText(round.problems) };
  if (round.files.length === 0) throw new BadInput(`no case is called anything with "${filter ?? ""}"`);
  if (junit !== undefined) await writeFile(junit, junitText(round.files));
  const lacking = lackingOf(round, min);
  const passed = round.files.every(({ results }) => results.every(({ failure }) => failure === undefined));
  const exitCode = passed && lacking.length === 0 ? 0 : 1;
  if (json) return { exitCode, text: JSON.stringify(roundJson(round, exitCode === 0)), forPrograms: true };
  const text = [
    ...round.files.map(printFile),
    ...(coverage ? [...round.subjects].map(([name, subject]) => printCoverage(name, subject.coverage)) : []),
    [printTotal(round.files), ...lacking].join("\n"),
  ].join("\n\n");
  return { exitCode, text, forPrograms: true };
}

function readMin(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^[0-9]{1,3}(?:\.[0-9]+)?$/.test(text) && Number(text) <= 100) return Number(text);
  throw new BadInput(`--min takes a number from 0 to 100, not "${text}"`);
}

function lackingOf({ subjects }: Round, min: number | undefined): readonly string[] {
  if (min === undefined) return [];
  return [...subjects].flatMap(([name, { coverage }]) => {
    const reached = percent(coverage);
    return reached >= min
      ? []
      : [`${name}: coverage is ${reached} %, below ${min} % (--coverage says what is missing)`];
  });
}

/** Where the tests, what they test and the contracts of a mandate lie. */
function foldersOf(files: readonly string[], { names, subjects }: Round): readonly string[] {
  const inMandates = [...subjects].flatMap(([subject, { force }]) => {
    const parts = Array.from(force.text.matchAll(/^--- # (.*)$/gm), ([, name = ""]) => name);
    return parts.slice(1).map((name) => join(dirname(subject), name));
  });
  return [...new Set([...files, ...names, ...inMandates].map((file) => dirname(file)))];
}

function nothingFound(paths: readonly string[]): string {
  const where = paths.length === 0 ? "" : ` in ${paths.join(", ")}`;
  return `no tests were found${where}: write them beside a contract, for x.yaml in x.test.yaml (docs/testing.md)`;
}

function problemsText(problems: readonly Diagnostic[]): string {
  const count = `${problems.length} ${problems.length === 1 ? "error" : "errors"}`;
  return `${problems.map(renderDiagnostic).join("\n\n")}\n\n${count}: nothing was tested`;
}
