/**
 * Goal: the page Access stops calls, ends a stop and revokes keys, and every other page says so at once. Method: real
 * browsers of an administrator and of an approver. Positive control: a dialog that needs no typed word.
 */
import assert from "node:assert/strict";
import { suite, test, type TestContext } from "node:test";
import { large, small } from "../../support/approvals.ts";
import { openBrowser, plant } from "../../support/browser.ts";
import { consoleContract, keyOf, parks, startConsole } from "../../support/console-kit.ts";
import { control } from "../../support/controls/control.ts";
import type { Mutation } from "../../support/mutation/mutate.ts";

/** An approver stops every call with a typed word; an administrator, whose page says so, lifts the stop. */
async function stopAndLift(t: TestContext, defect?: Mutation): Promise<void> {
  const desk = await startConsole(t);
  const id = await parks(desk, { amount: 1600 });
  const [anna, otto] = [await openBrowser(t, desk), await openBrowser(t, desk)];
  if (defect !== undefined) await plant(anna, "pages/access", defect);
  await anna.signIn(keyOf(desk, "anna"));
  await otto.signIn(keyOf(desk, "otto"));
  await otto.opens("/receipts");
  await anna.opens("/access");
  const { page } = anna;
  await page.getByRole("button", { name: "Stop …" }).click();
  const dialog = page.getByRole("dialog", { name: "Stop calls" });
  const stop = dialog.getByRole("button", { name: "Stop these calls" });
  assert.ok(await stop.isDisabled(), "nothing is typed");
  await dialog.getByLabel("Why").fill("the agent pays the wrong people");
  assert.ok(await stop.isDisabled(), "the word is missing");
  await dialog.getByLabel('Type "stop"').fill("Stop");
  assert.ok(await stop.isDisabled(), "the word is another");
  await dialog.getByLabel('Type "stop"').fill("stop");
  const startedAt = performance.now();
  await stop.click();
  const banner = otto.page.getByRole("alert").filter({ hasText: "A stop is in force" });
  await banner.waitFor();
  t.diagnostic(`the banner was on another person's page after ${Math.round(performance.now() - startedAt)} ms`);
  await page.getByText("the agent pays the wrong people").waitFor();
  await page.getByText("Approvals that the stop cancelled: 1. Approvals that lost their votes: 0.").waitFor();
  assert.equal((await desk.asks(small)).verdict, "BLOCK");
  assert.equal((await desk.as("anna", `/approvals/${id}`)).json.status, "cancelled");
  assert.equal(await page.getByRole("button", { name: "Lift" }).count(), 0, "an approver cannot lift a stop");
  await banner.getByRole("link").click();
  await otto.page.waitForURL("**/access");
  await otto.page.getByRole("button", { name: "Lift" }).click();
  await banner.waitFor({ state: "hidden" });
  await page.getByText("A stop is in force").waitFor({ state: "hidden" });
  assert.equal((await desk.asks(small)).verdict, "ALLOW");
}

/** The root lists the keys of all tenants, and its path revokes only the root's key of that name. */
async function foreignKeys(t: TestContext, defect?: Mutation): Promise<void> {
  const desk = await startConsole(t);
  const otto = await openBrowser(t, desk);
  if (defect !== undefined) await plant(otto, "pages/access", defect);
  await otto.signIn(keyOf(desk, "otto"));
  await otto.page.route("**/api/admin/keys", async (route) => {
    const answer = await route.fetch();
    const { keys } = (await answer.json()) as { readonly keys: readonly object[] };
    const foreign = keys.map((key) => ({ ...key, tenant: "acme" }));
    await route.fulfill({ response: answer, json: { keys: [...keys, ...foreign] } });
  });
  await otto.opens("/access");
  const rows = otto.page.getByRole("row", { name: /bob-laptop/ });
  await rows.nth(1).waitFor();
  assert.equal(await rows.getByRole("button", { name: "Revoke" }).count(), 1);
  assert.equal(await rows.filter({ hasText: "acme/" }).getByRole("button").count(), 0);
}

/** An approver stops one session of a key; the key's other sessions go on. */
async function stopSession(t: TestContext, defect?: Mutation): Promise<void> {
  const desk = await startConsole(t);
  const anna = await openBrowser(t, desk);
  if (defect !== undefined) await plant(anna, "pages/access", defect);
  await desk.asks(small);
  await anna.signIn(keyOf(desk, "anna"));
  await anna.opens("/access");
  await anna.page.getByRole("button", { name: "Stop …" }).click();
  const dialog = anna.page.getByRole("dialog", { name: "Stop calls" });
  await dialog.getByLabel("Which calls").selectOption("session");
  await dialog.getByLabel("The key's name").fill("default");
  await dialog.getByLabel("The session").fill("s1");
  await dialog.getByLabel("Why").fill("this run is lost");
  await dialog.getByLabel('Type "stop"').fill("stop");
  await dialog.getByRole("button", { name: "Stop these calls" }).click();
  await anna.page.getByText("the session s1 of the key default").waitFor();
  assert.equal((await desk.asks(small)).verdict, "BLOCK");
  assert.equal((await desk.asks({ ...small, session_id: "s2" })).verdict, "ALLOW", "another session was stopped");
  assert.equal(await anna.page.getByText("Warning:").count(), 0, "the gate knows the key and the session");
}

