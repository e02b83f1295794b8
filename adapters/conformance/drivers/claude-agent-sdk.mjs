// Runs of the Claude Agent SDK for TypeScript under the adapter. argv[2] is the SDK's module.
import { join } from "node:path";
import { adapter, serve, settingsOf } from "./harness.mjs";

const { query } = await import(process.argv[2]);
const { guarded } = await adapter("claude-agent-sdk.mjs");

/** Hooks that fail, instead of the adapter's. */
const failing = {
  crashes: () => Promise.reject(new Error("crashed")),
  hangs: () => new Promise((resolve) => setTimeout(resolve, 20_000).unref()),
  "says-nothing": async () => undefined,
  "says-text": async () => "ALLOW",
  "says-odd-json": async () => ({ hookSpecificOutput: { verdict: "ALLOW" } }),
};
const rewrites = async () => ({ hookSpecificOutput: { hookEventName: "PreToolUse", updatedInput: { amount: 900 } } });

serve(async (plan) => {
  const { hook = "ours" } = plan.case;
  let options;
  try {
    options = optionsOf(plan);
  } catch (error) {
    return ["not-started", error];
  }
  if (hook === "absent") delete options.hooks.PreToolUse;
  else if (hook === "misspelt") options.hooks = { PreTooluse: options.hooks.PreToolUse };
  else if (hook !== "ours")
    // short wait: one of these hooks never ends
    options.hooks.PreToolUse = [{ ...options.hooks.PreToolUse[0], hooks: [failing[hook]], timeout: 1 }];

  const found = [];
  for await (const message of query({ prompt: plan.prompt, options }))
    if (message.type === "result") found.push(message);
  return [found.some(({ result }) => result === "The work is done.") ? "done" : "lost", JSON.stringify(found)];
});

function optionsOf(plan) {
  const { variant } = plan.case;
  const [command, ...args] = plan.payServer;
  const options = {
    cwd: join(plan.folder, "project"),
    env: plan.env,
    mcpServers: { kit: { type: "stdio", command, args, alwaysLoad: true } },
    ...(plan.isResumed ? { resume: plan.session } : { sessionId: plan.session }),
    ...(variant === "second-hook" && { hooks: { PreToolUse: [{ hooks: [rewrites] }] } }),
    ...(variant === "provider-tool" && { tools: ["Bash", "WebSearch"] }),
    ...(variant === "fail-open-without-grant" && { permissionMode: "dontAsk", allowedTools: ["mcp__kit__pay"] }),
  };
  const settings = settingsOf({ ...plan, case: { ...plan.case, hook: "ours" } });
  return guarded(options, { ...settings, grant: variant !== "fail-open-without-grant" });
}
