/**
 * Goal: the page Explain starts from a call of a tool in force, and shows what the compiler says as it says it. Method:
 * a real browser, and the answers of the gate beside the page. Positive control: a page that shows a diagnostic as one
 * line.
 */
import assert from "node:assert/strict";
import { suite, test, type TestContext } from "node:test";
import { openBrowser, plant, type Person } from "../../support/browser.ts";
import { keyOf, parksAny, startConsole } from "../../support/console-kit.ts";
import { control } from "../../support/controls/control.ts";
import { ask } from "../../support/gate.ts";
import type { Desk } from "../../support/approvals.ts";
import type { Mutation } from "../../support/mutation/mutate.ts";
import { eventually } from "../../support/patience.ts";

async function start(t: TestContext, defect?: Mutation): Promise<readonly [Desk, Person]> {
  const desk = await startConsole(t);
  const otto = await openBrowser(t, desk);
  if (defect !== undefined) await plant(otto, "pages/explain", defect);
  await otto.signIn(keyOf(desk, "otto"));
  return [desk, otto];
}

async function explain({ page }: Person): Promise<void> {
  await page.getByRole("button", { name: "Explain" }).click();
  await page.getByRole("button", { name: "Explain", exact: true }).waitFor();
}

/** Waits until the field of the call has a text. */
async function shows({ page }: Person, text: string): Promise<void> {
  await eventually(`the call has ${text}`, async () => (await page.locator("#call").inputValue()).includes(text));
}

const wrong = [
  "contract: c",
  "tools: { pay: { input: { type: object, additionalProperties: false }, otherwise: ALLOW } }",
  "rules:",
  "  - rule: r",
  "    on: pay",
  "    when: input.amuont > 10 # a\u200bcomment",
  "    verdict: BLOCK",
  "    reason: no",
].join("\n");

/** The diagnostics stay in their lines, with the caret below the fault, and hidden characters are marks. */
async function diagnostics(t: TestContext, defect?: Mutation): Promise<void> {
  const [desk, otto] = await start(t, defect);
  otto.expects(/status of 422/);
  await otto.opens("/explain");
  await otto.page.getByLabel(/A contract to try/).fill(wrong);
  await explain(otto);
  const alert = otto.page.getByRole("alert");
  await alert.waitFor();
  const { json } = await ask(desk, "/explain", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ call: { tool_name: "pay", tool_input: {} }, contract: wrong }),
  });
  assert.match(json.detail, /\n/);
  assert.equal((await alert.innerText()).trimEnd(), json.detail.replaceAll("\u200b", String.raw`\u200b`).trimEnd());
}

suite("the page Explain", () => {
  test("starts from a call of a tool in force, which its contract takes", async (t) => {
    const [, otto] = await start(t);
    await otto.opens("/explain");
    const { page } = otto;
    const choice = page.getByLabel("Start with a call of");
    const tools = await choice.locator("option").allInnerTexts();
    assert.ok(tools.includes("pay.send") && tools.includes("any.call"), tools.join());
    for (const tool of [tools[0], "pay.legal", "any.call"]) {
      await choice.selectOption(tool ?? "");
      await shows(otto, `"tool_name": "${tool}"`);
      const answer = page.waitForResponse((response) => response.url().endsWith("/api/explain"));
      await explain(otto);
      const { mismatch, reason } = await (await answer).json();
      assert.equal(mismatch, null, reason);
      await page
        .getByRole("status")
        .getByText(reason.replace(/^Svc: /, ""))
        .waitFor();
    }
  });

  test("starts from a receipt with its own characters, and goes back to a tool", async (t) => {
    const [desk, otto] = await start(t);
    await parksAny(desk, '{"amount":1.10,"big":90071992547409931}');
    const { receipts } = (await ask(desk, "/receipts?limit=1")).json;
    await otto.opens(`/explain?receipt=${receipts[0].seq}`);
    const body = otto.page.getByLabel("The body of a check");
    await shows(otto, "90071992547409931");
    assert.match(await body.inputValue(), /"amount": 1\.10/);
    await otto.page.getByLabel("Start with a call of").selectOption("pay.legal");
    await shows(otto, "pay.legal");
  });

  test("keeps what a person types before the example has come, until another tool is chosen", async (t) => {
    const [, otto] = await start(t);
    let typed: Promise<void> | undefined; // Two requests at once would type into each other.
    await otto.page.route("**/rules/example*", async (route) => {
      await (typed ??= otto.page.locator("#call").fill("typed"));
      await route.continue();
    });
    await otto.opens("/explain");
    const choice = otto.page.getByLabel("Start with a call of");
    await choice.locator("option").first().waitFor({ state: "attached" });
    assert.equal(await otto.page.locator("#call").inputValue(), "typed");
    await otto.page.unroute("**/rules/example*");
    await choice.selectOption("pay.legal");
    await shows(otto, '"tool_name": "pay.legal"');
  });

  test("shows the compiler's diagnostics as they are", (t) => diagnostics(t));

  control("positive control: a diagnostic in one line is noticed", async (t) => {
    const defect = { within: "Result", find: "SourceText", put: "Text" };
    await assert.rejects(diagnostics(t, defect), /strictly equal/);
  });
});
