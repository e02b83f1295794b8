// A parked call runs without its hook when a run of the Claude Agent SDK resumes: node deferred-before-hooks.mjs
//
// The hook defers the first time and denies the second time. Claude Code runs the parked call as soon as it starts again. Here a
// wrapper delays its input until the tool has run, or for 20 s: as on a busy machine, the SDK has not registered the hook yet. The
// host's permissions allow the tool. It prints how often the hook was asked after the resume, and whether the tool ran.
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startModel } from "../../../packages/agent/src/model/server.ts";
import { installed } from "../hosts.ts";

const modules = join(installed("hosts"), "node_modules", "@anthropic-ai");
const binary = join(modules, `claude-agent-sdk-${process.platform}-${process.arch}`, "claude");
const { query } = await import(join(modules, "claude-agent-sdk", "sdk.mjs"));
const model = await startModel({ A: [[{ tool: "mcp__kit__pay", arguments: '{"amount":75}' }], "The work is done."] });
const folder = mkdtempSync(join(tmpdir(), "deferred-"));
const witness = join(folder, "witness.txt");
const wrapper = join(folder, "late.mjs");
mkdirSync(join(folder, "home"));
writeFileSync(
  wrapper,
  `import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
const child = spawn(${JSON.stringify(binary)}, process.argv.slice(2), { stdio: ["pipe", "inherit", "inherit"] });
child.on("exit", (code) => process.exit(code ?? 1));
const isOver = () => !process.argv.some((word) => word.startsWith("--resume")) || existsSync(${JSON.stringify(witness)});
for (let waits = 0; waits < 200 && !isOver(); waits += 1) await new Promise((resolve) => setTimeout(resolve, 100));
process.stdin.pipe(child.stdin);
`,
);

/** Runs the host with a hook that makes this decision. Returns the session and how often the hook was asked. */
async function run(permissionDecision, prompt, more) {
  const found = { asked: 0, session: "" };
  const hook = async () => {
    found.asked += 1;
    return { hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision, permissionDecisionReason: "no" } };
  };
  const options = {
    cwd: folder,
    pathToClaudeCodeExecutable: wrapper,
    mcpServersDelivery: "argv",
    env: {
      PATH: process.env.PATH,
      HOME: join(folder, "home"),
      ANTHROPIC_BASE_URL: model.url,
      ANTHROPIC_API_KEY: "not-a-key",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    },
    permissionMode: "dontAsk",
    allowedTools: ["mcp__kit__pay"],
    settingSources: [],
    hooks: { PreToolUse: [{ hooks: [hook], onFailure: "block" }] },
    mcpServers: { kit: { type: "stdio", command: process.execPath, args: [payServer, witness], alwaysLoad: true } },
    ...more,
  };
  for await (const message of query({ prompt, options }))
    if (message.type === "result") found.session = message.session_id;
  return found;
}

const payServer = fileURLToPath(new URL("../pay-server.mjs", import.meta.url));
const { session } = await run("defer", "[[A]]", {});
const { asked } = await run("deny", "", { resume: session });
console.log(
  `after the resume the hook was asked ${asked} times; the tool ${existsSync(witness) ? "ran" : "did not run"}`,
);
await model.stop();
rmSync(folder, { recursive: true, force: true });
process.exit();
