import { EvaluationError, library, type Value } from "../../../core/src/contract/function.ts";
import { doubt } from "./doubt.ts";
import { readerOfCode, readText } from "./read.ts";
import type { ShellReading, ShellCommand } from "./run.ts";
import { understood, type Shapes } from "./shapes.ts";

export { understood };

const unbash = library("the shell parser", () => import("unbash"));

/** Loads the parser. */
export const load: () => Promise<void> = unbash.load;

/**
 * Reads a text into a record.
 *
 * @param shapes the spellings that the reader understands; only a test passes others
 * @throws {EvaluationError} for anything that is not understood
 */
export function readShellText(text: string, shapes: Shapes = understood): Value {
  const reading = readShell(text, ".", shapes);
  const { commands, writes, reads, unknown, variables, functions, scripts, background, unread } = reading;
  for (const why of unread) doubt(why);
  return new Map<string, Value>([
    ["commands", commands.map(commandValue)],
    ["writes", [...writes]],
    ["reads", [...reads]],
    ["unknown", [...unknown]],
    ["variables", [...variables]],
    ["functions", [...functions]],
    ["scripts", scripts.map((script) => new Map(Object.entries(script)))],
    ["background", background],
  ]);
}

/**
 * Reads a text that starts in a folder. `.` is a folder without a name.
 *
 * @throws {EvaluationError} for anything that is not understood
 */
export function readShell(text: string, folder: string, shapes: Shapes = understood): ShellReading {
  const reading = emptyReading(shapes);
  try {
    readText(reading, text, folder);
  } catch (error) {
    if (error instanceof EvaluationError) throw error;
    return doubt("the parser gave up");
  }
  return reading;
}

function emptyReading(shapes: Shapes): ShellReading {
  const reading: ShellReading = {
    shapes,
    readCode: (text, runner) => readCode(text, runner),
    commands: [],
    uses: [],
    runners: new Set(),
    withCode: new Set(),
    redirects: [],
    emptied: new Set(),
    unread: new Set(),
    loopWords: new Map(),
    writes: new Set(),
    reads: new Set(),
    unknown: new Set(),
    beside: new Set(),
    variables: new Set(),
    functions: new Set(),
    scripts: [],
    values: new Map(),
    evaluated: new Set(),
    split: new Set(),
    arrays: new Set(),
    declared: new Set(),
    moves: [],
    relativePrograms: [],
    background: false,
    units: 0,
  };
  const readCode = readerOfCode(reading, unbash.use());
  return reading;
}

function commandValue(run: ShellCommand): Value {
  const { words } = run;
  return new Map<string, Value>([...Object.entries(run), ["subcommand", words[0] ?? ""]]);
}
