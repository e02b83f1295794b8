/**
 * The commands for machines where agents run: `hook`, `mcp` and `doctor`.
 *
 * Promises: `hook` and `mcp` ask a gate over HTTP, and let nothing run that the gate did not allow. `hook` needs one file
 * and no other package.
 *
 * Does not: decide, or import the server. An agent's machine does not need it.
 */
import { InputError } from "./bad-input.ts";

/** What a command needs: the words after its name. It resolves to the exit code. */
export type AgentCommand = (words: readonly string[]) => Promise<number>;

/** Each command is loaded when it is called, because a hook must start quickly. */
const commands: Readonly<Record<string, () => Promise<AgentCommand>>> = {
  doctor: async () => (await import("./doctor/command.ts")).doctorCommand,
  hook: async () => hookOrInstall,
  mcp: async () => (await import("./mcp/command.ts")).mcp,
};

const usage = `usage: svc-gate <command>

For agents' machines:
  doctor         start an agent host with a scripted model, and say whether a blocked call ran
  hook           ask the gate about a tool call, as an agent host's hook
  hook install   set up the gate in an agent host
  mcp            ask the gate before each call of an MCP server's tools
Each command has --help.
`;

/**
 * Runs a command of this package.
 *
 * @param words the command's name and its words
 * @returns the exit code: 0 done, 1 failed, 2 for a wrong command line
 */
export async function runAgentCommand(words: readonly string[]): Promise<number> {
  const [name = "", ...rest] = words;
  const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (load !== undefined) return run(await load(), rest);
  const isHelp = ["--help", "-h"].includes(name);
  if (!isHelp && name !== "") process.stderr.write(`svc-gate: this package has no command ${JSON.stringify(name)}\n`);
  (isHelp ? process.stdout : process.stderr).write(usage);
  return isHelp ? 0 : 2;
}

async function run(command: AgentCommand, words: readonly string[]): Promise<number> {
  try {
    return await command(words);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    process.stderr.write(`svc-gate: ${error.message}\n`);
    return 2;
  }
}

async function hookOrInstall([first, ...rest]: readonly string[]): Promise<number> {
  if (first === "install") return (await import("./install/command.ts")).installCommand(rest);
  await (await import("./hook.ts")).hook(first === undefined ? [] : [first, ...rest]);
  return Number(process.exitCode ?? 0);
}
