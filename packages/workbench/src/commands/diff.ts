import { createTwoFilesPatch } from "diff";
import { compareContracts, openSolver, type Compared, type Direction, type ToolDifference } from "../analysis/mod.ts";
import type { PolicySet } from "../../../svc-gate/src/contract/mod.ts";
import { loadContracts, renderDiagnostics } from "../../../svc-gate/src/cli/mod.ts";
import { BadInput, type Outcome } from "../../../svc-gate/src/cli/mod.ts";

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
  const tools = await compared(a.value, b.value, timeMs);
  const isRefused = !options.weaker && tools.some(({ answer }) => !["equivalent", "stricter"].includes(answer));
  const exitCode = isRefused || tools.some(({ defects }) => defects.length > 0) ? 1 : 0;
  if (options.json) return { exitCode, text: JSON.stringify({ tools: tools.map(forProgram) }), forPrograms: true };
  const patch = options.text ? [patchOf([before, a.value], [after, b.value])] : [];
  return { exitCode, text: [...patch, ...tools.map(block), total(tools)].join("\n\n"), forPrograms: true };
}

function milliseconds(seconds: string): number {
  const number = Number(seconds);
  if (number > 0 && number <= 3600) return number * 1000;
  throw new BadInput(`--time must be a number of seconds above 0 and up to 3600, not "${seconds}"`);
}

async function compared(before: PolicySet, after: PolicySet, timeMs: number): Promise<readonly ToolDifference[]> {
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

/** The result for one tool: the answer, the example calls, and further notes. */
function block({ tool, answer, shown, notes, defects }: ToolDifference): string {
  return [
    `${tool}: ${answer}`,
    ...[...shown].flatMap(([direction, found]) => shownLines(direction, found)),
    ...notes.map((note) => `  note: ${note}`),
    ...defects.flatMap((found) => [
      "  A DEFECT of svc-gate: its translation decides this call differently, but its engine does not.",
      "  Please report it with both contracts.",
      ...shownLines("weaker", found).slice(1),
    ]),
  ].join("\n");
}

function shownLines(direction: Direction, { call, before, after }: Compared): readonly string[] {
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
  return `${tools.length} ${tools.length === 1 ? "tool" : "tools"}: ${counts.flat().join(", ")}`;
}

function forProgram({ tool, answer, shown, notes, defects }: ToolDifference): object {
  return {
    tool,
    answer,
    shown: Object.fromEntries([...shown].map(([direction, found]) => [direction, callForProgram(found)])),
    notes,
    defects: defects.map(callForProgram),
  };
}

/** Inputs and facts are JSON texts, so that their numbers stay exact. */
function callForProgram({ call, before, after }: Compared): object {
  const said = ({ verdict, rule, reason }: Compared["before"]): object => ({ verdict, rule, reason });
  return {
    tool_input: call.input,
    platform_state: call.platform,
    session: call.hasSession,
    at: new Date(call.now).toISOString(),
    counters: Object.fromEntries([...before.read, ...after.read]),
    before: said(before),
    after: said(after),
  };
}
