import { jsonText } from "../../../core/src/wire/mod.ts";
import { styleText } from "node:util";
import { renderPlace } from "../../../core/src/contract/mod.ts";
import { printRule } from "../../../records/src/mod.ts";
import type { AnswerApproval } from "../../../gate/src/server/mod.ts";
import { clip, locationText, textAt } from "../../../gate/src/cli/source-location.ts";
import { formatTargetName, outcomes, type Coverage, type Target } from "./coverage.ts";
import type { CaseAnswer } from "./case-gate.ts";
import { latest, type TestCall, type TestDecision, type TestOutcome, type TestStep } from "./document.ts";
import type { FileResult } from "./round.ts";
import { io, counted } from "../../../gate/src/cli/mod.ts";
import { isRule, type Failure, type TestMismatch } from "./run.ts";

/** One file for a person: a line for each case; for a failed one the expected result, the actual one and the reason. */
export function printFile({ file, results }: FileResult): string {
  const lines = results.flatMap(({ case: testCase, failure, ms }) => {
    const slow = ms > 1000 ? paint("yellow", ` (${(ms / 1000).toFixed(1)} s)`) : "";
    if (failure === undefined) return [`  ${paint("green", "✔")} ${testCase.name}${slow}`];
    return [`  ${paint("red", `✖ ${testCase.name}`)}${slow}`, ...printFailure(failure, testCase.steps)];
  });
  return [paint("bold", file.source.name), ...lines].join("\n").trimEnd();
}

/** The expected and the actual result of a step, and the rules that applied or were expected to. */
export function printFailure(
  { step, number, mismatches, answered, explanation }: Failure,
  steps: readonly TestStep[],
): readonly string[] {
  const word = steps.every(({ kind }) => kind === "call") ? "call" : "step";
  const which = steps.length === 1 ? "" : `, ${word} ${number} of ${steps.length}`;
  const lines = [
    `at ${locationText(step.expect?.span ?? step.span)}${which}, ${new Date(step.at).toISOString()}`,
    ...stepLines(step, answered),
    "",
    `${paint("green", "- expected")}  ${paint("red", "+ came")}`,
    ...mismatches.flatMap(printMismatch),
  ];
  if (step.kind === "call" && explanation !== undefined && answered !== undefined) {
    const { rules } = explanation;
    const shown = rules.filter(({ id, speaks }) => speaks !== null || isRule(step.expect?.rule, id));
    const { rule, reason } = answered.decision;
    lines.push("", `decided by ${rule}: ${reason.replace(/^Svc: /, "")}`, ...shown.flatMap(printRule));
    if (answered.isChanged) lines.push(`answered ${answered.answered}: ${answered.reason.replace(/^Svc: /, "")}`);
    for (const { name, value } of answered.counters) lines.push(`counter ${name}  ${value ?? "not known"}`);
    if (answered.approval !== undefined) lines.push(`approval  ${approvalLine(answered.approval)}`);
  }
  return ["", ...lines, ""].map((line) => (line === "" ? "" : `      ${line}`));
}

function approvalLine({ status, new: isNew, needs, has, next }: AnswerApproval): string {
  return `${status}, ${has} of ${needs} people, next: ${next}${isNew ? ", new" : ""}`;
}

function stepLines(step: TestStep, answered: CaseAnswer | undefined): readonly string[] {
  if (step.kind === "call") return callLines(step, answered);
  return [step.kind === "decision" ? decisionLine(step) : outcomeLine(step)];
}

function outcomeLine({ status, amount, call, key }: TestOutcome): string {
  const which = call === latest ? "" : `, call ${call}`;
  const more = amount === undefined ? "" : `, amount ${jsonText(amount)}`;
  return `outcome ${status}${more}${which}${key === undefined ? "" : `, key ${key}`}`;
}

function decisionLine({ act, by, approval, comment }: TestDecision): string {
  const which = approval === latest ? "" : `, approval ${approval}`;
  return `${act} by ${by}${which}${comment === "" ? "" : `: ${comment}`}`;
}

function callLines(
  { tool, body, session, key, approval }: TestCall,
  answered: CaseAnswer | undefined,
): readonly string[] {
  const named = approval === undefined ? "" : `, approval ${approval}`;
  const who = `${tool}  ${session === null ? "no session" : `session ${session}`}, key ${key}${named}`;
  if (answered === undefined) return [who, `  body      ${cut(body)}`];
  const { inputText, platformText } = answered.prepared.request;
  return [who, `  input     ${cut(inputText)}`, `  platform  ${cut(platformText ?? "none")}`];
}

function printMismatch({ what, expected, came }: TestMismatch): readonly string[] {
  const label = what.padEnd(9);
  const marked = what === "reason" ? `${paint("red", "+ ")}${wordDiff(expected, came)}` : paint("red", `+ ${came}`);
  return [`  ${label} ${paint("green", `- ${expected}`)}`, `  ${" ".repeat(9)} ${marked}`];
}

