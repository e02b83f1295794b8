/**
 * Goal: a person signs in with a provider of OpenID Connect by one button. The browser keeps nothing of it but the text
 * that lets it go before strangers the next time. Method: a real browser at a gate and a provider on this machine.
 * Positive controls: a page that leaves the provider's answer in its address, keeps the flow, or does not send that text.
 */
import assert from "node:assert/strict";
import { suite, test, type TestContext } from "node:test";
import { openBrowser, plant, type Person } from "../../support/browser.ts";
import { control } from "../../support/controls/control.ts";
import { startWithProvider } from "../../support/oidc-desk.ts";

/** Presses the button, signs a subject in at the provider, and comes back. */
async function visits(person: Person, subject: string): Promise<void> {
  const { page } = person;
  await page.getByRole("button", { name: "Sign in with the test" }).click();
  await page.waitForURL(/\/interaction\//);
  await page.goto(`${page.url()}?subject=${encodeURIComponent(subject)}`);
}

async function signsIn(
  t: TestContext,
  prepare: (person: Person) => Promise<void> = async () => undefined,
): Promise<void> {
  const [desk, provider] = await startWithProvider(t, {});
  const person = await openBrowser(t, desk);
  const { page } = person;
  person.expects(new RegExp(`^request to another origin: ${provider.issuer}/`), /status of 40[34]/);
  await prepare(person);
  await page.goto(`${desk.address}/console`);
  await visits(person, "a stranger");
  await page.getByText('no key is mapped to the subject "a stranger"', { exact: false }).waitFor();
  assert.deepEqual(await person.axe(), []);
  await person.context.clearCookies(); // The provider forgets the stranger.
  await visits(person, "subject of anna");
  await page.getByText("with anna-laptop").waitFor();
  assert.equal(page.url(), `${desk.address}/console`);
  assert.equal(await page.evaluate("sessionStorage.length"), 0);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("button", { name: "Sign in with the test" }).waitFor();
  await person.context.clearCookies(); // The provider asks again who it is.
  const outgoing = page.waitForRequest((request) => request.postData()?.startsWith('{"oidc":') === true);
  await visits(person, "subject of anna");
  await page.getByText("with anna-laptop").waitFor();
  const { known } = JSON.parse((await outgoing).postData() ?? "").oidc;
  assert.match(String(known), /^[\w-]{50,}$/, "the text of a known browser");
}

suite("the console with a provider of OpenID Connect", () => {
  test("a person signs in by one button, and a stranger reads what to do", async (t) => signsIn(t));
  control("positive control: an answer that stays in the address is noticed", async (t) => {
    const find = 'go("/", { replace: true })';
    const stays = signsIn(t, (person) => plant(person, "provider", { within: "finishSignIn", find, put: "0" }));
    await assert.rejects(stays, /oidc\/callback/);
  });
  control("positive control: a flow that stays in the storage is noticed", async (t) => {
    const find = "sessionStorage.removeItem(stored)";
    const stays = signsIn(t, (person) => plant(person, "provider", { within: "finishSignIn", find, put: "0" }));
    await assert.rejects(stays, /1 !== 0/);
  });
  control("positive control: a page that does not say that its browser is known is noticed", async (t) => {
    const find = "localStorage.getItem(storedKnown)";
    const silent = signsIn(t, (person) => plant(person, "provider", { within: "finishSignIn", find, put: "null" }));
    await assert.rejects(silent, /the text of a known browser/);
  });
});
