import { Command } from "commander";
import { settings, version } from "../gate/mod.ts";
import { run } from "./run.ts";
import { addCommandsOfOtherPackages } from "./other-packages.ts";
import { addApprovals, addGrants } from "./usage/approvals.ts";
import { addContractCommands } from "./usage/contract.ts";
import { addLedgerCommands } from "./usage/ledger.ts";
import { addOperatorCommands } from "./usage/operator.ts";

const program = new Command("svc-gate")
  .description("May this AI agent's tool call run? A verdict with a reason, and a receipt that anyone can verify.")
  .showHelpAfterError("(run svc-gate --help for the commands)")
  .helpCommand(false)
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2));

const serving = program
  .command("serve")
  .description("answer checks over HTTP until SIGTERM or SIGINT")
  .addHelpText(
    "after",
    "\nEvery option can be set by its variable instead; the option takes precedence." +
      "\n\nExample:\n  SVC_MODE=enforce svc-gate serve --port 8787 --mandate mandate.yaml",
  );
for (const { flag, variable, kind, doc, fallback } of settings) {
  serving.option(`--${flag} <${kind}>`, `${doc} (${variable}${fallback === "" ? "" : `, by default ${fallback}`})`);
}
serving.action((options: Record<string, string | undefined>) => {
  const flags = Object.fromEntries(settings.map(({ flag }) => [flag, options[camel(flag)]]));
  return run(async () => (await import("./serve.ts")).serveCommand(flags, print));
});

addContractCommands(program);
addLedgerCommands(program);
addOperatorCommands(program);
addApprovals(program);
addGrants(program);

program
  .command("version")
  .description("print the version")
  .action(() => run(async () => ({ exitCode: 0, text: version })));

// A gate that serves does not load the code of other packages.
if (!program.commands.some((command) => command.name() === process.argv[2])) await addCommandsOfOtherPackages(program);

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function camel(flag: string): string {
  return flag.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** The error for a wrong option names the help of the command that was called. */
function nameOwnHelp(commands: readonly Command[], path: string): void {
  for (const command of commands) {
    const own = `${path} ${command.name()}`;
    command.showHelpAfterError(`(run ${own} --help for its options)`);
    nameOwnHelp(command.commands, own);
  }
}

nameOwnHelp(program.commands, "svc-gate");

await program.parseAsync();
