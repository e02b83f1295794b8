/** What the drivers of agent frameworks share. A framework runs in the user's program and has no permissions of its own. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Driver, HostCase, HookKind } from "../case.ts";
import { nodeOf } from "../../../clients/conformance/runtimes.ts";
import { installed } from "../hosts.ts";

export const noHandoffs = "a sub-agent is a tool here: it does not take the conversation over";

interface Names {
  /** The framework's name of the tool that runs a sub-agent. */
  readonly agent: string;
  /** A tool that the model's provider runs. */
  readonly web: string;
  /** The framework's name of the MCP server's tool. */
  readonly mcp: string;
}

/** Returns the names of the tools in the framework and at the gate. */
export function toolsOf({ agent, web, mcp }: Names): Driver["tools"] {
  return {
    pay: { host: "pay", gate: "pay" },
    mcp: { host: mcp, gate: "kit.pay" },
    shell: { host: "shell", gate: "shell" },
    agent: { host: agent, gate: agent },
    web: { host: web, gate: web },
  };
}

export interface Python extends Pick<Driver, "version" | "missing"> {
  /** The path of the interpreter. */
  readonly path: string;
}

/** Returns the Python of a folder of the kit. Its version is that of the named distribution. */
export function pythonIn(folder: Parameters<typeof installed>[0], distribution: string): Python {
  const home = join(installed(folder), ".venv");
  const start = `${distribution.replaceAll("-", "_")}-`;
  const found = (): string | undefined => {
    const library = join(home, "lib");
    const names = existsSync(library) ? readdirSync(library) : [];
    const all = names.flatMap((name) => readdirSync(join(library, name, "site-packages")));
    return all.find((name) => name.startsWith(start) && /^[\d.]+\.dist-info$/.test(name.slice(start.length)));
  };
  return {
    path: join(home, "bin", "python"),
    version: () => found()?.slice(start.length).replace(".dist-info", "") ?? "unknown",
    missing: () => (found() === undefined ? notInstalled : undefined),
  };
}

export interface JavaScript extends Pick<Driver, "version" | "missing"> {
  /** The folder with the packages. */
  readonly folder: string;
}

/** The oldest Node that all frameworks support, if npm brings it for this platform. */
export const frameworkNode: string = nodeOf(22) ?? process.execPath;

/** Returns the folder of the JavaScript frameworks. Its version is that of the named package. */
export function javascriptIn(name: string): JavaScript {
  const folder = installed("libraries/javascript");
  const manifest = join(folder, "node_modules", name, "package.json");
  return {
    folder,
    version: () => JSON.parse(readFileSync(manifest, "utf8")).version,
    missing: () => (existsSync(manifest) ? undefined : notInstalled),
  };
}

const notInstalled = "the framework is not installed: run npm run hosts";

const kinds: readonly HookKind[] = ["ours", "absent", "crashes", "says-nothing", "says-text", "says-odd-json"];

/** Returns why a case applies to no framework; undefined if it may. In cases C1 to C8 the gate's client is what fails. */
export function excuseOf({ id, hook = "ours", project, isProtected, variant }: HostCase): string | undefined {
  if (!kinds.includes(hook)) return "the adapter is code of the program, and has no process or settings of its own";
  if ((project !== undefined && variant === undefined) || isProtected === true)
    return "the framework reads no files of a project";
  if (variant === "fail-open") return "the framework has no permissions of its own";
  if (variant === "handoff") return noHandoffs;
  if (id === "D6") return "the framework runs no commands in the background";
  return undefined;
}
