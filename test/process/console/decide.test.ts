/**
 * Goal: a person decides what the page shows, and nothing else: one call, several, or later calls by a grant. Method:
 * a real browser clicks, and the gate says what was recorded. Positive control: a page that leaves one call of a batch
 * out, and one that sends a denial without words.
 */
import assert from "node:assert/strict";
import { suite, test, type TestContext } from "node:test";
import type { Desk } from "../../support/approvals.ts";
import { openBrowser, plant, type Person } from "../../support/browser.ts";
import { keyOf, parks, startConsole } from "../../support/console-kit.ts";
import { formCommands } from "../../support/form-commands.ts";
import { control } from "../../support/controls/control.ts";
import type { Mutation } from "../../support/mutation/mutate.ts";
import { controlPatienceMs, patienceMs } from "../../support/patience.ts";

async function start(t: TestContext, module = "", defect?: Mutation): Promise<readonly [Desk, Person]> {
  const desk = await startConsole(t);
  const anna = await openBrowser(t, desk);
  if (defect !== undefined) await plant(anna, module, defect);
  await anna.signIn(keyOf(desk, "anna"));
  return [desk, anna];
}

async function statusOf(desk: Desk, id: string): Promise<string> {
  return (await desk.as("anna", `/approvals/${id}`)).json.status;
}

/** Selects the calls on the inbox and opens the dialog that shows them. */
async function select({ page }: Person, count: number): Promise<void> {
  const boxes = page.getByRole("checkbox");
  await boxes.nth(count - 1).waitFor();
  for (let at = 0; at < count; at += 1) await boxes.nth(at).check();
  await page.getByRole("button", { name: "Look at each and decide" }).click();
  await page.getByRole("dialog", { name: `${count} calls` }).waitFor();
}

/** Selects two of three calls: the dialog shows each whole, and one confirmation decides both. */
async function batch(t: TestContext, defect?: Mutation): Promise<void> {
  const [desk, anna] = await start(t, "pages/batch", defect);
  const ids = [
    await parks(desk, { amount: 1600, note: "for the boat", extra: { deep: [1.1, { below: "ground" }] } }),
    await parks(desk, { amount: 1700, note: "for\u202Ethe car" }),
    await parks(desk, { amount: 1800 }),
  ];
  await anna.opens("/");
  const rows = await desk.rows();
  await select(anna, 2);
  const dialog = anna.page.getByRole("dialog");
  const timeout = defect === undefined ? patienceMs : controlPatienceMs;
  for (const text of ["1600", "for the boat", "1.1", "ground", "1700", String.raw`for\u202ethe car`])
    await dialog.getByText(text, { exact: true }).first().waitFor({ timeout });
  assert.equal(await desk.rows(), rows, "looking decides nothing");
  await dialog.getByRole("button", { name: "Approve all 2" }).click();
  await dialog.waitFor({ state: "hidden" });
  assert.deepEqual(await Promise.all(ids.map((id) => statusOf(desk, id))), ["approved", "approved", "pending"]);
}

/** A denial without words is not sent, and the page says what it needs. */
async function wordless(t: TestContext, defect?: Mutation): Promise<void> {
  const [desk, anna] = await start(t, "pages/decide", defect);
  const id = await parks(desk, { amount: 1600 });
  await anna.opens(`/approvals/${id}`);
  const sent: string[] = [];
  anna.page.on("request", (request) => {
    if (request.url().endsWith("/deny")) sent.push(request.url());
  });
  anna.expects(/status of 400/);
  for (const comment of ["", "  "]) {
    await anna.page.getByLabel("Comment").fill(comment);
    await anna.page.getByRole("button", { name: "Deny" }).click();
    await anna.page.getByRole("alert").waitFor();
    assert.deepEqual(sent, []);
  }
  assert.match(await anna.page.getByRole("alert").innerText(), /Say why you deny it/);
  assert.equal(await statusOf(desk, id), "pending");
  await anna.page.getByLabel("Comment").fill("not a payee");
  await anna.page.getByRole("button", { name: "Deny" }).click();
  await anna.page.getByText("Your denial is recorded").waitFor();
  assert.equal(await statusOf(desk, id), "denied");
}

/** A yes with words is taken back. The denial needs words of its own. */
async function takeBack(t: TestContext, defect?: Mutation): Promise<void> {
  const [desk, anna] = await start(t, "pages/decide", defect);
  const id = await parks(desk, { amount: 1600 });
  await anna.opens(`/approvals/${id}`);
  await anna.page.getByLabel("Comment").fill("a good payee");
  await anna.page.getByRole("button", { name: "Approve this call" }).click();
  await anna.page.getByText("Your yes is recorded").waitFor();
  await anna.page.getByRole("button", { name: "Approve this call", disabled: true }).waitFor();
  assert.equal(await anna.page.getByLabel("Comment").inputValue(), "");
  await anna.page.getByLabel("Comment").fill("the wrong account");
  await anna.page.getByRole("button", { name: "Take it back" }).click();
  await anna.page.getByText("Your denial is recorded").waitFor();
  assert.equal(await statusOf(desk, id), "denied");
}

