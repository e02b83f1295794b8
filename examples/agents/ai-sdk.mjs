// An agent of the Vercel AI SDK that pays. A payment that a person must decide parks the run, and the run goes on later.
//
//     npm install ai @ai-sdk/openai zod
//     SVC_KEY=... OPENAI_API_KEY=... node ai-sdk.mjs "Pay 75 USD to the printer"
//     SVC_KEY=... OPENAI_API_KEY=... node ai-sdk.mjs --resume
//
// SVC_URL is the gate's address, and contract.yaml has its rules. run.json keeps a parked run.
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { openai } from "@ai-sdk/openai";
import { generateText, stepCountIs, tool } from "ai";
import { z } from "zod";
import { guarded } from "../../adapters/ai-sdk.mjs";
import { SvcGate } from "../../clients/javascript/svc-gate.mjs";

const file = "run.json";
const words = process.argv.slice(2).join(" ");
if (words === "" || (words === "--resume" && !existsSync(file))) {
  console.error('give the agent a task, such as "Pay 75 USD to the printer", or --resume after it was parked');
  process.exit(2);
}
const isResumed = words === "--resume";
const { session, messages } = isResumed
  ? JSON.parse(readFileSync(file, "utf8"))
  : { session: randomUUID(), messages: [{ role: "user", content: words }] };

const gate = new SvcGate(process.env.SVC_URL ?? "http://127.0.0.1:8787", {
  apiKey: process.env.SVC_KEY,
  sessionId: session,
});
const pay = tool({
  description: "Pays an amount of USD to somebody.",
  inputSchema: z.object({ amount: z.number(), to: z.string() }),
  execute: async ({ amount, to }) => {
    console.log(`paid ${amount} USD to ${to}`);
    return "paid";
  },
});
const tools = guarded({ pay }, { gate, onEscalate: "park" });

if (isResumed) messages.push({ role: "tool", content: requestsIn(messages).map(answered) });
const model = openai(process.env.OPENAI_MODEL ?? "gpt-5");
const result = await generateText({ model, tools, messages, stopWhen: stepCountIs(10) });
const { messages: said } = await result.response;
if (requestsIn(said).length > 0) {
  writeFileSync(file, JSON.stringify({ session, messages: [...messages, ...said] }));
  console.log("A person decides. Approve the call at the gate, then run: node ai-sdk.mjs --resume");
} else {
  rmSync(file, { force: true });
  console.log(result.text);
}

function requestsIn(all) {
  const last = all.findLast(({ role }) => role === "assistant");
  return Array.isArray(last?.content) ? last.content.filter(({ type }) => type === "tool-approval-request") : [];
}

/** This only starts the call again: the gate is asked, and the person's decision there counts. */
function answered({ approvalId }) {
  return { type: "tool-approval-response", approvalId, approved: true };
}