/** An approver mistypes a key: the stop is set, and the page says which key was probably meant. */
async function mistype(t: TestContext, defect?: Mutation): Promise<void> {
  const desk = await startConsole(t);
  const anna = await openBrowser(t, desk);
  if (defect !== undefined) await plant(anna, "pages/access", defect);
  await anna.signIn(keyOf(desk, "anna"));
  await anna.opens("/access");
  await anna.page.getByRole("button", { name: "Stop …" }).click();
  const dialog = anna.page.getByRole("dialog", { name: "Stop calls" });
  await dialog.getByLabel("Which calls").selectOption("key");
  await dialog.getByLabel("The key's name").fill("defualt");
  await dialog.getByLabel("Why").fill("this agent is lost");
  await dialog.getByLabel('Type "stop"').fill("stop");
  await dialog.getByRole("button", { name: "Stop these calls" }).click();
  await anna.page.getByText("Stopped: the key defualt").waitFor();
  assert.equal(await anna.page.getByText('did you mean "default"?').count(), 1);
}

/** The pages say which key an agent can read, and which facts such a key has sent. */
async function hostMarks(t: TestContext, defect?: Mutation): Promise<void> {
  const contract = consoleContract.replace("tools:\n", "host_facts: [wallet]\ntools:\n");
  const desk = await startConsole(t, { contract });
  const { json } = await desk.operates("/admin/keys", { name: "laptop", kind: "host" });
  const [mine, theirs] = [await desk.asks(large, json.key), await desk.asks(large)];
  const otto = await openBrowser(t, desk);
  if (defect !== undefined) await plant(otto, "parts", defect);
  await otto.signIn(keyOf(desk, "otto"));
  await otto.opens("/access");
  await otto.page.getByRole("row", { name: /^laptop an agent's host / }).waitFor();
  const marked = otto.page.getByText("said by the agent's machine");
  for (const [answer, count] of [
    [mine, 1],
    [theirs, 0],
  ] as const) {
    await otto.opens(`/receipts/${answer.receipt.seq}`);
    await otto.page.getByText("Facts from the platform").waitFor();
    assert.equal(await marked.count(), count, "a receipt");
  }
  const anna = await openBrowser(t, desk);
  if (defect !== undefined) await plant(anna, "parts", defect);
  await anna.signIn(keyOf(desk, "anna"));
  await anna.opens(`/approvals/${mine.approval.id}`);
  await anna.page.getByText("said by the agent's machine").waitFor();
}

suite("access in the console", () => {
  test("the pages mark the key of an agent's host, and the facts that it sent", (t) => hostMarks(t));

  control("positive control: pages that mark no facts are noticed", async (t) => {
    await assert.rejects(
      hostMarks(t, { within: "FactsSource", find: 'kind === "host"', put: "false" }),
      assert.AssertionError,
    );
  });

  test("a stop of one session leaves the key's other sessions alone", (t) => stopSession(t));

  control("positive control: a dialog that stops the whole key is noticed", async (t) => {
    const defect = { within: "scopeOf", find: 'kind === "key"', put: 'kind !== "tools"' };
    await assert.rejects(stopSession(t, defect), /the session s1/);
  });

  test("[P13] a stop of a key that nobody knows is set, and the page names the nearest key", (t) => mistype(t));

  control("positive control: a page that shows no warnings is noticed", async (t) => {
    const defect = { within: "StopNote", find: "warnings.map($each)", put: "[]" };
    await assert.rejects(mistype(t, defect));
  });

  test("a typed word stops every call, other pages say so, and an administrator lifts the stop", (t) => stopAndLift(t));

  control("positive control: a dialog that needs no word is noticed", async (t) => {
    await assert.rejects(
      stopAndLift(t, { within: "StopDialog", find: "typed === word", put: "true" }),
      /the word is missing/,
    );
  });

  test("an administrator revokes a key, and its person's page returns to the sign-in", async (t) => {
    const desk = await startConsole(t);
    const [bob, otto] = [await openBrowser(t, desk), await openBrowser(t, desk)];
    bob.expects(/status of 401/, /\/api\/events/);
    await bob.signIn(keyOf(desk, "bob"));
    await otto.signIn(keyOf(desk, "otto"));
    await otto.opens("/access");
    const row = otto.page.getByRole("row", { name: /bob-laptop/ });
    assert.match(await row.innerText(), /bob\s+approve, receipts, rules|bob\s+rules, receipts, approve/);
    await row.getByRole("button", { name: "Revoke" }).click();
    await otto.page.getByRole("dialog").getByRole("button", { name: "Revoke the key" }).click();
    await row.getByText("revoked").waitFor();
    await bob.page.getByText("Your session has ended").waitFor();
    bob.expects(/status of 401/);
    await bob.page.getByLabel("Your key").fill(keyOf(desk, "bob"));
    await bob.page.getByRole("button", { name: "Sign in" }).click();
    await bob.page.getByText("The key is wrong, revoked or expired").waitFor();
  });

  test("a root administrator's page offers to revoke only keys of the root", (t) => foreignKeys(t));

  control("positive control: a page that offers to revoke a tenant's key is noticed", async (t) => {
    const any = { within: "Keys", find: "key.tenant === session.tenant", put: "true" };
    await assert.rejects(foreignKeys(t, any), assert.AssertionError);
  });

  test("a person signs out, and the browser's back button shows no call", async (t) => {
    const desk = await startConsole(t);
    const id = await parks(desk, { amount: 1600 });
    const anna = await openBrowser(t, desk);
    await anna.signIn(keyOf(desk, "anna"));
    await anna.opens(`/approvals/${id}`);
    await anna.page.getByRole("button", { name: "Sign out" }).click();
    await anna.page.getByLabel("Your key").waitFor();
    await anna.page.goBack();
    await anna.page.getByLabel("Your key").waitFor();
    assert.equal(await anna.page.getByText("pay.send").count(), 0);
  });
});
