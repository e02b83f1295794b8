import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { version } from "../gate/mod.ts";
import { BadInput } from "./outcome.ts";
import { run } from "./run.ts";

/** The entry point of the workbench in a clone. `npm run build` replaces it with the package's name. */
const commands: string = "../../../workbench/src/commands/mod.ts";

interface Workbench {
  readonly addWorkbenchCommands: (program: Command) => void;
}

/**
 * Adds the commands that only authors use. If their package is not installed, each of them prints how to install it.
 */
export async function addWorkbenchCommands(program: Command): Promise<void> {
  const workbench = await findWorkbench();
  if (workbench !== undefined) {
    workbench.addWorkbenchCommands(program);
    return;
  }
  for (const name of commandNames())
    program
      .command(name)
      .description("in the package svc-gate-workbench, which is not installed")
      .argument("[words...]")
      .allowUnknownOption()
      .helpOption(false)
      .action(() => run(() => Promise.reject(new BadInput(howToGet(name)))));
}

function howToGet(name: string): string {
  const file = `svc-gate-workbench-${version}.tgz`;
  return `${name} is in the package svc-gate-workbench, which is not installed: npm install --prefix . --ignore-scripts ${file}`;
}

async function findWorkbench(): Promise<Workbench | undefined> {
  try {
    return (await import(commands)) as Workbench;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_MODULE_NOT_FOUND") return undefined;
    throw error;
  }
}

function commandNames(): readonly string[] {
  const manifest = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(manifest) as { readonly workbench: readonly string[] }).workbench;
}
