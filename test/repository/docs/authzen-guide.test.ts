/**
 * Goal: docs/guides/authzen.md shows a contract that compiles, and the answer that its request gets. Method: the contract
 * runs in a gate. Positive control: with a larger budget the answer is another one.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../../../packages/core/src/wire/mod.ts";
import { startDesk, type Desk } from "../../support/approvals.ts";
import { ask } from "../../support/gate.ts";
import { ShownPage } from "../../support/shown-page.ts";

const guide = new ShownPage("guides/authzen.md", "authzen");

async function answerTo({ address }: Desk, body: string): Promise<any> {
  const init = { method: "POST", headers: { "content-type": "application/json" }, body };
  const { json } = await ask({ address }, "/access/v1/evaluation", init);
  json.context.receipt = { ...json.context.receipt, hash: "HASH", request: "HASH", seq: 1 };
  return json;
}

test("the guide's request gets the guide's answer", async (t) => {
  const desk = await startDesk(t, { contract: guide.block("invoices.yaml") });
  const request = guide.block("request");
  guide.assertShown("answer", JSON.stringify(await answerTo(desk, request), undefined, 2));
  assert.equal((await answerTo(desk, request.replace('"budget_usd": 100', '"budget_usd": 200'))).decision, true);
});

test("the guide's limits are those of the gate", () => {
  assert.match(guide.text, new RegExp(`up to ${limits.evaluationsMax} evaluations`));
  assert.match(guide.text, new RegExp(`at most ${limits.bodyBytesMax.toLocaleString("en")} bytes`));
});
