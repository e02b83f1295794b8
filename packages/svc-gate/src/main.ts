import { Command, CommanderError, type OutputConfiguration } from "commander";
import { version } from "../../gate/src/server/version.ts";
import { io, runWith, type Io } from "../../gate/src/cli/io.ts";
import { run } from "../../gate/src/cli/run.ts";
import { addApprovals, addGrants } from "./usage/approvals.ts";
import { addContractCommands } from "./usage/contract.ts";
import { addLedgerCommands } from "./usage/ledger.ts";
import { addOperatorCommands } from "./usage/operator.ts";

/**
 * Runs the command line once: it reads and writes only what `given` has, and ends nothing but the command.
 *
 * @param args the words after the program's name
 * @returns the exit code
 */
export function main(args: readonly string[], given: Io): Promise<number> {
  // `help keys create` is `keys create --help`.
  const words = args[0] === "help" ? [...args.slice(1), "--help"] : args;
  return runWith(given, async () => {
    try {
      const program = await programFor(words);
      const isKnown = program.commands.some((command) => command.name() === words[0]) || words.length === 1;
      await program.parseAsync(args[0] === "help" && !isKnown ? words.slice(0, 1) : words, { from: "user" });
      return Number(given.exitCode ?? 0);
    } catch (error) {
      if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
      throw error;
    }
  });
}

/** Every command of the program. A gate that serves does not load the code of other packages. */
export async function programFor(args: readonly string[]): Promise<Command> {
  const program = new Command("svc-gate")
    .description("May this AI agent's tool call run? A verdict with a reason, and a receipt that anyone can verify.")
    .showHelpAfterError("(run svc-gate --help for the commands)")
    .helpCommand(false)
    .configureOutput(outputs())
    .exitOverride();
  await addServe(program, args);
  addContractCommands(program);
  addLedgerCommands(program);
  addOperatorCommands(program);
  addApprovals(program);
  addGrants(program);
  program
    .command("version")
    .description("print the version")
    .action(() => run(async () => ({ exitCode: 0, text: version })));
  if (!program.commands.some((command) => command.name() === args[0]))
    await (await import("./other-packages.ts")).addCommandsOfOtherPackages(program, args);
  nameOwnHelp(program.commands, "svc-gate");
  for (const command of program.commands)
    for (const [heading, names] of helpGroups) if (names.includes(command.name())) command.helpGroup(heading);
  return program;
}

/** The order of the commands in the list that `--help` prints. */
const helpGroups: readonly (readonly [heading: string, names: readonly string[]])[] = [
  ["Run a gate:", ["serve", "init", "reload", "stop", "notify", "migrate", "version"]],
  [
    "Write contracts:",
    [
      "check",
      "test",
      "explain",
      "commands",
      "analyze",
      "diff",
      "fmt",
      "lsp",
      "import-tools",
      "schema",
      "replay",
      "report",
    ],
  ],
  ["Keys and people:", ["keys", "persons", "approvals", "grants"]],
  ["The ledger:", ["verify", "prove", "export", "keygen", "backup", "restore", "resume", "erase"]],
  ["Agents:", ["hook", "mcp", "doctor"]],
];

/** The settings are loaded for this command alone. Without them one option stands for all in the list of commands. */
async function addServe(program: Command, [name]: readonly string[]): Promise<void> {
  const serving = program
    .command("serve")
    .description("answer checks over HTTP until SIGTERM or SIGINT")
    .addHelpText(
      "after",
      "\nEvery option can be set by its variable instead; the option takes precedence." +
        "\n\nExample:\n  SVC_MODE=enforce svc-gate serve --port 8787 --mandate mandate.yaml",
    );
  if (name !== serving.name()) return void serving.option("--port <number>");
  const { settings } = await import("../../gate/src/server/start/mod.ts");
  for (const { flag, variable, kind, doc, fallback } of settings) {
    serving.option(`--${flag} <${kind}>`, `${doc} (${variable}${fallback === "" ? "" : `, by default ${fallback}`})`);
  }
  serving.action((options: Record<string, string | undefined>) => {
    const flags = Object.fromEntries(settings.map(({ flag }) => [flag, options[camel(flag)]]));
    return run(async () => {
      const { serveCommand } = await import("../../gate/src/cli/serve.ts");
      return serveCommand(flags, (await import("./serve-hooks.ts")).routeHooks);
    }, true);
  });
}

function camel(flag: string): string {
  return flag.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** Help and errors of the command line go where the call's output goes. */
function outputs(): OutputConfiguration {
  const { stdout, stderr } = io();
  return {
    writeOut: (text) => void stdout.write(text),
    writeErr: (text) => void stderr.write(text),
    getOutHelpWidth: () => widthOf(stdout),
    getErrHelpWidth: () => widthOf(stderr),
  };
}

function widthOf({ isTTY, columns = 80 }: Io["stdout"]): number {
  return isTTY === true ? columns : 80;
}

/** The error for a wrong option names the help of the command that was called. */
function nameOwnHelp(commands: readonly Command[], path: string): void {
  for (const command of commands) {
    const own = `${path} ${command.name()}`;
    command.showHelpAfterError(`(run ${own} --help for its options)`);
    nameOwnHelp(command.commands, own);
  }
}

// The entry of the package calls `main` in the same way; tests start this file.
if (import.meta.main) process.exit(await main(process.argv.slice(2), process));
