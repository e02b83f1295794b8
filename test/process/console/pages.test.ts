/**
 * Goal: everyone can read every page of the console: with a screen reader, in the dark, on a small screen, with large
 * letters, and with the colours of their own system. Method: a gate with a bit of everything, real browsers as an
 * approver and as an administrator, and axe. Positive control: pages with planted mistakes are reported.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { Desk } from "../../support/approvals.ts";
import { openBrowser, settled, type Person } from "../../support/browser.ts";
import { fill, keyOf, startConsole } from "../../support/console-kit.ts";
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
      document.querySelector("main").append(wide, pale, empty);
    })()`);
    const faults = (await faultsOf(person)).join("\n");
    for (const found of [
      /light: color-contrast: #main > p/,
      /button-name/,
      /320 pixels: .*> 320/,
      /forced colours: <button/,
    ])
      assert.match(faults, found);
  });
});