/** The page offers no yes to a call of one's own that another person must approve, says why, and takes a denial. */
async function ownCall(t: TestContext, defect?: Mutation): Promise<void> {
  const contract = formCommands.replace("approval: { grants", "approval: { self: true, grants");
  const desk = await startConsole(t, { contract });
  const made = await desk.operates("/admin/keys", { name: "annas-agent", scopes: ["check"], person: "anna" });
  const asks = async (command: string): Promise<string> => {
    const call = { tool_name: "bash", tool_input: { command }, platform_state: { cwd: "/srv/app" } };
    return (await desk.asks(call, made.json.key)).approval.id;
  };
  const [own, others] = [await asks("restart web"), await asks("rm a.txt")];
  const anna = await openBrowser(t, desk);
  if (defect !== undefined) await plant(anna, "pages/decide", defect);
  await anna.signIn(keyOf(desk, "anna"));
  await anna.opens(`/approvals/${others}`);
  const timeout = defect === undefined ? patienceMs : controlPatienceMs;
  const why = "anna asked for this call, so another person must approve it. You can deny it.";
  await anna.page.getByText(why).waitFor({ timeout });
  await anna.page.getByRole("button", { name: "Approve this call", disabled: true }).waitFor({ timeout });
  await anna.page.getByLabel("Comment").fill("keep that file");
  await anna.page.getByRole("button", { name: "Deny" }).click();
  await anna.page.getByText("Your denial is recorded").waitFor();
  await anna.opens(`/approvals/${own}`);
  await anna.page.getByRole("button", { name: "Approve this call" }).click();
  await anna.page.getByText("Your yes is recorded").waitFor();
  assert.deepEqual([await statusOf(desk, own), await statusOf(desk, others)], ["approved", "denied"]);
}

