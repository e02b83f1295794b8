import { writeFile } from "node:fs/promises";
import { renderDiagnostics } from "../../../gate/src/server/policy/mod.ts";
import { badInput } from "../../../gate/src/cli/check.ts";
import { BadInput, type Outcome } from "../../../gate/src/cli/mod.ts";
import { findFiles, foldersOf, findUntestedContracts } from "./files.ts";
import { junitText } from "./junit.ts";
import { roundJson } from "./json.ts";
import { percent, printCoverage, printFile, printTotal, printUntested } from "./print.ts";
import { runRound, type TestRound } from "./round.ts";
import { watch, type TestRunResult } from "./watch.ts";

export interface TestOptions {
  readonly json: boolean;
  /** A file to write. */
  readonly junit: string | undefined;
  readonly coverage: boolean;
  /** Percent of outcomes that must be covered. */
  readonly min: string | undefined;
  readonly filter: string | undefined;
  readonly watch: boolean;
}

/** `svc-gate test`: decides the calls of test files as the gate would, and compares. */
export async function testCommand(paths: readonly string[], options: TestOptions): Promise<Outcome> {
  const min = readMin(options.min);
  if (!options.watch) return (await testOnce(paths, { ...options, min })).outcome;
  if (options.json) throw new BadInput("--watch prints for a person: it cannot be combined with --json");
  return watch(() => testOnce(paths, { ...options, min }));
}

interface TestSettings extends Omit<TestOptions, "min" | "watch"> {
  readonly min: number | undefined;
}

async function testOnce(paths: readonly string[], settings: TestSettings): Promise<TestRunResult> {
  const found = await findFiles(paths);
  if (found.tests.length === 0) throw new BadInput(nothingFound(paths));
  const round = await runRound(found.tests, settings.filter ?? "");
  const asksAll = settings.coverage || settings.min !== undefined;
  const outcome = await outcomeOf(round, settings, asksAll ? await findUntestedContracts(found, round) : []);
  return { outcome, folders: foldersOf(found, round) };
}

async function outcomeOf(
  round: TestRound,
  { json, junit, coverage, min, filter }: TestSettings,
  without: readonly string[],
): Promise<Outcome> {
  if (round.problems.length > 0)
    return json
      ? badInput(round.problems, true)
      : { exitCode: 2, text: `${renderDiagnostics(round.problems)}: nothing was tested` };
  if (round.files.length === 0) throw new BadInput(`no case has "${filter ?? ""}" in its name`);
  if (junit !== undefined)
    await writeFile(junit, junitText(round.files)).catch(({ code }: NodeJS.ErrnoException) => {
      throw new BadInput(`--junit: ${junit} cannot be written (${code})`);
    });
  const lacking = lackingOf(round, without, min);
  const passed = round.files.every(({ results }) => results.every(({ failure }) => failure === undefined));
  const exitCode = passed && lacking.length === 0 ? 0 : 1;
  if (json) return { exitCode, text: JSON.stringify(roundJson(round, exitCode === 0, without)), forPrograms: true };
  const text = [
    ...round.files.map(printFile),
    ...(coverage ? [...round.subjects].map(([name, subject]) => printCoverage(name, subject.coverage)) : []),
    ...(coverage ? without.map(printUntested) : []),
    [printTotal(round.files), ...lacking].join("\n"),
  ].join("\n\n");
  return { exitCode, text, forPrograms: true };
}

function readMin(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^[0-9]{1,3}(?:\.[0-9]+)?$/.test(text) && Number(text) <= 100) return Number(text);
  throw new BadInput(`--min must be a number from 0 to 100, not "${text}"`);
}

function lackingOf({ subjects }: TestRound, without: readonly string[], min: number | undefined): readonly string[] {
  if (min === undefined) return [];
  const reached = [...subjects].map(([name, { coverage }]) => [name, percent(coverage)] as const);
  return [
    ...reached
      .filter(([, share]) => share < min)
      .map(([name, share]) => `${name}: coverage is ${share} %, below ${min} % (--coverage lists what is missing)`),
    ...(min === 0 ? [] : without.map((name) => `${name}: it has no tests`)),
  ];
}

function nothingFound(paths: readonly string[]): string {
  const where = paths.length === 0 ? "" : ` in ${paths.join(", ")}`;
  return `no tests were found${where}: write them next to a contract, for x.yaml in x.test.yaml (docs/guides/testing.md)`;
}
