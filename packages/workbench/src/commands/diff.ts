import { createTwoFilesPatch } from "diff";
import {
  changeText,
  formChangeText,
  compareAliases,
  compareContracts,
  compareForms,
  compareSettings,
  openSolver,
  type AliasChange,
  type ApprovalChange,
  type CallComparison,
  type ChangeDirection,
  type ToolDifference,
} from "../analysis/mod.ts";
import type { PolicySet } from "../../../readers/src/contract.ts";
import { loadContracts, renderDiagnostics } from "../../../svc-gate/src/contract-files.ts";
import { BadInput, counted, type Outcome } from "../../../gate/src/cli/mod.ts";

export interface DiffOptions {
  readonly json: boolean;
  /** Show how the texts differ. */
  readonly text: boolean;
  /** Accept tools that became weaker. */
  readonly weaker: boolean;
  /** Seconds for each tool. */
  readonly time: string;
}

/** `svc-gate diff`: shows how two contracts differ, in their text and in their decisions. */
export async function diffCommand(before: string, after: string, options: DiffOptions): Promise<Outcome> {
  const timeMs = milliseconds(options.time);
  const sides = [await loadContracts(before), await loadContracts(after)] as const;
  const problems = sides.flatMap((side) => (side.ok ? [] : side.problem));
  const [a, b] = sides;
  if (!a.ok || !b.ok) return { exitCode: 2, text: renderDiagnostics(problems) };
  const tools = await compareWithSolver(a.value, b.value, timeMs);
  const aliases = compareAliases(a.value, b.value);
  const settings = compareSettings(a.value, b.value);
  const forms = compareForms(a.value, b.value);
  const isWeaker =
    tools.some(({ answer }) => !["equivalent", "stricter"].includes(answer)) ||
    [...aliases, ...settings, ...forms].some(({ direction }) => direction !== "stricter");
  const isRefused = !options.weaker && isWeaker;
  const exitCode = isRefused || tools.some(({ defects }) => defects.length > 0) ? 1 : 0;
  if (options.json) {
    const report = {
      tools: tools.map(forProgram),
      aliases,
      forms,
      // A setting belongs to no rule.
      settings: settings.map(({ rule: _rule, instead: _instead, ...setting }) => setting),
    };
    return { exitCode, text: JSON.stringify(report), forPrograms: true };
  }
  const patch = options.text ? [patchOf([before, a.value], [after, b.value])] : [];
  const blocks = [
    ...patch,
    ...tools.map(block),
    ...formatSection("aliases of tools:", aliases.map(aliasText)),
    ...formatSection("tables of commands:", forms.map(formChangeText)),
    ...formatSection("approvals of the mandate:", settings.map(changeText)),
    total(tools),
  ];
  return { exitCode, text: blocks.join("\n\n"), forPrograms: true };
}

function milliseconds(seconds: string): number {
  const number = Number(seconds);
  if (number > 0 && number <= 3600) return number * 1000;
  throw new BadInput(`--time must be a number of seconds above 0 and up to 3600, not "${seconds}"`);
}

async function compareWithSolver(
  before: PolicySet,
  after: PolicySet,
  timeMs: number,
): Promise<readonly ToolDifference[]> {
  const solver = await openSolver();
  try {
    return await compareContracts(before, after, { solver, timeMs });
  } finally {
    await solver?.close();
  }
}

