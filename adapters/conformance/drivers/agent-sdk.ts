/** Drives the Claude Agent SDK for TypeScript and for Python. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Driver, Host, HostCase, HostPlace } from "../case.ts";
import { installed } from "../hosts.ts";
import { frameworkNode, noHandoffs, pythonIn } from "./library.ts";
import { writeProject } from "./project.ts";
import { openWorker, program } from "./worker.ts";

const tools: Driver["tools"] = {
  pay: { host: "mcp__kit__pay", gate: "kit.pay" },
  mcp: { host: "mcp__kit__pay", gate: "kit.pay" },
  shell: { host: "Bash", gate: "Bash" },
  agent: { host: "Agent", gate: "Agent" },
  web: { host: "WebSearch", gate: "WebSearch" },
};

const sdk = (): string => join(installed("hosts"), "node_modules", "@anthropic-ai", "claude-agent-sdk");
const python = pythonIn("hosts", "claude-agent-sdk");

const typescript: Driver = {
  name: "Claude Agent SDK, TypeScript",
  page: "claude-agent-sdk.md",
  version: () => JSON.parse(readFileSync(join(sdk(), "package.json"), "utf8")).version,
  hasPermissions: true,
  tools,
  missing: () => (existsSync(sdk()) ? undefined : "the SDK is not installed: run npm run hosts"),
  excuse,
  open: (place) => started([frameworkNode, program("claude-agent-sdk.mjs"), join(sdk(), "sdk.mjs")], place),
};

const pythonSdk: Driver = {
  name: "Claude Agent SDK, Python",
  page: "claude-agent-sdk.md",
  version: python.version,
  hasPermissions: true,
  tools,
  missing: python.missing,
  excuse,
  open: (place) => started([python.path, "-B", program("claude_agent_sdk_run.py")], place),
};

export const agentSdk: readonly Driver[] = [typescript, pythonSdk];

const notParked =
  "the adapter does not park runs, because a resumed call can run before the SDK has registered its hooks " +
  "([thread](https://github.com/anthropics/claude-agent-sdk-typescript/issues/370))";

function excuse({ hook = "ours", onEscalate, variant }: HostCase): string | undefined {
  if (onEscalate === "park") return notParked;
  if (variant === "other-protocol") return "the host speaks one protocol";
  if (variant === "handoff") return noHandoffs;
  const ofProcesses = ["exits-1", "not-there", "killed"];
  return ofProcesses.includes(hook) ? "the hook is a function of the program" : undefined;
}

function started(command: readonly string[], place: HostPlace): Host {
  const worker = openWorker(command, place);
  return {
    ...worker,
    run: (plan) => {
      writeProject(plan);
      const env = {
        ...plan.env,
        ANTHROPIC_BASE_URL: plan.model,
        ANTHROPIC_API_KEY: "not-a-key",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      };
      return worker.run({ ...plan, env });
    },
  };
}
