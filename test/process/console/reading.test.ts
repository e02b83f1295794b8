/**
 * Goal: the pages that only show things show what the gate has recorded, and change nothing. Method: a real browser
 * follows every link, filters and pages through receipts, proves a row, and compares charts and tables with the gate's
 * answers. Positive controls: a gate that serves a changed row, and a page that writes.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { parseVerifierKey, verifyProof } from "../../../packages/core/src/record/tree/mod.ts";
import { small, type Desk } from "../../support/approvals.ts";
import { openBrowser, plant, settled, type Person } from "../../support/browser.ts";
import { consoleContract, fill, keyOf, parks, startConsole } from "../../support/console-kit.ts";
import { control } from "../../support/controls/control.ts";
import { ask, key } from "../../support/gate.ts";
import type { Mutation } from "../../support/mutation/mutate.ts";

async function start(t: TestContext, who = "anna", defects?: readonly Mutation[]): Promise<readonly [Desk, Person]> {
  const desk = await startConsole(t, defects === undefined ? {} : { defects });
  await fill(desk);
  const person = await openBrowser(t, desk);
  await person.signIn(keyOf(desk, who));
  return [desk, person];
}

/** A page that stops a tool when it is opened. */
const writing: Mutation = {
  within: "ask",
  first: [
    'const stop = JSON.stringify({ scope: { tools: ["pay.legal"] }, why: "x" });',
    'if (path.startsWith("/approvals/apr_")) void askAt(`${base}/api/admin/stop`, { body: stop });',
  ].join(" "),
};

/** Follows each link of each page that it finds, and returns the addresses and the number of rows before and after. */
async function crawl(
  t: TestContext,
  writes = false,
): Promise<{ readonly seen: readonly string[]; readonly rows: readonly number[] }> {
  const desk = await startConsole(t);
  await fill(desk);
  const anna = await openBrowser(t, desk);
  if (writes) await plant(anna, "gate", writing);
  await anna.signIn(keyOf(desk, "anna"));
  const before = await desk.rows();
  const shapes = new Map<string, string>();
  const open = ["/console"];
  const posts: string[] = [];
  anna.page.on("request", (request) => {
    const isRead = request.method() === "GET" || request.url().endsWith("/api/explain");
    if (!isRead) posts.push(`${request.method()} ${request.url()}`);
  });
  for (let path = open.pop(); path !== undefined && posts.length === 0; path = open.pop()) {
    // One page of each kind is enough, such as one receipt of all receipts.
    const shape = path
      .replaceAll(/apr_\w+/g, "APPROVAL")
      .replaceAll(/=[^&]+/g, "=VALUE")
      .replaceAll(/\/\d+/g, "/ROW");
    if (shapes.has(shape)) continue;
    shapes.set(shape, path);
    await anna.page.goto(desk.address + path);
    await settled(anna.page);
    const links = await anna.page.evaluate<string[]>(
      `[...document.querySelectorAll("a[href]")].map((each) => each.getAttribute("href"))`,
    );
    open.push(...links.filter((each) => each.startsWith("/console")));
  }
  assert.deepEqual(posts, []);
  return { seen: [...shapes.keys()].toSorted(), rows: [before, await desk.rows()] };
}

/** The number of rows, and the words of the proof of a row. */
async function proofOf(t: TestContext, defects?: readonly Mutation[]): Promise<string> {
  const [desk, anna] = await start(t, "anna", defects);
  for (let more = 0; more < 40; more += 1) await desk.asks(small);
  await anna.opens("/receipts/9");
  const panel = anna.page.locator("section.panel", { has: anna.page.getByRole("heading", { name: "Proof" }) });
  await panel.locator("ol.proof").waitFor();
  return panel.innerText();
}

function reload(desk: Desk, contract: string): Promise<unknown> {
  writeFileSync(join(desk.folder, "contracts", "pay.yaml"), contract);
  return desk.operates("/admin/reload", {});
}

