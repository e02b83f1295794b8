// One run of the Claude Agent SDK for TypeScript under the adapter. The plan comes on stdin; the last line says how it ended.
import { text } from "node:stream/consumers";

const plan = JSON.parse(await text(process.stdin));
const { query } = await import(plan.sdk);
const { guarded } = await import(plan.adapter);
const { SvcGate } = await import(plan.client);
const { hook = "ours", variant, onEscalate } = plan.case;
const [command, ...args] = plan.payServer;

const failing = {
  crashes: () => Promise.reject(new Error("crashed")),
  hangs: () => new Promise((resolve) => setTimeout(resolve, 20_000).unref()),
  "says-nothing": async () => undefined,
  "says-text": async () => "ALLOW",
  "says-odd-json": async () => ({ hookSpecificOutput: { verdict: "ALLOW" } }),
};
const rewrites = async () => ({ hookSpecificOutput: { hookEventName: "PreToolUse", updatedInput: { amount: 900 } } });

const gate = new SvcGate(plan.gate, {
  apiKey: plan.key,
  sessionId: plan.session,
  timeoutMs: plan.secondsForHook * 500,
  retries: 0,
  failOpen: variant?.startsWith("fail-open") ?? false,
});
const options = {
  cwd: plan.project,
  env: plan.env,
  mcpServers: { kit: { type: "stdio", command, args, alwaysLoad: true } },
  ...(plan.isResumed ? { resume: plan.session } : { sessionId: plan.session }),
  ...(variant === "second-hook" && { hooks: { PreToolUse: [{ hooks: [rewrites] }] } }),
  ...(variant === "provider-tool" && { tools: ["Bash", "WebSearch"] }),
  ...(variant === "fail-open-without-grant" && { permissionMode: "dontAsk", allowedTools: ["mcp__kit__pay"] }),
};
const settings = {
  gate,
  onEscalate,
  waitMs: 20_000,
  grant: variant !== "fail-open-without-grant",
  ...(variant === "facts-throw" && {
    facts: () => {
      throw new Error("no facts");
    },
  }),
};

function started() {
  try {
    return guarded(options, settings);
  } catch (error) {
    console.log(`${String(error)}\nended not-started`);
    return process.exit();
  }
}

const all = started();
if (hook === "absent") delete all.hooks.PreToolUse;
else if (hook === "misspelt") all.hooks = { PreTooluse: all.hooks.PreToolUse };
else if (hook !== "ours") all.hooks.PreToolUse = [{ ...all.hooks.PreToolUse[0], hooks: [failing[hook]], timeout: 1 }];

const found = [];
for await (const message of query({ prompt: plan.prompt, options: all }))
  if (message.type === "result") found.push(message);
const isParked = found.at(-1)?.stop_reason === "tool_deferred";
const isDone = found.some(({ result }) => result === "The work is done.");
console.log(JSON.stringify(found));
console.log(`ended ${isParked ? "parked" : isDone ? "done" : "lost"}`);
process.exit();
