/**
 * Goal: the scripted model's answers are what the official client of Anthropic Messages reads. Method: the client that is
 * installed with the hosts asks for a whole and for a streamed answer, and checks what it gets as it does with a real model.
 */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { installed } from "../../../adapters/conformance/hosts.ts";
import { startModel } from "../../../packages/agent/src/model/server.ts";

const scripts = { A: [[{ tool: "pay", arguments: '{"amount":5}' }], "fin"] };

test("the official Anthropic client reads whole and streamed answers of the scripted model", async (t) => {
  const module = join(installed("hosts"), "node_modules", "@anthropic-ai", "sdk", "index.mjs");
  if (!existsSync(module)) return t.skip("the client is not installed: run npm run hosts");
  const { default: Anthropic } = await import(module);
  const model = await startModel(scripts);
  t.after(() => model.stop());
  const client = new Anthropic({ baseURL: model.url, apiKey: "not-a-key", maxRetries: 0 });
  const first = { role: "user", content: "do [[A]]" };
  const request = {
    model: "m",
    max_tokens: 10,
    tools: [{ name: "pay", input_schema: { type: "object" } }],
    messages: [first],
  };
  const expected = [{ type: "tool_use", name: "pay", input: { amount: 5 } }];
  const partsOf = ({ content }: any): object[] => content.map(({ type, name, input }: any) => ({ type, name, input }));
  const whole = await client.messages.create(request);
  assert.deepEqual([partsOf(whole), whole.stop_reason], [expected, "tool_use"]);
  const streamed = await client.messages.stream(request).finalMessage();
  assert.deepEqual([partsOf(streamed), streamed.stop_reason], [expected, "tool_use"]);
  const result = { type: "tool_result", tool_use_id: streamed.content[0].id, content: "paid 5" };
  const messages = [first, { role: "assistant", content: streamed.content }, { role: "user", content: [result] }];
  const last = await client.messages.stream({ ...request, messages }).finalMessage();
  assert.deepEqual([last.content[0].text, last.stop_reason], ["fin", "end_turn"]);
  return undefined;
});