/** The actual text, with the unexpected words marked. If only a part is expected, it is printed unmarked. */
function wordDiff(expected: string, came: string): string {
  if (!expected.startsWith("Svc:")) return paint("red", came);
  const [left, right] = [wordsOf(expected), wordsOf(came)];
  const most = Math.min(left.length, right.length);
  let first = 0;
  while (first < most && left[first] === right[first]) first += 1;
  let last = 0;
  while (last < most - first && left.at(-1 - last) === right.at(-1 - last)) last += 1;
  const other = right.slice(first, right.length - last).join("");
  const marked = other === "" ? "" : paint("red", `{+${other}+}`);
  return [...right.slice(0, first), marked, ...right.slice(right.length - last)].join("");
}

/** Words, and the text between them. */
function wordsOf(text: string): readonly string[] {
  return text.match(/\s+|[\p{L}\p{N}]+|./gu) ?? [];
}

export function printTotal(files: readonly FileResult[]): string {
  const all = files.flatMap(({ results }) => results);
  const failed = all.filter(({ failure }) => failure !== undefined).length;
  const steps = all.flatMap(({ case: { steps: wanted }, failure }) => wanted.slice(0, failure?.number));
  const calls = steps.filter(({ kind }) => kind === "call").length;
  const passed = paint(
    failed === 0 ? "green" : "red",
    `${all.length - failed} of ${counted(all.length, "case")} passed`,
  );
  return `${passed}, ${counted(calls, "call")} in ${counted(files.length, "file")}`;
}

/** A contract in a folder of tests that has no test. */
export function printUntested(name: string): string {
  return `${paint("bold", `coverage of ${name}`)}: ${paint("red", "it has no tests")}`;
}

/** The coverage table of one contract, and the positions that are not covered. */
export function printCoverage(name: string, coverage: Coverage): string {
  const { seen, all } = outcomes(coverage);
  const rows = coverage.targets.map(row);
  const tools = [...coverage.tools.values()].flatMap(({ tool, calls, otherwise }) => [
    `  ${tool.padEnd(width)} ${count(calls)}          ${calls === 0 ? paint("red", "no test calls it") : ""}`.trimEnd(),
    ...[...otherwise].map(([contract, times]) => {
      const missing = times === 0 ? paint("red", "never reached") : "";
      return `    ${`${contract}.$otherwise`.padEnd(width - 2)} ${count(times)}          ${missing}`.trimEnd();
    }),
  ]);
  return [
    `${paint("bold", `coverage of ${name}`)}: ${seen} of ${all} outcomes, ${percent(coverage)} %`,
    "",
    `  ${"condition".padEnd(width)}    true   false`,
    ...rows,
    "",
    `  ${"tool".padEnd(width)}   calls`,
    ...tools,
    ...printForms(coverage),
    ...coverage.targets.flatMap(printMissing),
  ].join("\n");
}

/** The forms that no call of a test fits. They are not among the outcomes: a pack has examples of its own. */
function printForms({ forms }: Coverage): readonly string[] {
  if (forms.size === 0) return [];
  const unused = [...forms].flatMap(([name, times]) => (times === 0 ? [name] : []));
  const shown = unused.slice(0, 20).join(", ") + (unused.length > 20 ? ", ..." : "");
  const rest = unused.length === 0 ? "" : `; none fits ${shown}`;
  return ["", `  ${forms.size - unused.length} of ${forms.size} forms of commands fit a call of a test${rest}`];
}

const width = 60;

function row(target: Target): string {
  const { isWhole, trues, falses } = target;
  const counts = `${count(trues)} ${count(falses)}  ${paint("red", missingOf(target))}`.trimEnd();
  const text = `${isWhole ? "  " : "    "}${isWhole ? formatTargetName(target) : clip(textAt(target.span), width - 2)}`;
  return `${text.padEnd(width + 2)} ${counts}`;
}

function missingOf({ trues, falses }: Target): string {
  if (trues === 0) return falses === 0 ? "never true nor false" : "never true";
  return falses === 0 ? "never false" : "";
}

function printMissing(target: Target): readonly string[] {
  const missing = missingOf(target);
  if (missing === "") return [];
  return [
    "",
    `${paint("red", missing)}: ${target.isWhole ? "the condition" : "a part"} of ${formatTargetName(target)}`,
    ...renderPlace(target.span),
  ];
}

/** Rounded down: 100 means complete. */
export function percent(coverage: Coverage): number {
  const { seen, all } = outcomes(coverage);
  return all === 0 ? 100 : Math.floor((seen * 10_000) / all) / 100;
}

function count(times: number): string {
  return String(times).padStart(7);
}

function cut(body: string): string {
  return clip(body, 400);
}

/** In colour only on a terminal, whatever the environment forces: otherwise a file or a program reads the output. */
function paint(style: Parameters<typeof styleText>[0], text: string): string {
  return io().stdout.isTTY && text !== "" ? styleText(style, text, { stream: io().stdout }) : text;
}