/** What a gate may serve that is not in its ledger, and the step of the proof that fails. */
const changes: readonly (readonly [what: string, defect: Mutation, complaint: RegExp])[] = [
  [
    "a changed row",
    {
      within: "receiptJson",
      find: "JSON.stringify(row.leaf)",
      put: 'JSON.stringify(row.leaf.replace("ALLOW", "BLOCK"))',
    },
    /✕ the leaf is row 9/,
  ],
  [
    "a changed call",
    {
      within: "receiptJson",
      find: 'row.evidence.split("~")',
      put: 'row.evidence.split("~").map((part, at) => (at === 2 ? part.replace(/.$/, "A") : part))',
    },
    /✕ the parts of the evidence/,
  ],
  [
    "an answer that shows another call than the evidence",
    { within: "receiptJson", find: 'part("input")', put: `'{"amount":4,"to":"mallory"}'` },
    /✕ this page shows/,
  ],
  [
    "an answer that shows another rule than the leaf",
    { within: "receiptJson", find: "json(leaf?.rule)", put: 'JSON.stringify("none")' },
    /✕ this page shows/,
  ],
];

/** Each bar has the colour of the verdict beside it, and the bars of a verdict have one pattern. */
async function bars(t: TestContext, defect?: Mutation): Promise<void> {
  const desk = await startConsole(t);
  await fill(desk);
  const anna = await openBrowser(t, desk);
  if (defect !== undefined) await plant(anna, "pages/rollout", defect);
  await anna.signIn(keyOf(desk, "anna"));
  await anna.opens("/rollout");
  const found = await anna.page.evaluate<readonly { verdict: string; colour: string; background: string }[]>(
    `[...document.querySelectorAll(".shares tr:has(.badge)")].map((row) => ({
      verdict: row.querySelector(".badge").textContent,
      colour: getComputedStyle(row.querySelector(".badge")).color,
      background: getComputedStyle(row.querySelector(".portion > span")).background,
    }))`,
  );
  const patterns = new Map(found.map(({ verdict, background }) => [verdict, background]));
  assert.ok(patterns.has("BLOCK") && patterns.has("ESCALATE"), [...patterns.keys()].join());
  assert.equal(new Set(patterns.values()).size, patterns.size);
  for (const { verdict, colour, background } of found) {
    assert.ok(background.includes(colour), `${verdict}: ${background}`);
    assert.equal(background, patterns.get(verdict));
  }
}

