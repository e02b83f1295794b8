import {
  boolean,
  type ContractFunction,
  EvaluationError,
  library,
  listOf,
  recordOf,
  string,
  type Value,
} from "../../../core/src/contract/function.ts";
import { doubt } from "./doubt.ts";
import { readerOfCode, readText, textMax } from "./read.ts";
import { commandsMax, type Reading, type Run } from "./run.ts";
import { understood, type Shapes } from "./shapes.ts";

export { understood };

const unbash = library("the shell parser", () => import("unbash"));

const texts = listOf(string, textMax);

const command = recordOf({
  name: string,
  program: string,
  wrapper: string,
  subcommand: string,
  args: texts,
  files: texts,
  words: texts,
  flags: texts,
  unknown: texts,
  globs: texts,
  variables: texts,
});

/** Shell commands. */
export const shellFunctions: readonly ContractFunction[] = [
  {
    name: "shell",
    style: "function",
    parameters: ["string"],
    result: recordOf({
      commands: listOf(command, commandsMax),
      writes: texts,
      reads: texts,
      unknown: texts,
      variables: texts,
      functions: texts,
      scripts: listOf(recordOf({ language: string, text: string }), commandsMax),
      background: boolean,
    }),
    doc:
      "Lists every command that a text would run in bash or dash: in pipelines, lists, substitutions, loops and functions, " +
      "behind `sudo`, `env`, `xargs` and the like, and in code given to `sh -c`, `eval` or a shell's input. A spelling that the " +
      "gate does not know is an error. See [shell](#shell).",
    examples: [
      ['shell("cd /tmp && sudo -u x /bin/rm -fr $(ls *.o)").commands.map(c, c.name)', '["cd", "sudo", "rm", "ls"]'],
      ['shell("rm -fr build").commands.all(c, c.flags == ["-f", "-r"])', "true"],
      ['shell("date > log").writes', '["log"]'],
    ],
    load: unbash.load,
    cost: ([text]) => 64 + (text as string).length * 8,
    run: ([text]) => readShellText(text as string),
  },
];

/**
 * Reads a text into a record.
 *
 * @param shapes the spellings that the reader understands; only a test passes others
 * @throws {EvaluationError} for anything that is not understood
 */
export function readShellText(text: string, shapes: Shapes = understood): Value {
  const reading = emptyReading(shapes);
  try {
    readText(reading, text);
  } catch (error) {
    if (error instanceof EvaluationError) throw error;
    return doubt("the parser gave up");
  }
  const { commands, writes, reads, unknown, variables, functions, scripts, background } = reading;
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

function emptyReading(shapes: Shapes): Reading {
  const reading: Reading = {
    shapes,
    readCode: (text, runner) => readCode(text, runner),
    commands: [],
    writes: new Set(),
    reads: new Set(),
    unknown: new Set(),
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

function commandValue(run: Run): Value {
  const { words } = run;
  return new Map<string, Value>([...Object.entries(run), ["subcommand", words[0] ?? ""]]);
}
