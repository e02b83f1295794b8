// An agent of the Claude Agent SDK that pays. If a person must decide, the run ends with its session, and goes on later.
//
//     npm install @anthropic-ai/claude-agent-sdk zod
//     SVC_KEY=... ANTHROPIC_API_KEY=... node claude-agent-sdk.mjs "Pay 75 USD to the printer"
//     SVC_KEY=... ANTHROPIC_API_KEY=... node claude-agent-sdk.mjs --resume
//
// SVC_URL is the gate's address, and contract.yaml has its rules. run.json keeps the session of a run that waits.
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { createSdkMcpServer, query, tool } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";
import { guarded } from "../../adapters/claude-agent-sdk.mjs";
import { SvcGate } from "../../clients/javascript/svc-gate.mjs";

const file = "run.json";
const words = process.argv.slice(2).join(" ");
if (words === "" || (words === "--resume" && !existsSync(file))) {
  console.error('give the agent a task, such as "Pay 75 USD to the printer", or --resume after a person must decide');
  process.exit(2);
}
const isResumed = words === "--resume";
const { session } = isResumed ? JSON.parse(readFileSync(file, "utf8")) : { session: randomUUID() };
const prompt = isResumed ? "A person has decided. Try the payment again." : words;

const gate = new SvcGate(process.env.SVC_URL ?? "http://127.0.0.1:8787", {
  apiKey: process.env.SVC_KEY,
  sessionId: session,
});
const pay = tool(
  "pay",
  "Pays an amount of USD to somebody.",
  { amount: z.number(), to: z.string() },
  async ({ amount, to }) => {
    console.log(`paid ${amount} USD to ${to}`);
    return { content: [{ type: "text", text: "paid" }] };
  },
);
const options = {
  mcpServers: { agent: createSdkMcpServer({ name: "agent", tools: [pay], alwaysLoad: true }) },
  tools: [],
  ...(isResumed ? { resume: session } : { sessionId: session }),
};

/** The gate's client, which also notes whether a person must decide. */
let waits = false;
const noting = {
  settle: gate.settle,
  outcome: gate.outcome,
  check: async (...call) => {
    const verdict = await gate.check(...call);
    waits = verdict.escalated;
    return verdict;
  },
};
for await (const message of query({ prompt, options: guarded(options, { gate: noting }) }))
  if (message.type === "result") console.log(message.result);
if (waits) {
  writeFileSync(file, JSON.stringify({ session }));
  console.log("A person decides. Approve the call at the gate, then run: node claude-agent-sdk.mjs --resume");
} else rmSync(file, { force: true });
