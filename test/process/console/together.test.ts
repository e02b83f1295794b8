/**
 * Goal: a page tells the truth about a call while others act: another person decides, the agent asks, an administrator
 * revokes, the gate dies. Method: real browsers of several people at one gate. The times until a page changes are
 * printed. Positive controls: pages that hear no events, and pages that forget what a person has typed.
 */
import assert from "node:assert/strict";
import { suite, test, type TestContext } from "node:test";
import { large, naming, startDesk, type Desk } from "../../support/approvals.ts";
import { openBrowser, plant, type Person } from "../../support/browser.ts";
import { consoleContract, keyOf, parks, startConsole } from "../../support/console-kit.ts";
import { control } from "../../support/controls/control.ts";
import { controlPatienceMs, patienceMs } from "../../support/patience.ts";

/** Other tests run meanwhile, so this is longer than the second that a page needs at most on a free machine. */

/** Opens the console for each of these people. */
async function openPeople(t: TestContext, desk: Desk, ...names: readonly string[]): Promise<readonly Person[]> {
  const all: Person[] = [];
  for (const name of names) {
    const person = await openBrowser(t, desk);
    await person.signIn(keyOf(desk, name));
    all.push(person);
  }
  return all;
}

function button({ page }: Person, name: string): ReturnType<Person["page"]["getByRole"]> {
  return page.getByRole("button", { name, exact: true });
}

/** The page of a person who hears no events, as during a short break of the network. */
async function deaf(t: TestContext, desk: Desk, name: string, path: string): Promise<Person> {
  const person = await openBrowser(t, desk);
  person.expects(/\/api\/events/);
  await person.context.route("**/api/events", (route) => route.abort());
  await person.signIn(keyOf(desk, name));
  await person.opens(path);
  return person;
}

/** One decides, the other's open page says so. */
async function decisionArrives(t: TestContext, isDeaf = false): Promise<void> {
  const desk = await startConsole(t);
  const id = await parks(desk, { amount: 1600 });
  const [anna] = await openPeople(t, desk, "anna");
  const bob = isDeaf ? await deaf(t, desk, "bob", `/approvals/${id}`) : (await openPeople(t, desk, "bob"))[0];
  assert.ok(anna !== undefined && bob !== undefined);
  for (const person of [anna, bob]) await person.opens(`/approvals/${id}`);
  if (!isDeaf) await bob.page.getByText("live", { exact: true }).waitFor();
  await anna.page.getByLabel("Comment").fill("the payee is unknown");
  const startedAt = performance.now();
  await button(anna, "Deny").click();
  await bob.page.getByText("The call was denied").waitFor({ timeout: isDeaf ? controlPatienceMs : patienceMs });
  t.diagnostic(
    `another person's decision was on the page ${Math.round(performance.now() - startedAt)} ms after the click`,
  );
  await bob.page.getByText("the payee is unknown").waitFor();
  await button(bob, "Approve this call").waitFor({ state: "detached" });
}

/** A new approval waits behind a button, and the list stays where it is. */
async function newWaits(t: TestContext): Promise<void> {
  const desk = await startConsole(t);
  await parks(desk, { amount: 1600 });
  await parks(desk, { amount: 1700 });
  const [bob] = await openPeople(t, desk, "bob");
  assert.ok(bob !== undefined);
  const rows = bob.page.locator("li.row");
  await rows.nth(1).waitFor();
  await bob.page.getByText("live", { exact: true }).waitFor();
  const positions = (): Promise<unknown> =>
    bob.page.evaluate(`[...document.querySelectorAll("li.row")].map((each) =>
      [each.dataset.id, each.getBoundingClientRect().top])`);
  const before = await positions();
  const startedAt = performance.now();
  await parks(desk, { amount: 1800 });
  await button(bob, "Show 1 new").waitFor();
  t.diagnostic(`a new approval was announced after ${Math.round(performance.now() - startedAt)} ms`);
  assert.deepEqual(await positions(), before);
  await button(bob, "Show 1 new").click();
  await rows.nth(2).waitFor();
  await button(bob, "Show 1 new").waitFor({ state: "detached" });
}

/** Approves on a page that shows the past. The gate refuses, and the page says why. */
async function tooLate(t: TestContext, before: (desk: Desk, id: string) => Promise<unknown>): Promise<string> {
  const desk = await startConsole(t);
  const id = await parks(desk, { amount: 1600 });
  const bob = await deaf(t, desk, "bob", `/approvals/${id}`);
  bob.expects(/status of 409/);
  await before(desk, id);
  const rows = await desk.rows();
  await button(bob, "Approve this call").click();
  const note = bob.page.getByRole("alert");
  await note.waitFor();
  assert.equal(await desk.rows(), rows, "nothing was decided");
  await button(bob, "Approve this call").waitFor({ state: "detached" }); // The page shows the new state.
  return note.innerText();
}

const supersedes = async (desk: Desk, id: string): Promise<void> => {
  assert.equal((await desk.decides("anna", id, "approve")).status, 200);
  const call = { ...large, tool_input: { amount: 1600, to: "anna" }, platform_state: { wallet: "w", price: 11 } };
  assert.equal((await desk.asks(naming(id, call))).verdict, "ESCALATE");
};

