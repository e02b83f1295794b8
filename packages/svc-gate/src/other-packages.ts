import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { version } from "../../gate/src/server/version.ts";
import { io } from "../../gate/src/cli/io.ts";
import { BadInput } from "../../gate/src/cli/outcome.ts";
import { run } from "../../gate/src/cli/run.ts";

/** The entry points in a clone. `npm run build` replaces each with its package's name. */
const workbenchEntry: string = "../../workbench/src/commands/mod.ts";
const agentEntry: string = "../../agent/src/mod.ts";

interface Workbench {
  readonly addWorkbenchCommands: (program: Command) => void;
}

interface Agent {
  readonly runAgentCommand: (words: readonly string[]) => Promise<number>;
}

/**
 * Adds the commands for authors and for agents' machines, which are in packages of their own. If such a package is not
 * installed, each of its commands prints how to install it.
 */
export async function addCommandsOfOtherPackages(program: Command, args: readonly string[]): Promise<void> {
  const agent = await importIfInstalled<Agent>(agentEntry);
  const names = commandNames();
  for (const name of names.agent) addAgentCommand(program, { name, agent, args });
  // A hook must start quickly.
  if (names.agent.includes(args[0] ?? "")) return;
  const workbench = await importIfInstalled<Workbench>(workbenchEntry);
  if (workbench !== undefined) workbench.addWorkbenchCommands(program);
  else for (const name of names.workbench) addMissing(program, name, "svc-gate-workbench");
}

const agentDescriptions: Readonly<Record<string, string>> = {
  doctor: "start an agent host with a scripted model, and say whether a blocked call ran",
  hook: "ask the gate about a tool call, as an agent host's hook; `hook install` sets it up",
  mcp: "ask the gate before each call of an MCP server's tools",
};

/** The agent's package reads its own words, because it also runs without this one. */
function addAgentCommand(
  program: Command,
  { name, agent, args }: { readonly name: string; readonly agent: Agent | undefined; readonly args: readonly string[] },
): void {
  if (agent === undefined) {
    addMissing(program, name, "svc-gate-agent");
    return;
  }
  passAllWords(program.command(name).description(agentDescriptions[name] ?? "")).action(async () => {
    const call = io();
    call.exitCode = await agent.runAgentCommand(args);
    // A pipe may still have its output, and the process ends now.
    await new Promise<void>((resolve) => call.stdout.write("", () => resolve()));
  });
}

function addMissing(program: Command, name: string, owner: string): void {
  passAllWords(program.command(name).description(`in the package ${owner}, which is not installed`)).action(() =>
    run(() => Promise.reject(new BadInput(howToGet(name, owner)))),
  );
}

function passAllWords(command: Command): Command {
  return command.argument("[words...]").allowUnknownOption().helpOption(false);
}

function howToGet(name: string, owner: string): string {
  const file = `${owner}-${version}.tgz`;
  return `${name} is in the package ${owner}, which is not installed: npm install --prefix . --ignore-scripts ${file}`;
}

async function importIfInstalled<Module>(entry: string): Promise<Module | undefined> {
  try {
    return (await import(entry)) as Module;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_MODULE_NOT_FOUND") return undefined;
    throw error;
  }
}

/** The names of the commands of each other package. */
function commandNames(): Readonly<Record<"agent" | "workbench", readonly string[]>> {
  return JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
}