suite("reading in the console", () => {
  test("no link of any page changes a row", async (t) => {
    const { seen, rows } = await crawl(t);
    assert.equal(rows[1], rows[0]);
    assert.ok(seen.length > 15, seen.join(" "));
    for (const page of ["/console/approvals/APPROVAL", "/console/receipts/ROW", "/console/rollout", "/console/access"])
      assert.ok(seen.includes(page), `${page} is not in ${seen.join(" ")}`);
  });

  control("positive control: a page that writes when it is opened is noticed", async (t) => {
    await assert.rejects(crawl(t, true), assert.AssertionError);
  });

  test("the filters of receipts are in the address, and a shared address shows the same rows", async (t) => {
    const [desk, anna] = await start(t);
    const { page } = anna;
    await anna.opens("/receipts");
    await page.getByLabel("Answered").selectOption("BLOCK");
    await page.getByLabel("Session").fill("s1");
    await page.getByRole("button", { name: "Filter" }).click();
    await page.waitForURL(/session_id=s1.*answered=BLOCK|answered=BLOCK.*session_id=s1/);
    await settled(page);
    const rows = page.locator("table.receipts tbody tr");
    await page.locator("table.receipts tbody tr").first().waitFor();
    const shown = await rows.allInnerTexts();
    const { json } = await desk.as("anna", "/receipts?answered=BLOCK&session_id=s1");
    assert.equal(shown.length, json.receipts.length);
    assert.ok(shown.length > 0 && shown.every((text) => text.includes("BLOCK")));
    const bob = await openBrowser(t, desk);
    await bob.signIn(keyOf(desk, "bob"));
    await bob.page.goto(page.url());
    await settled(bob.page);
    assert.deepEqual(
      await bob.page.locator("table.receipts tbody tr td:first-child").allInnerTexts(),
      await page.locator("table.receipts tbody tr td:first-child").allInnerTexts(),
    );
    assert.equal(await bob.page.getByLabel("Session").inputValue(), "s1");
    await page.getByRole("link", { name: "Clear" }).click();
    await page.waitForURL(`${desk.address}/console/receipts`);
  });

  test("older receipts are on the next page, and the live switch shows new ones", async (t) => {
    const [desk, anna] = await start(t);
    for (let more = 0; more < 60; more += 1) await desk.asks(small);
    const { page } = anna;
    await anna.opens("/receipts");
    const numbers = async (): Promise<readonly number[]> =>
      (await page.locator("table.receipts tbody td:first-child").allInnerTexts()).map(Number);
    const newest = await numbers();
    await page.getByRole("button", { name: "Older" }).click();
    await page.waitForURL(/before=/);
    await page.getByRole("link", { name: String(newest.at(-1)), exact: true }).waitFor({ state: "hidden" });
    const older = await numbers();
    assert.ok(Math.max(...older) < Math.min(...newest), JSON.stringify([older, newest]));
    await page.getByRole("button", { name: "Newest" }).click();
    await page.getByRole("link", { name: String(newest[0]), exact: true }).waitFor();
    await page.getByRole("button", { name: "Live: off" }).click();
    const { receipt } = await desk.asks({ ...small, session_id: "newcomer" });
    await page.getByRole("link", { name: String(receipt.seq), exact: true }).waitFor();
  });

  test("the browser proves a row against the signed head", async (t) => {
    const proof = await proofOf(t);
    assert.match(proof, /The proof is valid/);
    assert.equal(proof.match(/✓/g)?.length, 5);
  });

  test("the downloaded proof is one that the verifiers read", async (t) => {
    const [, anna] = await start(t);
    await anna.opens("/receipts/9");
    const [download] = await Promise.all([
      anna.page.waitForEvent("download"),
      anna.page.getByRole("button", { name: "Download the proof" }).click(),
    ]);
    assert.equal(download.suggestedFilename(), "row-9.tlog-proof");
    const signer = parseVerifierKey(await anna.page.locator("code.key").innerText());
    assert.ok(signer.ok);
    const text = readFileSync(await download.path(), "utf8");
    const proven = verifyProof(text, [signer.value]);
    assert.equal(proven.ok && proven.value.seq, 9);
    assert.ok(!verifyProof(text.replace("index 8", "index 7"), [signer.value]).ok, "positive control");
  });

  for (const [what, defect, complaint] of changes)
    control(`positive control: the browser notices ${what}`, async (t) => {
      const proof = await proofOf(t, [defect]);
      assert.match(proof, /The proof is NOT valid/);
      assert.match(proof, complaint);
    });

  test("the charts of the rollout are drawn, and their tables have the gate's numbers", async (t) => {
    const [desk, anna] = await start(t);
    const { page } = anna;
    await anna.opens("/rollout");
    await page.locator("canvas").first().waitFor();
    const painted = await page.evaluate<boolean>(`(() => {
      const canvas = document.querySelector("canvas");
      return canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((byte) => byte !== 0);
    })()`);
    assert.ok(painted);
    const { json } = await desk.as("anna", "/report");
    const sums = { ALLOW: 0, ESCALATE: 0, BLOCK: 0 };
    for (const { verdicts } of json.over_time)
      for (const name of ["ALLOW", "ESCALATE", "BLOCK"] as const) sums[name] += verdicts[name];
    await page.getByText("Calls by verdict, as a table").click();
    const figure = page.locator("figure", { has: page.getByText("Calls by verdict, as a table") });
    const table = await figure.locator("tbody tr").allInnerTexts();
    const columns = table.map((row) => row.split("\t").slice(1).map(Number));
    const shown = [0, 1, 2].map((at) => columns.reduce((all, row) => all + (row[at] ?? 0), 0));
    assert.deepEqual(shown, [sums.ALLOW, sums.ESCALATE, sums.BLOCK]);
    assert.ok(sums.ALLOW > 0 && sums.ESCALATE > 0 && sums.BLOCK > 0, JSON.stringify(sums));
  });

  test("a browser that cannot draw the charts shows their fault, and the rest of the page", async (t) => {
    const desk = await startConsole(t);
    await fill(desk);
    const anna = await openBrowser(t, desk);
    const { page, context } = anna;
    anna.expects(/RangeError/);
    // Browsers have such a language on machines without one. The library of the charts refuses it.
    await context.addInitScript('Object.defineProperty(navigator, "language", { get: () => "en-US@posix" })');
    await anna.signIn(keyOf(desk, "anna"));
    await anna.opens("/rollout");
    await page
      .getByText(/This part cannot be loaded: RangeError/)
      .first()
      .waitFor();
    await page.getByRole("heading", { name: "By rule" }).waitFor();
    assert.equal(await page.locator("canvas").count(), 0);
  });

  test("every command on the pages starts as commands of this gate are typed", async (t) => {
    const [desk, anna] = await start(t);
    const { page } = anna;
    const typed = await page.locator("html").getAttribute("data-command");
    assert.ok(typed !== null && typed !== "");
    const approval = await parks(desk, { amount: 1700 });
    for (const path of ["/ledger", "/contract", `/approvals/${approval}`]) {
      await anna.opens(path);
      await page
        .locator("code", { hasText: /reload|verify|explain/ })
        .first()
        .waitFor();
      const texts = await page.locator("code", { hasText: /^(?:npm|npx|node|svc-gate) / }).allInnerTexts();
      assert.ok(texts.length > 0, path);
      for (const text of texts) assert.ok(text.startsWith(`${typed} `), text);
    }
  });

  test("a bar has its verdict's colour and pattern", (t) => bars(t));
  control("positive control: bars of one colour are noticed", async (t) => {
    await assert.rejects(bars(t, { within: "Bar", first: 'of = "ALLOW";' }), assert.AssertionError);
  });

  test("explain shows the values of operands and records nothing", async (t) => {
    const [desk, anna] = await start(t);
    const { page } = anna;
    const rows = await desk.rows();
    await anna.opens("/explain");
    const call = { tool_name: "pay.send", tool_input: { amount: 1234.5, to: "anna" }, platform_state: { wallet: "w" } };
    await page.getByLabel("The body of a check").fill(JSON.stringify(call));
    await page.getByRole("button", { name: "Explain" }).click();
    const result = page.locator("section.panel", { has: page.getByRole("heading", { name: "The result" }) });
    await result.getByText("ESCALATE").first().waitFor();
    assert.match(await result.innerText(), /input\.amount\s*=\s*1234\.5/);
    await page.getByLabel("A contract to try").fill(consoleContract.replace("> 1000", "> 9000"));
    await page.getByRole("button", { name: "Explain" }).click();
    await result.getByText("ALLOW").first().waitFor();
    assert.equal(await desk.rows(), rows);
  });

  test("a receipt shows the outcome that the agent reported", async (t) => {
    const [desk, anna] = await start(t);
    const { receipt } = await desk.asks(small);
    await anna.opens(`/receipts/${receipt.seq}`);
    await anna.page.getByText("nobody has reported one").waitFor();
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const body = JSON.stringify({ receipt: { seq: receipt.seq, hash: receipt.hash }, status: "failed" });
    assert.equal((await ask(desk, "/outcomes", { method: "POST", headers, body })).status, 200);
    await anna.opens(`/receipts/${receipt.seq}`);
    await anna.page.getByText("failed: the tool did not do it").waitFor();
  });

  test("a receipt shows its rules with values, and can be decided again", async (t) => {
    const [desk, anna] = await start(t);
    const id = await parks(desk, { amount: 1750 });
    const { json } = await desk.as("anna", `/approvals/${id}`);
    const rows = await desk.rows();
    await anna.opens(`/receipts/${json.receipt}`);
    await anna.page.getByText("1750 is a large payment").first().waitFor();
    await anna.page
      .getByText(/= 1750/)
      .first()
      .waitFor();
    await anna.page.getByRole("button", { name: "Decide again" }).click();
    const again = anna.page.locator("section.panel", { hasText: "Under the contract in force now" });
    await again.getByText("ESCALATE").first().waitFor();
    assert.equal(await desk.rows(), rows);
  });

  test("a reload is on the contract page with its text diff", async (t) => {
    const [desk, anna] = await start(t);
    await reload(desk, consoleContract.replace("input.amount > 1000", "input.amount > 900"));
    await anna.opens("/contract");
    await anna.page.getByRole("button", { name: "Show the diff" }).click();
    const lines = anna.page.locator("table.diff tr:not(.same)");
    await lines.first().waitFor();
    const shown = (await lines.allInnerTexts()).map((line) => line.replaceAll(/\s+/g, " ").trim());
    assert.deepEqual(
      shown,
      ["32 − when: input.amount > 1000", "32 + when: input.amount > 900"].map((line) =>
        line.replace(/^32/, /^\d+/.exec(shown[0] ?? "")?.[0] ?? ""),
      ),
    );
  });

  test("the ledger page verifies the rows", async (t) => {
    const [desk, anna] = await start(t);
    await anna.opens("/ledger");
    await anna.page.getByRole("button", { name: "Verify now" }).click();
    await anna.page.getByText(`${await desk.rows()} rows are valid`).waitFor();
  });
});