suite("decisions in the console", () => {
  test("a person may only deny a call of their own that another person must approve", (t) => ownCall(t));

  test("a batch shows each whole call, and one confirmation decides all of them", (t) => batch(t));

  test("a batch of which one call has changed decides nothing, and says which call it is", async (t) => {
    const [desk, anna] = await start(t);
    anna.expects(/status of 409/);
    const [first, second] = [await parks(desk, { amount: 1600 }), await parks(desk, { amount: 1700 })];
    await anna.opens("/");
    await select(anna, 2);
    const dialog = anna.page.getByRole("dialog");
    const approve = dialog.getByRole("button", { name: "Approve all 2" });
    await approve.and(anna.page.locator(":enabled")).waitFor();
    await desk.decides("bob", second, "deny");
    await approve.click();
    const said = await dialog.getByRole("alert").innerText();
    assert.ok(said.includes(second) || said.includes("pay.send"), said);
    assert.deepEqual([await statusOf(desk, first), await statusOf(desk, second)], ["pending", "denied"]);
  });

  test("a grant is a second step with a preview, and the access page shows it", async (t) => {
    const [desk, anna] = await start(t);
    for (let at = 0; at < 3; at += 1) await parks(desk, { amount: 1100 + at });
    const id = await parks(desk, { amount: 1600 });
    await anna.opens(`/approvals/${id}`);
    const { page } = anna;
    assert.equal(await page.getByLabel("For minutes").count(), 0);
    await page.getByRole("button", { name: "Let later calls like this one through too" }).click();
    const rows = await desk.rows();
    await page.getByRole("button", { name: "Preview" }).click();
    await page.getByText("Say how many calls the grant lets through").waitFor();
    await page.getByLabel("For minutes").fill("30");
    await page.getByLabel("Calls", { exact: true }).fill("3");
    await page.getByLabel("All calls together, input.amount").fill("4000.50");
    await page.getByRole("button", { name: "Preview" }).click();
    await page.getByText(/It would have let \d of the last \d+ calls through/).waitFor();
    assert.equal(await desk.rows(), rows, "a preview writes nothing");
    await page.getByRole("button", { name: "Approve, and grant" }).click();
    await page.getByText("Your yes is recorded").waitFor();
    const [grant] = (await desk.as("anna", "/grants")).json.grants;
    assert.deepEqual([grant.uses, grant.amounts["input.amount"]], [3, "4000.50"]);
    await page.getByText("A denial of this call does not end it").waitFor();
    assert.equal((await desk.asks(paying(1200))).verdict, "ALLOW");
    await anna.opens("/access");
    await page.getByText("1 of 3 calls used").waitFor();
    await page.getByText("1200 of 4000.50").waitFor();
    await page.getByRole("button", { name: "Revoke" }).click();
    await page.getByText("No grant is in force").waitFor();
    assert.equal((await desk.asks(paying(1201))).verdict, "ESCALATE");
  });

  test("a grant by form shows its widths with what each would have covered, and begins with the narrowest", async (t) => {
    const desk = await startConsole(t, { contract: formCommands });
    const call = (command: string): object => {
      return { tool_name: "bash", tool_input: { command }, platform_state: { cwd: "/srv" }, session_id: "s1" };
    };
    await desk.asks(call("restart web"));
    const { approval } = await desk.asks(call("restart api"));
    const anna = await openBrowser(t, desk);
    await anna.signIn(keyOf(desk, "anna"));
    await anna.opens(`/approvals/${approval.id}`);
    const { page } = anna;
    await page.getByRole("button", { name: "Let later calls like this one through too" }).click();
    const [same, texts] = ["restart api", "restart NAME"].map((text) => page.getByRole("radio", { name: text }));
    assert.deepEqual([await same?.isChecked(), await texts?.isChecked()], [true, false]);
    await page.getByText("It would have let 1 of the last 2 calls through").waitFor();
    await page.getByText("It would have let 2 of the last 2 calls through").waitFor();
    await texts?.check();
    await page.getByLabel("Calls", { exact: true }).fill("3");
    await page.getByText("You also let 3 later calls of the form restart NAME through for 60 minutes").waitFor();
    await page.getByRole("button", { name: "Approve, and grant" }).click();
    await page.getByText("Your yes is recorded").waitFor();
    const [grant] = (await desk.as("anna", "/grants")).json.grants;
    assert.deepEqual(
      grant.free,
      ["input.description", "input.limit", "input.opts.fast"],
      "what the contract leaves free",
    );
    assert.equal((await desk.asks(call("restart db"))).verdict, "ALLOW");
    assert.equal((await desk.asks(call("restart db && restart web"))).verdict, "ESCALATE");
    await anna.opens("/access");
    await page.getByText("restart NAME").waitFor();
    const lost = await desk.asks(call("rm a.txt"));
    await anna.opens(`/approvals/${lost.approval.id}`);
    await page.getByText("No grant can be made from it: a command in it may delete something").waitFor();
  });

  test("a denial needs words", (t) => wordless(t));

  test("a person takes a yes back, and its words do not become the reason of the denial", (t) => takeBack(t));

  test("a closed dialog keeps the selection", async (t) => {
    const [desk, anna] = await start(t);
    for (const amount of [1600, 1700]) await parks(desk, { amount });
    await anna.opens("/");
    await select(anna, 2);
    await anna.page.keyboard.press("Escape");
    await anna.page.getByRole("dialog").waitFor({ state: "hidden" });
    assert.equal(await anna.page.getByRole("checkbox", { checked: true }).count(), 2);
  });

  test("the two decisions have the same size, and neither has the focus", async (t) => {
    const [desk, anna] = await start(t);
    await anna.opens(`/approvals/${await parks(desk, { amount: 1600 })}?decide=1`);
    const [deny, approve] = ["Deny", "Approve this call"].map((name) => anna.page.getByRole("button", { name }));
    const [one, other] = [await deny?.boundingBox(), await approve?.boundingBox()];
    assert.deepEqual([one?.width, one?.height, one?.y], [other?.width, other?.height, other?.y]);
    assert.equal(await anna.page.evaluate("document.activeElement.id"), "decide-title");
  });

  test("a call for other people can be read and not decided", async (t) => {
    const [desk, anna] = await start(t);
    const { approval } = await desk.asks({ tool_name: "pay.legal", tool_input: { case: "A-1" }, session_id: "s3" });
    await anna.opens("/");
    await anna.page.getByRole("region", { name: "Others decide" }).getByText("pay.legal").first().waitFor();
    await anna.opens(`/approvals/${approval.id}`);
    await anna.page.getByText("A-1").waitFor();
    await anna.page.getByText(/may not decide it/).waitFor();
    assert.equal(await anna.page.getByRole("button", { name: /Approve|Deny/ }).count(), 0);
  });

  control("positive control: a batch that shows fewer calls is noticed", async (t) => {
    const hidden = {
      within: "BatchDialog",
      find: "listed.map((approval) => $made)",
      put: "listed.slice(0, 1).map((approval) => $made)",
    };
    await assert.rejects(batch(t, hidden), /waiting for getByRole.'dialog'/);
  });

  control("positive control: a page that offers a yes which the gate refuses is noticed", async (t) => {
    const offered = {
      within: "DecideForm",
      find: "isBusy || isGiven || onlyDeny !== undefined",
      put: "isBusy || isGiven",
    };
    await assert.rejects(ownCall(t, offered), /Approve this call/);
  });

  control("positive control: a page that keeps the words of a yes is noticed", async (t) => {
    const kept = { within: "DecideForm", find: 'setComment("")', put: "setBusy(false)" };
    await assert.rejects(takeBack(t, kept), /a good payee/);
  });

  control("positive control: a denial that is sent without words is noticed", async (t) => {
    await assert.rejects(
      wordless(t, { within: "bodyOf", find: 'comment.trim() === ""', put: "false" }),
      assert.AssertionError,
    );
  });
});

function paying(amount: number): object {
  const call = { tool_name: "pay.send", tool_input: { amount, to: "anna" }, session_id: "s1" };
  return { ...call, platform_state: { wallet: "w" } };
}
