/**
 * Goal: everyone can read every page of the console: with a screen reader, in the dark, on a small screen, with large
 * letters, and with the colours of their own system; and a person who decides sees the call and both buttons. Method: a
 * gate with a bit of everything, real browsers as an approver and as an administrator, axe, and the positions of words and
 * buttons. Positive control: pages with planted mistakes are reported.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { Locator } from "playwright-core";
import type { Desk } from "../../support/approvals.ts";
import { openBrowser, settled, type Person } from "../../support/browser.ts";
import { fill, keyOf, parks, startConsole } from "../../support/console-kit.ts";
import { control } from "../../support/controls/control.ts";

const pages: readonly string[] = [
  "/",
  "/?show=approved",
  "/?show=closed",
  "/approvals/OPEN",
  "/receipts",
  "/receipts?verdict=ALLOW&tool_name=nothing",
  "/receipts/ROW",
  "/explain",
  "/rollout",
  "/contract",
  "/ledger",
  "/access",
  "/nowhere",
];

/** The parts of a page that are wider than the window, so that a reader must scroll for each line. */
async function overflow({ page }: Person): Promise<string> {
  return page.evaluate<string>(`(() => {
    const { scrollWidth, clientWidth } = document.scrollingElement;
    if (scrollWidth <= clientWidth) return "";
    const wide = [...document.querySelectorAll("main *, header *")].filter((each) =>
      each.getBoundingClientRect().right > clientWidth + 1 && each.closest(".scroll, pre") === null);
    const names = wide.map((each) => each.tagName.toLowerCase() + "." + [...each.classList].join("."));
    return scrollWidth + " > " + clientWidth + ": " + [...new Set(names)].slice(0, 8).join(", ");
  })()`);
}

/** The words that the page has broken in two. Names, digests and keys over 24 characters may break. */
async function brokenWords({ page }: Person): Promise<readonly string[]> {
  return page.evaluate<readonly string[]>(`(() => {
    const broken = [];
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text !== null; text = texts.nextNode()) {
      if (!text.parentElement.checkVisibility() || text.parentElement.closest(".unseen, .skip, pre, .source") !== null) continue;
      for (const { 0: word, index } of text.data.matchAll(/[^\\s-]{2,24}(?![^\\s-])/g)) {
        if (/[^\\s-]/.test(text.data[index - 1] ?? " ")) continue;
        const range = document.createRange();
        range.setStart(text, index);
        range.setEnd(text, index + word.length);
        const lines = new Set([...range.getClientRects()].filter(({ width }) => width > 0).map(({ top }) => Math.round(top)));
        if (lines.size > 1) broken.push(word + " in " + text.parentElement.tagName);
      }
    }
    return [...new Set(broken)];
  })()`);
}

/** The letters that differ too little from what is behind them, where the system sets the colours. */
async function unreadable({ page }: Person): Promise<readonly string[]> {
  return page.evaluate<readonly string[]>(`[...document.querySelectorAll(".badge, .state, .mode, .live, button, a")]
    .filter((each) => each.checkVisibility())
    .filter((each) => {
      let behind = each;
      const paint = (of) => getComputedStyle(of).backgroundColor;
      while (behind !== null && paint(behind) === "rgba(0, 0, 0, 0)") behind = behind.parentElement;
      const ground = behind === null ? "rgb(255, 255, 255)" : paint(behind);
      return each.textContent.trim() === "" || getComputedStyle(each).color === ground;
    })
    .map((each) => each.outerHTML)`);
}

/** Is all of an element within the window, with nothing over it? */
async function isInView({ page }: Person, of: Locator): Promise<boolean> {
  const box = await of.boundingBox();
  const size = page.viewportSize();
  if (box === null || size === null) return false;
  const isInside = box.x >= 0 && box.y >= 0 && box.x + box.width <= size.width && box.y + box.height <= size.height;
  const centre = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  return (
    isInside && of.evaluate((each: any, { x, y }) => each.contains(each.ownerDocument.elementFromPoint(x, y)), centre)
  );
}

/** Returns every fault of the page that is open. */
async function faultsOf(person: Person): Promise<readonly string[]> {
  const { page } = person;
  const faults: string[] = [];
  const note = (where: string, found: readonly string[]): void =>
    void faults.push(...found.filter((each) => each !== "").map((each) => `${where}: ${each}`));
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    note(colorScheme, await person.axe());
  }
  await page.emulateMedia({ colorScheme: "light", forcedColors: "active" });
  note("forced colours", await unreadable(person));
  await page.emulateMedia({ forcedColors: "none" });
  for (const width of [1280, 390, 360]) {
    await page.setViewportSize({ width, height: 860 });
    note(`${width} pixels, broken`, await brokenWords(person));
  }
  await page.setViewportSize({ width: 320, height: 640 });
  note("320 pixels", [await overflow(person)]);
  note("320 pixels", await person.axe());
  await page.setViewportSize({ width: 1280, height: 860 });
  return faults;
}

