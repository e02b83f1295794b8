import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after } from "node:test";
import type { AxeResults } from "axe-core";
import type { Browser, BrowserContext, BrowserContextOptions, ConsoleMessage, Page, Response } from "playwright-core";
import { launchChromium } from "./chromium.ts";
import { noteMutated } from "./controls/control.ts";
import { atEnd, root, type Ending } from "./gate.ts";
import { mutatedText, type Mutation } from "./mutation/mutate.ts";
import { patienceMs } from "./patience.ts";

/** People who use the gate's console, each in a browser context of its own. */

const started = new Map<boolean, Promise<Browser>>();

after(async () => {
  for (const browser of started.values()) await (await browser).close();
});

const largeLetters = "--blink-settings=defaultFontSize=32,defaultFixedFontSize=26";

export interface BrowserOptions extends BrowserContextOptions {
  /** True to let a test add to the pages what their policy forbids. */
  readonly bypassCSP?: boolean;
  /** True for a person who has set the letters in the browser to twice their size. */
  readonly hasLargeLetters?: boolean;
}

/** A person with an own browser. */
export interface Person {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Allows complaints that match, such as `status of 409`; all others fail the test at its end. */
  readonly expects: (...complaints: readonly RegExp[]) => void;
  /** The complaints so far that the test does not expect. */
  readonly complaints: () => readonly string[];
  /** Opens the console, and signs in with a key through the form. */
  readonly signIn: (key: string) => Promise<void>;
  /** Opens a page of the console by its address, such as `/receipts?key=default`, and waits until it has loaded. */
  readonly opens: (path: string) => Promise<void>;
  /** Runs axe on the page as it is now. Returns a line for each violation and element. */
  readonly axe: () => Promise<readonly string[]>;
}

/**
 * Opens a browser for one person. At the test's end it fails the test for each error in the browser's console, script
 * error, violation of the page's policy, request to another origin, and file of the console that was not loaded.
 *
 * @param gate where the gate listens, such as `http://127.0.0.1:8080`
 */
export async function openBrowser(
  t: Ending,
  { address }: { readonly address: string },
  { hasLargeLetters = false, ...options }: BrowserOptions = {},
): Promise<Person> {
  const starting = started.get(hasLargeLetters) ?? launchChromium(hasLargeLetters ? [largeLetters] : []);
  started.set(hasLargeLetters, starting);
  const browser = await starting;
  const usual = {
    viewport: { width: 1280, height: 860 },
    locale: "en-US",
    timezoneId: "UTC",
    // A colour that changes slowly is not yet the one that a test wants to see.
    reducedMotion: "reduce",
  } as const;
  const context = await browser.newContext({ ...usual, ...options });
  const complaints: string[] = [];
  const expected: RegExp[] = [];
  const unexpected = (): readonly string[] =>
    complaints.filter((complaint) => !expected.some((pattern) => pattern.test(complaint)));
  await watch(context, new URL(address).origin, complaints);
  atEnd(t, () => context.close());
  t.after(async () => assert.deepEqual(unexpected(), [], "the browser complained"));
  const page = await context.newPage();
  page.setDefaultTimeout(patienceMs);
  return {
    page,
    context,
    expects: (...patterns) => void expected.push(...patterns),
    complaints: unexpected,
    signIn: (key) => signIn(page, address, key),
    opens: (path) => opens(page, address, path),
    axe: () => runAxe(page),
  };
}

/** Notes all that a page of the console must not do. */
async function watch(context: BrowserContext, origin: string, complaints: string[]): Promise<void> {
  context.on("console", (message: ConsoleMessage) => {
    if (message.type() === "error" || message.type() === "warning")
      complaints.push(`console: ${message.text()} ${message.location().url}`.trim());
  });
  context.on("weberror", (error) => complaints.push(`error: ${error.error().stack ?? error.error().message}`));
  context.on("request", (request) => {
    const url = new URL(request.url());
    if (url.origin !== origin && url.protocol !== "blob:") complaints.push(`request to another origin: ${url.href}`);
  });
  context.on("response", (response: Response) => {
    if (response.status() >= 400 && response.url().includes("/assets/"))
      complaints.push(`file ${response.url()}: status ${response.status()}`);
  });
  context.on("requestfailed", (request) => {
    const reason = request.failure()?.errorText ?? "";
    // The page itself ends its requests when it is left.
    if (reason !== "net::ERR_ABORTED") complaints.push(`failed ${request.url()}: ${reason}`);
  });
  await context.exposeBinding("reportViolation", (_source, text: unknown) => {
    complaints.push(`policy: ${String(text)}`);
  });
  await context.addInitScript(
    `addEventListener("securitypolicyviolation", (event) =>
       reportViolation([event.violatedDirective, event.blockedURI, event.sample, event.sourceFile].join(" ")), true)`,
  );
}

async function signIn(page: Page, address: string, key: string): Promise<void> {
  await page.goto(`${address}/console`);
  await page.getByLabel("Your key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await settled(page);
}

async function opens(page: Page, address: string, path: string): Promise<void> {
  await page.goto(`${address}/console${path === "/" ? "" : path}`);
  await settled(page);
}

/** Plants a defect in a module of the pages, such as `pages/inbox`, for a control. The pages must not be open yet. */
export async function plant({ context }: Person, module: string, mutation: Mutation): Promise<void> {
  noteMutated(join(root, "packages", "console", "src", "browser", `${module}.ts`));
  await context.route(`**/console/src/browser/${module}.js`, async (route) => {
    const response = await route.fetch();
    const body = mutatedText(await response.text(), [mutation], "js");
    await route.fulfill({ status: 200, contentType: "text/javascript", body });
  });
}

/** Waits until the page has its title and waits for no answer. */
export async function settled(page: Page): Promise<void> {
  await page
    .locator("#title")
    .waitFor()
    .catch(async () => {
      throw new Error(`${page.url()} has no title: ${await page.locator("body").innerText()}`);
    });
  await page.getByText("Loading \u2026").first().waitFor({ state: "hidden" });
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The page's policy allows no foreign script, so axe comes in as the debugger's own code. */
async function runAxe(page: Page): Promise<readonly string[]> {
  await page.evaluate(axeSource);
  const { violations } = await page.evaluate<AxeResults>("axe.run(document, { resultTypes: ['violations'] })");
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target.join(" ")}: ${failureSummary ?? ""}`),
  );
}