/** A key is revoked while its person looks at a call. */
async function revoked(t: TestContext, acts: (anna: Person) => Promise<void>): Promise<void> {
  const desk = await startConsole(t);
  const id = await parks(desk, { amount: 1600 });
  const [anna] = await openPeople(t, desk, "anna");
  assert.ok(anna !== undefined);
  anna.expects(/status of 401/, /\/api\/events/);
  await anna.opens(`/approvals/${id}`);
  assert.equal((await desk.operates("/admin/keys/anna-laptop/revoke", {})).status, 200);
  const rows = await desk.rows();
  await acts(anna);
  await anna.page.getByLabel("Your key").waitFor();
  await anna.page
    .getByText(/session has ended|ended/)
    .first()
    .waitFor();
  assert.equal(await desk.rows(), rows);
  await anna.page.reload();
  await anna.page.getByLabel("Your key").waitFor();
  assert.equal(await anna.page.getByText("any.call").count(), 0);
}

/** The gate is killed between load and click, and started again. */
async function gateDies(t: TestContext, forgets = false): Promise<void> {
  const first = await startConsole(t, { isProcess: true });
  const id = await parks(first, { amount: 1600 });
  const anna = await openBrowser(t, first);
  anna.expects(/ERR_/, /\/api\//);
  if (forgets)
    await plant(anna, "parts", {
      within: "isShort",
      first: "return false;",
    });
  await anna.signIn(keyOf(first, "anna"));
  await anna.opens(`/approvals/${id}`);
  await anna.page.getByLabel("Comment").fill("as agreed by telephone");
  await first.kill();
  await button(anna, "Approve this call").click();
  await anna.page.getByText("The gate does not answer").first().waitFor();
  await anna.page.getByText("not live").waitFor();
  const timeout = forgets ? controlPatienceMs : patienceMs;
  assert.equal(await anna.page.getByLabel("Comment").inputValue({ timeout }), "as agreed by telephone");
  const { folder, address } = first;
  await startDesk(t, {
    contract: consoleContract,
    isProcess: true,
    folder,
    port: new URL(address).port,
    persons: {},
  });
  await button(anna, "Approve this call").click();
  await anna.page.getByText("Your yes is recorded").waitFor();
  const { json } = await first.as("anna", `/approvals/${id}`);
  assert.equal(json.status, "approved");
  await anna.page.getByText("live", { exact: true }).waitFor();
}

/** A call needs two people, and one of them has voted. */
async function voteArrives(t: TestContext, isForgotten = false): Promise<void> {
  const desk = await startConsole(t);
  const { approval } = await desk.asks({ tool_name: "pay.legal", tool_input: { case: "A-1" }, session_id: "s3" });
  const cleo = await openBrowser(t, desk);
  if (isForgotten)
    await plant(cleo, "pages/approval", { within: "ApprovalPage", find: "value.needs > 1", put: "false" });
  await cleo.signIn(keyOf(desk, "cleo"));
  await cleo.opens(`/approvals/${approval.id}`);
  await cleo.page.getByText("0 of 2").first().waitFor();
  assert.equal((await desk.decides("bob", approval.id, "approve")).status, 200);
  await cleo.page
    .getByText("1 of 2")
    .first()
    .waitFor({ timeout: isForgotten ? controlPatienceMs : patienceMs });
}

/** A person types a comment, signs out, and comes back. */
async function draftStays(t: TestContext, isForgotten = false): Promise<void> {
  const desk = await startConsole(t);
  const id = await parks(desk, { amount: 1600 });
  const anna = await openBrowser(t, desk);
  anna.expects(/status of 401/);
  if (isForgotten)
    await plant(anna, "pages/decide", { within: "useDraft", find: "sessionStorage.getItem(name)", put: "null" });
  await anna.signIn(keyOf(desk, "anna"));
  await anna.opens(`/approvals/${id}`);
  await anna.page.getByLabel("Comment").fill("as agreed by telephone");
  await button(anna, "Sign out").click();
  await anna.signIn(keyOf(desk, "anna"));
  await anna.opens(`/approvals/${id}`);
  assert.equal(await anna.page.getByLabel("Comment").inputValue(), "as agreed by telephone");
  await button(anna, "Approve this call").click();
  await anna.page.getByText("Your yes is recorded").waitFor();
  assert.equal(await anna.page.getByLabel("Comment").inputValue(), "", "a comment that was sent is gone");
}

suite("several people and the console", () => {
  test("a decision is on the other person's page at once, and the button goes", (t) => decisionArrives(t));
  control("positive control: a page that hears no events shows nothing", async (t) => {
    await assert.rejects(decisionArrives(t, true), /waiting for getByText\('The call was denied'\)/);
  });
  test("a new approval waits behind a button and moves nothing", (t) => newWaits(t));
  test("a vote that leaves the call pending is on the other person's page", (t) => voteArrives(t));
  control("positive control: a page that waits for an event never shows the vote", async (t) => {
    await assert.rejects(voteArrives(t, true), /waiting for getByText\('1 of 2'\)/);
  });
  test("a comment that a person has typed stays after a new sign-in", (t) => draftStays(t));
  control("positive control: a page that keeps no draft is noticed", async (t) => {
    await assert.rejects(draftStays(t, true), /as agreed by telephone/);
  });
  test("a person who approves a denied call reads that it was denied", async (t) => {
    assert.match(await tooLate(t, (desk, id) => desk.decides("anna", id, "deny")), /denied/);
  });
  test("a person who approves a superseded call reads that it was superseded", async (t) => {
    assert.match(await tooLate(t, supersedes), /superseded|replaced/);
  });
  test("a revoked key leads back to the sign-in when it acts", (t) =>
    revoked(t, (anna) => button(anna, "Approve this call").click()));
  test("a revoked key leads back to the sign-in by itself", (t) => revoked(t, async () => undefined));
  test("a gate that dies between load and click loses nothing that a person typed", (t) => gateDies(t));
  control("positive control: a page that shows only the last answer loses what a person typed", async (t) => {
    await assert.rejects(gateDies(t, true), /waiting for getByLabel\('Comment'\)/);
  });
});