/** The address of a page: OPEN stands for an approval that waits, ROW for its receipt. */
async function addressOf(desk: Desk, path: string): Promise<string> {
  const { json } = await desk.as("anna", "/approvals?state=pending&limit=1");
  const [{ id, receipt }] = json.approvals;
  return path.replace("OPEN", id).replace("ROW", String(receipt));
}

suite("the console's pages", () => {
  for (const who of ["anna", "otto"])
    test(`${who} can read each page`, async (t) => {
      const desk = await startConsole(t);
      await fill(desk);
      const person = await openBrowser(t, desk);
      await person.page.goto(`${desk.address}/console`);
      await person.page.getByLabel("Your key").waitFor();
      const faults = new Map<string, readonly string[]>([["sign-in", await faultsOf(person)]]);
      await person.signIn(keyOf(desk, who));
      for (const path of pages) {
        await person.opens(await addressOf(desk, path));
        faults.set(path, await faultsOf(person));
      }
      assert.deepEqual(Object.fromEntries([...faults].filter(([, found]) => found.length > 0)), {});
    });

  for (const [width, height] of [
    [1280, 800],
    [390, 844],
  ] as const)
    test(`Deny and Approve are in view with a call of five members, at ${width} x ${height}`, async (t) => {
      const desk = await startConsole(t);
      const person = await openBrowser(t, desk, { viewport: { width, height } });
      await person.signIn(keyOf(desk, "anna"));
      const extra = { order: "A-1", currency: "USD" };
      await person.opens(`/approvals/${await parks(desk, { note: "for the boat", extra })}`);
      for (const text of ["1200", "for the boat", "A-1", "USD"])
        assert.ok(await isInView(person, person.page.locator(".call").first().getByText(text)), text);
      for (const name of ["Deny", "Approve this call"])
        assert.ok(await isInView(person, person.page.getByRole("button", { name, exact: true })), name);
      const head = await person.page.locator("header.side-bar").boundingBox();
      assert.ok(width > 400 || (head !== null && head.height < 56), JSON.stringify(head));
      const long = Object.fromEntries(Array.from({ length: 80 }, (_, at) => [`n${at}`, at]));
      await person.opens(`/approvals/${await parks(desk, { extra: long })}`);
      const deny = person.page.getByRole("button", { name: "Deny", exact: true });
      assert.ok(!(await isInView(person, deny)), "a person reads the call first");
      await person.page.getByText("Facts from the platform").scrollIntoViewIfNeeded();
      assert.ok(await isInView(person, deny), "the buttons come with the end of the call");
    });

  test("a phone's menu opens the other pages, and closes when one is chosen", async (t) => {
    const desk = await startConsole(t);
    const { page, ...person } = await openBrowser(t, desk, { viewport: { width: 390, height: 844 } });
    await person.signIn(keyOf(desk, "anna"));
    assert.ok(!(await page.getByRole("link", { name: "Receipts" }).isVisible()));
    await page.getByRole("button", { name: "Menu" }).click();
    await page.getByRole("link", { name: "Receipts" }).click();
    await page.getByRole("heading", { name: "Receipts" }).waitFor();
    assert.ok(!(await page.getByRole("link", { name: "Inbox" }).isVisible()));
  });

  for (const width of [1280, 640])
    test(`letters of twice the size fit into a window of ${width} pixels`, async (t) => {
      const desk = await startConsole(t);
      await fill(desk);
      const person = await openBrowser(t, desk, { hasLargeLetters: true, viewport: { width, height: 860 } });
      await person.signIn(keyOf(desk, "anna"));
      assert.equal(await person.page.evaluate("getComputedStyle(document.documentElement).fontSize"), "30px");
      const wide = new Map<string, string>();
      for (const path of pages) {
        await person.opens(await addressOf(desk, path));
        wide.set(path, await overflow(person));
      }
      assert.deepEqual(Object.fromEntries([...wide].filter(([, found]) => found !== "")), {});
    });

  test("an empty inbox can be read on a new gate", async (t) => {
    const fresh = await startConsole(t);
    const person = await openBrowser(t, fresh);
    await person.signIn(keyOf(fresh, "anna"));
    assert.deepEqual(await faultsOf(person), []);
  });

  control("positive control: mistakes in a page are reported", async (t) => {
    const desk = await startConsole(t);
    const person = await openBrowser(t, desk);
    await person.signIn(keyOf(desk, "anna"));
    await settled(person.page);
    await person.page.evaluate(`(() => {
      const wide = document.createElement("div");
      wide.style.width = "2000px";
      wide.textContent = "wide";
      const pale = document.createElement("p");
      pale.style.color = "#eee";
      pale.textContent = "pale";
      const empty = document.createElement("button");
      const narrow = document.createElement("div");
      narrow.style = "width: 3em; overflow-wrap: anywhere";
      narrow.textContent = "unbreakable";
      document.querySelector("main").append(wide, pale, empty, narrow);
    })()`);
    const faults = (await faultsOf(person)).join("\n");
    for (const found of [
      /light: color-contrast: #main > p/,
      /button-name/,
      /320 pixels: .*> 320/,
      /1280 pixels, broken: unbreakable in DIV/,
      /forced colours: <button/,
    ])
      assert.match(faults, found);
  });
});
