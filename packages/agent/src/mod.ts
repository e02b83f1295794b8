/**
 * The commands for machines where agents run: `hook`, `mcp` and `doctor`.
 *
 * Promises: each command asks a gate over HTTP, and runs nothing that the gate did not allow. `hook` needs one file and
 * no other package.
 *
 * Does not decide: the gate does. Does not import the server, so that an agent's machine does not need it.
 */

/** What a command needs: the words after its name. It resolves to the exit code. */
export type AgentCommand = (words: readonly string[]) => Promise<number>;

/** Each command is loaded when it is called, because a hook must start quickly. */
const commands: Readonly<Record<string, () => Promise<AgentCommand>>> = {
  mcp: async () => (await import("./mcp/command.ts")).mcp,
};

const usage = `usage: svc-gate <command>

For agents' machines:
  mcp   ask the gate before each call of an MCP server's tools
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
  if (load !== undefined) return (await load())(rest);
  const isHelp = ["--help", "-h"].includes(name);
  (isHelp ? process.stdout : process.stderr).write(usage);
  return isHelp ? 0 : 2;
}
