/**
 * Goal: the keyboard alone leads from the sign-in to a decision, and no single key decides. Method: a real browser whose
 * person never uses a pointer. Every printable key is pressed on the inbox and on an approval, and the rows of the
 * ledger are counted. Positive control: a page on which a key decides.
 */
import assert from "node:assert/strict";
import { suite, test, type TestContext } from "node:test";
import type { Desk } from "../../support/approvals.ts";
import { openBrowser, plant, settled, type Person } from "../../support/browser.ts";
import { keyOf, parks, startConsole } from "../../support/console-kit.ts";
import { control } from "../../support/controls/control.ts";

/** The text, label or name of the element that has the focus. */
function focused({ page }: Person): Promise<string> {
  return page.evaluate<string>(`(() => {
    const at = document.activeElement;
    return at.labels?.[0]?.textContent ?? at.getAttribute("aria-label") ?? at.textContent;
  })()`);
}

/** Presses Tab until the focus is where the text says. */
async function tabTo(person: Person, text: string): Promise<void> {
  const passed: string[] = [];
  for (let presses = 0; presses < 80; presses += 1) {
    await person.page.keyboard.press("Tab");
    const at = await focused(person);
    if (at.startsWith(text)) return;
    passed.push(at.slice(0, 40));
  }
  assert.fail(`Tab does not lead to "${text}": ${passed.join(" | ")}`);
}

async function signInByKeyboard(person: Person, desk: Desk, key: string): Promise<void> {
  await person.page.goto(`${desk.address}/console`);
  await person.page.locator("#key").waitFor();
  if ((await focused(person)) !== "Your key") await tabTo(person, "Your key");
  await person.page.keyboard.type(key);
  await person.page.keyboard.press("Enter");
  await settled(person.page);
}

const printable = Array.from({ length: 0x7f - 0x20 }, (_, at) => String.fromCharCode(0x20 + at));
const others = ["Enter", "Escape", "Backspace", "Delete", "ArrowDown", "ArrowUp", "Home", "End", "F2", "F10"];

/** Presses every key, each on a page as `goes` leaves it. */
async function pressAll(person: Person, goes: () => Promise<void>): Promise<void> {
  const { page } = person;
  await goes();
  const at = page.url();
  for (const key of [...printable, ...others]) {
    await page.keyboard.press(key);
    const isAway = page.url() !== at || (await page.locator("dialog").count()) > 0;
    if (isAway) await goes();
  }
}

/** Presses every key where a decision is near. The cases differ in the element with the focus. */
async function pressEverywhere(t: TestContext, planted = false): Promise<readonly [before: number, after: number]> {
  const desk = await startConsole(t);
  const id = await parks(desk, { amount: 1600 });
  await parks(desk, { amount: 1700 });
  const anna = await openBrowser(t, desk);
  if (planted)
    await plant(anna, "pages/inbox", {
      within: "useKeys",
      find: "go($path)",
      put: "ask(`/approvals/${id}/approve`, { body: JSON.stringify({ hash: approvals.find((each) => each.id === id).hash }) })",
    });
  await anna.signIn(keyOf(desk, "anna"));
  const { page } = anna;
  const before = await desk.rows();
  await pressAll(anna, () => anna.opens("/"));
  await pressAll(anna, async () => {
    await anna.opens("/");
    await page.locator("li.row a.what").first().focus();
  });
  for (const focus of ["body", "#title", "#decide-title"])
    await pressAll(anna, async () => {
      await anna.opens(`/approvals/${id}?decide=1`);
      await page.locator("#decide-title").waitFor();
      await page.evaluate(`document.activeElement.blur(); document.querySelector("${focus}").focus()`);
    });
  return [before, await desk.rows()];
}

suite("the keyboard", () => {
  test("it leads from the sign-in to an approval and to a denial", async (t) => {
    const desk = await startConsole(t);
    const ids = [await parks(desk, { amount: 1600 }), await parks(desk, { amount: 1700 })];
    const anna = await openBrowser(t, desk);
    const { keyboard } = anna.page;
    await signInByKeyboard(anna, desk, keyOf(desk, "anna"));
    await anna.page.locator("li.row").nth(1).waitFor();
    for (const [key, row] of [
      ["j", 0],
      ["j", 1],
      ["j", 1],
      ["k", 0],
      ["k", 0],
    ] as const) {
      await keyboard.press(key);
      const at = await anna.page.evaluate<number>(
        `[...document.querySelectorAll("li.row")].findIndex((each) => each.contains(document.activeElement))`,
      );
      assert.equal(at, row, key);
    }
    await keyboard.press("x");
    await anna.page.getByText("1 selected").waitFor();
    await keyboard.press("x");
    await anna.page.getByText("1 selected").waitFor({ state: "hidden" });
    await keyboard.press("?");
    await anna.page.getByRole("dialog", { name: "Keyboard" }).waitFor();
    await keyboard.press("Escape");
    await anna.page.getByRole("dialog").waitFor({ state: "hidden" });
    await anna.opens("/");
    await anna.page.locator("li.row").nth(1).waitFor();
    await keyboard.press("j");
    await keyboard.press("a");
    await anna.page.waitForURL(`**/approvals/${ids[0]}?decide=1`);
    await anna.page.locator("#decide-title:focus").waitFor();
    await tabTo(anna, "Approve this call");
    await keyboard.press("Enter");
    await anna.page.getByText("Your yes is recorded").waitFor();
    assert.equal((await desk.as("anna", `/approvals/${ids[0]}`)).json.status, "approved");

    await anna.opens("/");
    await anna.page.locator("li.row").first().waitFor();
    await keyboard.press("j");
    await keyboard.press("d");
    await anna.page.locator("#decide-title:focus").waitFor();
    await tabTo(anna, "Comment");
    await keyboard.type("not a payee");
    await tabTo(anna, "Deny");
    await keyboard.press("Space");
    await anna.page.getByText("Your denial is recorded").waitFor();
    const { json } = await desk.as("anna", `/approvals/${ids[1]}`);
    assert.deepEqual([json.status, json.decisions[0].comment], ["denied", "not a payee"]);
  });

  test("Enter opens a call, and the page says where the focus is", async (t) => {
    const desk = await startConsole(t);
    const id = await parks(desk, { amount: 1600 });
    const anna = await openBrowser(t, desk);
    await anna.signIn(keyOf(desk, "anna"));
    await anna.page.locator("li.row").waitFor();
    await anna.page.keyboard.press("j");
    await anna.page.keyboard.press("Enter");
    await anna.page.waitForURL(`**/approvals/${id}`);
    await anna.page.locator("#title:focus").waitFor();
  });

  test("no single key decides, on the inbox and on an approval", async (t) => {
    const [before, after] = await pressEverywhere(t);
    assert.equal(after, before);
  });

  control("positive control: a page on which a key decides writes a row", async (t) => {
    const [before, after] = await pressEverywhere(t, true);
    assert.ok(after > before, `${before} ${after}`);
  });
});
