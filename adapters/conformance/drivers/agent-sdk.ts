/** Drives the Claude Agent SDK for TypeScript and for Python: each run is a program with the adapter around the SDK. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { root } from "../../../test/support/gate.ts";
import type { Driver, Ended, HostCase, Plan } from "../case.ts";
import { installed } from "../hosts.ts";
import { runProgram } from "../program.ts";
import { writeProject } from "./project.ts";

const tools: Driver["tools"] = {
  pay: { host: "mcp__kit__pay", gate: "kit.pay" },
  mcp: { host: "mcp__kit__pay", gate: "kit.pay" },
  shell: { host: "Bash", gate: "Bash" },
  agent: { host: "Agent", gate: "Agent" },
  web: { host: "WebSearch", gate: "WebSearch" },
};

const sdk = (): string => join(installed("hosts"), "node_modules", "@anthropic-ai", "claude-agent-sdk");
const python = (): string => join(installed("hosts"), ".venv");

const typescript: Driver = {
  name: "Claude Agent SDK, TypeScript",
  page: "claude-agent-sdk.md",
  version: () => JSON.parse(readFileSync(join(sdk(), "package.json"), "utf8")).version,
  hasPermissions: true,
  tools,
  missing: () => (existsSync(sdk()) ? undefined : "the SDK is not installed: run npm run hosts"),
  excuse,
  open: ({ adapters }) => ({
    run: (plan) => {
      const modules = {
        sdk: join(sdk(), "sdk.mjs"),
        adapter: join(adapters, "claude-agent-sdk.mjs"),
        client: join(root, "clients", "javascript", "svc-gate.mjs"),
      };
      return run(plan, [process.execPath, fileURLToPath(new URL("claude-agent-sdk.mjs", import.meta.url))], modules);
    },
  }),
};

const pythonSdk: Driver = {
  name: "Claude Agent SDK, Python",
  page: "claude-agent-sdk.md",
  version: () => {
    const library = join(python(), "lib");
    const [name = ""] = readdirSync(library);
    const found = readdirSync(join(library, name, "site-packages")).find((each) =>
      /^claude_agent_sdk-.*info$/.test(each),
    );
    return /-([\d.]+)\.dist-info$/.exec(found ?? "")?.[1] ?? "unknown";
  },
  hasPermissions: true,
  tools,
  missing: () =>
    existsSync(join(python(), "bin", "python"))
      ? undefined
      : "the SDK is not installed: it needs python3 with venv and pip",
  excuse,
  open: ({ adapters }) => ({
    run: (plan) => {
      const folders = [adapters, join(root, "clients", "python")];
      const program = fileURLToPath(new URL("claude_agent_sdk_run.py", import.meta.url));
      return run(plan, [join(python(), "bin", "python"), "-B", program], { folders });
    },
  }),
};

export const agentSdk: readonly Driver[] = [typescript, pythonSdk];

const notParked =
  "the adapter does not park runs, because a resumed call can run before the SDK has registered its hooks " +
  "([thread](https://github.com/anthropics/claude-agent-sdk-typescript/issues/370))";

function excuse({ hook = "ours", onEscalate, variant }: HostCase): string | undefined {
  if (onEscalate === "park") return notParked;
  if (variant === "other-protocol") return "the host speaks one protocol";
  const ofProcesses = ["exits-1", "not-there", "killed"];
  return ofProcesses.includes(hook) ? "the hook is a function of the program" : undefined;
}

async function run(plan: Plan, command: readonly string[], modules: object): Promise<Ended> {
  const project = join(plan.folder, "project");
  writeProject(plan);
  const env = {
    ...plan.env,
    ANTHROPIC_BASE_URL: plan.model,
    ANTHROPIC_API_KEY: "not-a-key",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  };
  const input = JSON.stringify({ ...plan, ...modules, env, project });
  const { stdout, stderr } = await runProgram(command, { cwd: project, env, input });
  const detail = `${stdout.slice(-1500)}\n${stderr.slice(-1500)}`;
  const [, ended] = /^ended (done|parked|not-started|lost)$/m.exec(stdout) ?? [];
  return { ended: (ended ?? "lost") as Ended["ended"], detail };
}
