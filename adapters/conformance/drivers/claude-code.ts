/** Drives Claude Code without a terminal: `claude -p`, with the gate's hook as an address or as a command. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../../test/support/gate.ts";
import type { Driver, Ended, HookKind, HostCase, Plan } from "../case.ts";
import { installed } from "../hosts.ts";
import { runProgram } from "../program.ts";
import { noHandoffs } from "./library.ts";
import { inNamespace, noNamespace } from "./namespace.ts";
import { writeProject } from "./project.ts";

type Form = "http" | "command";

export const claudeCode: readonly Driver[] = (["http", "command"] as const).map((form) => ({
  name: `Claude Code, ${form} hook`,
  page: "claude-code.md",
  version: () => JSON.parse(readFileSync(join(packageFolder(), "package.json"), "utf8")).version,
  hasPermissions: true,
  tools: {
    pay: { host: "mcp__kit__pay", gate: "kit.pay" },
    mcp: { host: "mcp__kit__pay", gate: "kit.pay" },
    shell: { host: "Bash", gate: "Bash" },
    agent: { host: "Agent", gate: "Agent" },
    web: { host: "WebSearch", gate: "WebSearch" },
  },
  missing: () => (existsSync(binary()) ? undefined : "Claude Code is not installed: run npm run hosts"),
  excuse: (one) => excuseOf(one, form),
  open: () => ({ run: (plan) => start(plan, form) }),
}));

function packageFolder(): string {
  return join(installed("hosts"), "node_modules", "@anthropic-ai", "claude-code");
}

function binary(): string {
  return `${packageFolder()}-${process.platform}-${process.arch}/claude`;
}

function excuseOf({ id, hook = "ours", variant, isProtected }: HostCase, form: Form): string | undefined {
  const failing: readonly HookKind[] = ["ours", "absent", "misspelt"];
  if (form === "http" && !failing.includes(hook)) return "an http hook has no process";
  if (variant?.startsWith("fail-open")) return "the hook has no fail-open";
  if (variant === "facts-throw") return "the hook sends no facts of a platform";
  if (id === "D4p") return "the hook is asked once for a call";
  if (variant === "other-protocol") return "the host speaks one protocol";
  if (variant === "handoff") return noHandoffs;
  return isProtected === true ? noNamespace() : undefined;
}

const badCommands: Readonly<Record<Exclude<HookKind, "ours" | "absent" | "misspelt">, string>> = {
  crashes: "kill -SEGV $$",
  "exits-1": "exit 1",
  "not-there": "/nonexistent/svc-gate hook --agent claude-code",
  killed: "kill -KILL $$",
  hangs: "sleep 20",
  "says-nothing": "exit 0",
  "says-text": "echo ALLOW",
  "says-odd-json": `echo '{"verdict":"ALLOW"}'`,
};

async function start(plan: Plan, form: Form): Promise<Ended> {
  const { folder, prompt, isResumed, session, payServer, env } = plan;
  const project = join(folder, "project");
  const [command, ...args] = payServer;
  const settings = join(folder, "settings.json");
  writeFileSync(join(folder, "key"), plan.key, { mode: 0o600 });
  writeFileSync(settings, JSON.stringify(settingsOf(plan, form)));
  writeFileSync(
    join(folder, "mcp.json"),
    JSON.stringify({ mcpServers: { kit: { type: "stdio", command, args, alwaysLoad: true } } }),
  );
  writeProject(plan);
  const own = plan.case.isProtected ? [] : ["--settings", settings];
  const mcp = ["--mcp-config", join(folder, "mcp.json"), "--strict-mcp-config"];
  const run = ["-p", prompt, "--output-format", "json", isResumed ? "--resume" : "--session-id", session];
  const words = [...run, ...mcp, ...own];
  const started = plan.case.isProtected
    ? inNamespace(settings, "/etc/claude-code/managed-settings.json", [binary(), ...words])
    : [binary(), ...words];
  const { stdout, stderr } = await runProgram(started, {
    cwd: project,
    env: {
      ...env,
      ANTHROPIC_BASE_URL: plan.model,
      ANTHROPIC_API_KEY: "not-a-key",
      SVC_GATE_KEY: plan.key,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", // without it the host asks for its maker's address at the start
    },
  });
  return endOf(stdout, stderr);
}

function endOf(stdout: string, stderr: string): Ended {
  const detail = `${stdout.slice(-1500)}\n${stderr.slice(0, 1000)}`;
  try {
    const { subtype, stop_reason, result } = JSON.parse(stdout);
    if (stop_reason === "tool_deferred") return { ended: "parked", detail };
    return { ended: subtype === "success" && result === "The work is done." ? "done" : "lost", detail };
  } catch {
    return { ended: "lost", detail };
  }
}

/** Grant mode: the host starts with nothing allowed, and the hook's `allow` is the grant. */
function settingsOf(plan: Plan, form: Form): object {
  const { hook = "ours", isProtected } = plan.case;
  const ours = { matcher: "", hooks: [hookOf(plan, form, hook)] };
  const event = form === "command" && hook === "misspelt" ? "PreTooluse" : "PreToolUse";
  const after = hook === "ours" ? { PostToolUse: [ours], PostToolUseFailure: [ours] } : {};
  return {
    permissions: { defaultMode: "dontAsk", ...(isProtected && { disableBypassPermissionsMode: "disable" }) },
    ...(isProtected && { allowManagedHooksOnly: true, allowManagedPermissionRulesOnly: true }),
    ...(hook === "absent" ? {} : { hooks: { [event]: [ours], ...after } }),
  };
}

const ways = { refuse: "deny", wait: "wait", park: "defer" } as const;

function hookOf(plan: Plan, form: Form, hook: HookKind): object {
  const { gate, secondsForHook, case: one } = plan;
  const way = ways[one.onEscalate ?? "refuse"];
  const timeout = way === "wait" ? 30 : hook === "hangs" ? 1 : secondsForHook + 1;
  if (form === "http")
    return {
      type: hook === "misspelt" ? "htp" : "http",
      url: `${gate}/hooks/claude-code?on_escalate=${way}${way === "wait" ? "&wait=20" : ""}`,
      headers: { Authorization: "Bearer $SVC_GATE_KEY" },
      allowedEnvVars: ["SVC_GATE_KEY"],
      timeout,
      onFailure: "block",
    };
  const bin = join(root, "packages", "agent", "bin", "svc-gate.mjs");
  const key = join(plan.folder, "key");
  const options = `--url ${gate} --key-file ${key} --timeout ${secondsForHook} --on-escalate ${way} --wait 20`;
  const own = `${process.execPath} ${bin} hook --agent claude-code ${options}`;
  const command = hook === "ours" || hook === "absent" || hook === "misspelt" ? own : badCommands[hook];
  return { type: "command", command, timeout, onFailure: "block" };
}
