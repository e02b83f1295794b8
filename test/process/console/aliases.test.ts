/**
 * Goal: the console shows the tool that was judged and the name that was sent, and proves both. Method: a real browser
 * opens the pages of calls that were sent under an alias. Positive control: a gate that serves another tool.
 */
import assert from "node:assert/strict";
import { suite, test, type TestContext } from "node:test";
import { as, aliasedPayments } from "../../support/aliases.ts";
import { large, small } from "../../support/approvals.ts";
import { openBrowser, type Person } from "../../support/browser.ts";
import { keyOf, startConsole } from "../../support/console-kit.ts";
import { control } from "../../support/controls/control.ts";
import type { Mutation } from "../../support/mutation/mutate.ts";

interface Opened {
  readonly anna: Person;
  /** The row of a call under an alias. */
  readonly row: number;
  /** The id of the approval of a call under an alias. */
  readonly approval: string;
}

async function start(t: TestContext, defects?: readonly Mutation[]): Promise<Opened> {
  const desk = await startConsole(t, { contract: aliasedPayments, ...(defects !== undefined && { defects }) });
  const { receipt } = await desk.asks(as("Pay", small));
  const { approval } = await desk.asks(as("send_money", large));
  const anna = await openBrowser(t, desk);
  await anna.signIn(keyOf(desk, "anna"));
  return { anna, row: receipt.seq, approval: approval.id };
}

async function proofOf({ anna, row }: Opened): Promise<string> {
  await anna.opens(`/receipts/${row}`);
  const panel = anna.page.locator("section.panel", { has: anna.page.getByRole("heading", { name: "Proof" }) });
  await panel.locator("ol.proof").waitFor();
  return panel.innerText();
}

suite("aliases in the console", () => {
  test("the receipt, the list and the approval show both names, and the proof is valid", async (t) => {
    const opened = await start(t);
    const { page } = opened.anna;
    assert.match(await proofOf(opened), /The proof is valid/);
    const about = page.locator("section.panel", { has: page.getByRole("heading", { name: "About" }) });
    assert.match(await about.innerText(), /Tool\s+pay\.send\s+Sent as\s+Pay\s/);
    await opened.anna.opens("/receipts?tool_name=pay.send");
    const lines = page.locator("table.receipts tbody tr");
    await lines.first().waitFor();
    assert.match((await lines.allInnerTexts()).join("\n"), /pay\.send sent as Pay/);
    await opened.anna.opens(`/approvals/${opened.approval}`);
    await page.getByText("It sent the tool as send_money.").waitFor();
    assert.equal(await page.locator("h1").innerText(), "pay.send");
  });

  control("positive control: the browser notices an answer that shows another tool than the leaf", async (t) => {
    const defect = { within: "receiptJson", find: "json(call.tool)", put: "'\"pay.legal\"'" };
    assert.match(await proofOf(await start(t, [defect])), /✕ this page shows/);
  });
});
