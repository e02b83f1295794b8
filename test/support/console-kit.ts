import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { check } from "./gate.ts";
import { large, naming, payments, small, startDesk, type Desk, type DeskOptions } from "./approvals.ts";

/** Payments whose approver may grant more of them, and a tool that takes any input and always asks a person. */
export const consoleContract = payments
  .replace(
    "approval: { by: [finance] }",
    "approval: { by: [finance], grants: { at_most: 1h, uses: 5, pin: [input.to] } }",
  )
  .replace("> 2500", "> 250000")
  .replace(
    "counters:\n",
    "  any.call: { input: { type: object, additionalProperties: true }, otherwise: ESCALATE }\ncounters:\n",
  );

/** Starts a gate whose people see every page. `otto` is an administrator, and decides nothing. */
export async function startConsole(t: TestContext, options: DeskOptions = {}): Promise<Desk> {
  const scopes = ["approve", "receipts", "rules"];
  const desk = await startDesk(t, { contract: consoleContract, scopes, ...options });
  const name = { name: "otto-laptop", scopes: ["admin", "receipts", "rules"] };
  const { json, text } = await desk.operates("/admin/keys", name);
  assert.ok(typeof json.key === "string", text);
  return { ...desk, keys: { ...desk.keys, otto: json.key } };
}

/** The key of a person. */
export function keyOf({ keys }: Desk, person: string): string {
  return keys[person] ?? assert.fail(`${person} has no key`);
}

/** A call that waits for a person of finance. Returns its approval. */
export async function parks(desk: Desk, input: object, more: object = {}): Promise<string> {
  const answer = await desk.asks({ ...large, tool_input: { amount: 1200, to: "anna", ...input }, ...more });
  assert.equal(answer.verdict, "ESCALATE", answer.reason);
  return answer.approval.id;
}

/** A call of any input that waits for a person. Returns its approval. */
export async function parksAny(desk: Desk, input: object | string, more: object = {}): Promise<string> {
  const head = JSON.stringify({ tool_name: "any.call", session_id: "s9", ...more }).slice(0, -1);
  const text = typeof input === "string" ? input : JSON.stringify(input);
  const { json, text: said } = await check(desk, `${head},"tool_input":${text}}`);
  assert.equal(json.verdict, "ESCALATE", said);
  return json.approval.id;
}

/** The state of most installations after some weeks: a bit of everything that the pages show. */
export async function fill(desk: Desk): Promise<void> {
  for (let at = 0; at < 6; at += 1)
    await desk.asks({ ...small, tool_input: { amount: 5 + at, to: "anna" }, session_id: `s${at % 3}` });
  await desk.asks({ ...small, tool_input: { amount: 5, to: "nobody" } });
  const used = await parks(desk, { amount: 1300 });
  assert.equal((await desk.decides("anna", used, "approve")).status, 200);
  await desk.asks(naming(used, { ...large, tool_input: { amount: 1300, to: "anna" } }));
  assert.equal((await desk.decides("bob", await parks(desk, { amount: 1400 }), "deny")).status, 200);
  const source = await parks(desk, { amount: 1500, to: "ben" });
  const { json } = await desk.as("anna", `/approvals/${source}`);
  const grant = { approval: source, hash: json.hash, amounts: { "input.amount": 4000 } };
  assert.equal((await desk.as("anna", "/grants", grant)).status, 201);
  await parks(desk, { amount: 1600, note: "for the boat" });
  await parks(desk, { amount: 1700, note: "hidden\u200Btext" }, { session_id: "s2" });
  const legal = { tool_name: "pay.legal", tool_input: { case: "A-1" }, session_id: "s3" };
  const { approval } = await desk.asks(legal);
  assert.equal((await desk.decides("bob", approval.id, "approve")).status, 200);
}