function patchOf(
  [beforeName, before]: readonly [string, PolicySet],
  [afterName, after]: readonly [string, PolicySet],
): string {
  const body = ({ text }: PolicySet): string => text.replace(/^--- # .*\n/, "");
  if (body(before) === body(after)) return "the texts are the same";
  return createTwoFilesPatch(beforeName, afterName, body(before), body(after), undefined, undefined, { context: 3 })
    .replace(/^=+\n/, "")
    .trimEnd();
}

/** The result for one tool: the answer, what approvals need, the example calls, and further notes. */
function block({ tool, answer, shown, approvals, numbers, hostFacts, notes, defects }: ToolDifference): string {
  return [
    `${tool}: ${answer}`,
    ...(numbers === undefined ? [] : [`  numbers: ${numbers.before} -> ${numbers.after} (${numbers.direction})`]),
    ...(hostFacts === undefined ? [] : [`  host_facts: ${hostFactsText(hostFacts)}`]),
    ...approvals.map((change) => `  approval${causeText(change)}: ${changeText(change)}`),
    ...[...shown].flatMap(([direction, found]) => shownLines(direction, found)),
    ...notes.map((note) => `  note: ${note}`),
    ...defects.flatMap((found) => [
      "  A DEFECT of svc-gate: its translation decides this call differently, but its engine does not.",
      "  Please report it with both contracts.",
      ...shownLines("weaker", found).slice(1),
    ]),
  ].join("\n");
}

function hostFactsText({ before, after, direction }: NonNullable<ToolDifference["hostFacts"]>): string {
  const [a, b] = [before, after].map((names) => names.join(", ") || "none");
  return `${a} -> ${b} (${direction})`;
}

/** The rule that asks, before and after; nothing for a part that belongs to the tool. */
function causeText({ rule, instead }: ApprovalChange): string {
  if (rule === null) return "";
  return instead === null ? ` for ${rule}` : ` for ${rule}, where ${instead} may ask instead`;
}

function aliasText({ name, before, after, direction }: AliasChange): string {
  return `${name}: ${before ?? "unknown"} -> ${after ?? "unknown"} (${direction})`;
}

function formatSection(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [[title, ...lines.map((line) => `  ${line}`)].join("\n")];
}

function shownLines(direction: ChangeDirection, { call, before, after }: CallComparison): readonly string[] {
  const counters = [...before.read, ...after.read.filter(([name]) => !before.read.some(([other]) => other === name))];
  return [
    `  ${direction} for this call:`,
    `    input     ${call.input}`,
    ...(call.platform === null ? [] : [`    platform  ${call.platform}`]),
    `    ${call.hasSession ? "in a session" : "without a session"}, at ${new Date(call.now).toISOString()}`,
    ...(counters.length === 0
      ? []
      : [`    counters  ${counters.map(([name, value]) => `${name} = ${value}`).join(", ")}`]),
    `    before    ${before.verdict.padEnd(8)} ${before.rule}: ${before.reason}`,
    `    after     ${after.verdict.padEnd(8)} ${after.rule}: ${after.reason}`,
  ];
}

function total(tools: readonly ToolDifference[]): string {
  const counts = ["equivalent", "stricter", "weaker", "changed", "unknown"].map((answer) => {
    const count = tools.filter((tool) => tool.answer === answer).length;
    return count === 0 ? [] : [`${count} ${answer}`];
  });
  return `${counted(tools.length, "tool")}: ${counts.flat().join(", ")}`;
}

function forProgram({ tool, answer, shown, approvals, numbers, hostFacts, notes, defects }: ToolDifference): object {
  return {
    tool,
    answer,
    numbers: numbers ?? null,
    host_facts: hostFacts ?? null,
    approvals,
    shown: Object.fromEntries([...shown].map(([direction, found]) => [direction, callForProgram(found)])),
    notes,
    defects: defects.map(callForProgram),
  };
}

/** Inputs and facts are JSON texts, so that their numbers stay exact. */
function callForProgram({ call, before, after }: CallComparison): object {
  const summarizeDecision = ({ verdict, rule, reason }: CallComparison["before"]): object => ({
    verdict,
    rule,
    reason,
  });
  return {
    tool_input: call.input,
    platform_state: call.platform,
    session: call.hasSession,
    at: new Date(call.now).toISOString(),
    counters: Object.fromEntries([...before.read, ...after.read]),
    before: summarizeDecision(before),
    after: summarizeDecision(after),
  };
}
