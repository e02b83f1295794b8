import { spawnSync } from "node:child_process";
import type { CommandTable, Form } from "../../../readers/src/tables.ts";
import { io } from "../../../gate/src/cli/mod.ts";

/** An option of a form that the installed program does not describe. */
export interface DriftedOption {
  readonly command: string;
  readonly option: string;
}

/** What the help of the installed programs says about the options of a table. */
export interface PackDrift {
  readonly options: readonly DriftedOption[];
  /** Commands whose help was read, and those that are not installed or say nothing. */
  readonly compared: readonly string[];
  readonly silent: readonly string[];
}

/** Compares the options of a table with the help of the installed programs. It runs each program with `--help` or `-h`. */
export function findDrift(table: CommandTable): PackDrift {
  const [options, compared, silent]: [DriftedOption[], string[], string[]] = [[], [], []];
  for (const [command, forms] of Map.groupBy(table.forms, commandOf)) {
    const names = new Set(forms.flatMap(optionNames));
    if (names.size === 0) continue;
    const help = helpOf(command.split(" "));
    if (help === undefined) silent.push(command);
    else {
      compared.push(command);
      options.push(...[...names].filter((name) => !describes(help, name)).map((option) => ({ command, option })));
    }
  }
  return { options, compared, silent };
}

/** The words of a command that select its help: `git log`, and no option. */
function commandOf({ run }: Form): string {
  return run.filter((word) => !word.startsWith("-")).join(" ");
}

function optionNames({ options, marked }: Form): readonly string[] {
  return [...options, ...marked]
    .flatMap(({ names }) => names)
    .filter((name) => /^--?[A-Za-z0-9]/.test(name) && name !== "-NUMBER");
}

function helpOf([program = "", ...words]: readonly string[]): string | undefined {
  const texts = ["--help", "-h"].map((option) => {
    // git shows a manual page for `--help`, and every program may wait for input.
    const { stdout, stderr } = spawnSync(program, [...words, option], {
      encoding: "utf8",
      timeout: 5000,
      input: "",
      env: { ...io().env, MANPAGER: "cat", PAGER: "cat", GIT_PAGER: "cat", TERM: "dumb" },
    });
    return `${stdout ?? ""}\n${stderr ?? ""}`;
  });
  const text = texts.join("\n");
  return /(?:^|\s)--?[A-Za-z]/m.test(text) ? text : undefined;
}

/** Is the option in the text, alone, as `[no-]name`, or as a letter among others? */
function describes(help: string, option: string): boolean {
  const bare = option.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const long = option.startsWith("--no-")
    ? `|--\\[no-\\]${bare.slice(5)}`
    : option.startsWith("--")
      ? `|--\\[no-\\]${bare.slice(2)}`
      : "";
  return new RegExp(`(?<![\\w-])(?:${bare}${long})(?![\\w-])`).test(help);
}
