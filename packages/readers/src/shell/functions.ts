import {
  boolean,
  library,
  listType,
  recordType,
  string,
  type ContractFunction,
} from "../../../core/src/contract/function.ts";
import { commandsMax, textMax } from "./bounds.ts";

const reader = library("the shell parser", async () => {
  const shell = await import("./shell.ts");
  await shell.load();
  return shell;
});

const texts = listType(string, textMax);

const command = recordType({
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
    result: recordType({
      commands: listType(command, commandsMax),
      writes: texts,
      reads: texts,
      unknown: texts,
      variables: texts,
      functions: texts,
      scripts: listType(recordType({ language: string, text: string }), commandsMax),
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
    load: reader.load,
    cost: ([text]) => 64 + (text as string).length * 8,
    run: ([text]) => reader.use().readShellText(text as string),
  },
];
