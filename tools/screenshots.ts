/**
 * `npm run screenshots`: makes the pictures of the console in docs/images. A gate in this process serves a week of
 * made-up calls, whose time this program sets, and a real browser opens the pages as anna and as an administrator.
 */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { ServerResponse } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { launchChromium } from "../test/support/chromium.ts";
import { key, startGate, temporaryFolder, type Running } from "../test/support/gate.ts";
import { palettePng } from "../test/support/png.ts";
import { agents, tellStory, type StoryGate } from "./screenshots/story.ts";

/** A picture: its file, the page, who looks at it, and what that person does first. */
interface Shot {
  readonly name: string;
  readonly path: string;
  readonly who?: "anna" | "otto";
  readonly dark?: boolean;
  readonly first?: (page: Page) => Promise<unknown>;
}

const root = fileURLToPath(new URL("..", import.meta.url));
const images = join(root, "docs", "images");
const size = { width: 1280, height: 860 };
const end = Date.UTC(2026, 10, 20, 14, 30);
/** The moment that each picture shows, a little after all that is done for it. */
const shown = end + 30_000;
const calls = Number(process.env["SCREENSHOT_CALLS"] ?? 3000);

const real = { now: Date.now, monotonic: performance.now.bind(performance) };
let offset = 0;

const endings: (() => Promise<void>)[] = [];
try {
  await main();
} finally {
  for (const ending of endings.toReversed()) await ending();
}

async function main(): Promise<void> {
  // The gate compares both clocks, so both are set.
  Date.now = () => Math.floor(real.now() + offset);
  performance.now = () => real.monotonic() + offset;
  setTime(end - 6 * 86_400_000);
  const t = { after: (ending: () => Promise<void>) => void endings.push(ending) };
  const gate = await startSupport(t);
  const keys = new Map<string, string>();
  const story = storyGate(gate, keys);
  await makeKeys(gate, story, keys);
  await tellStory(story, { end, calls });
  await closeWhatEnds(story);
  sendShownTime();
  const browser = await launchChromium();
  endings.push(() => browser.close());
  mkdirSync(images, { recursive: true });
  for (const shot of await shots(story)) {
    setTime(end);
    const bytes = await take(browser, gate, keys, shot);
    writeFileSync(join(images, `${shot.name}.png`), bytes);
    console.log(`docs/images/${shot.name}.png  ${Math.round(bytes.length / 1000)} kB`);
  }
}

function setTime(at: number): void {
  offset = at - real.now();
}

/** The gate closes approvals whose time is over before it decides the next check. */
async function closeWhatEnds({ send }: StoryGate): Promise<void> {
  setTime(shown - 2000);
  await send("support-bot", "/check", {
    tool_name: "mail.send",
    tool_input: { to: "tom@mail.example", subject: "Your refund", body: "Dear tom, a person looks at it ..." },
    session_id: "ticket-5477",
    platform_state: { customer: "tom", paid_usd: 900, country: "DE" },
  });
}

/** Each answer has the time that the pictures show: Node sends that of the machine, and pages correct their clocks by it. */
function sendShownTime(): void {
  const { prototype } = ServerResponse;
  const writeHead = Reflect.get(prototype, "writeHead") as (...head: unknown[]) => unknown;
  const own = function (this: ServerResponse, ...head: unknown[]): unknown {
    this.setHeader("date", new Date(shown).toUTCString());
    return Reflect.apply(writeHead, this, head);
  };
  Reflect.set(prototype, "writeHead", own);
}

/** Starts the gate on a contract that changes once, so that the page of contracts has a change to show. */
async function startSupport(t: Parameters<typeof startGate>[0]): Promise<Running> {
  const contract = readFileSync(join(root, "tools", "screenshots", "support.yaml"), "utf8");
  const folder = temporaryFolder(t);
  const contracts = { "support.yaml": contract.replace("alone_usd: 50", "alone_usd: 40") };
  return startGate(t, { folder, contracts, mandate: "mandate: support\ncontracts: [contracts/support.yaml]\n" });
}

function storyGate({ address }: Running, keys: ReadonlyMap<string, string>): StoryGate {
  return {
    setTime,
    send: async (who, path, body) => {
      const found = await fetch(address + path, {
        ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
        headers: { authorization: `Bearer ${keys.get(who) ?? key}`, "content-type": "application/json" },
      });
      const text = await found.text();
      if (!found.ok) throw new Error(`${who} ${path}: ${text}`);
      return JSON.parse(text);
    },
  };
}

async function makeKeys(gate: Running, { send }: StoryGate, keys: Map<string, string>): Promise<void> {
  const file = join(gate.folder, "data", "operator.json");
  keys.set("operator", (JSON.parse(readFileSync(file, "utf8")) as { readonly key: string }).key);
  const make = async (who: string, body: object): Promise<void> =>
    void keys.set(who, (await send("operator", "/admin/keys", body)).key as string);
  for (const agent of agents) await make(agent, { name: agent, owner: "support", scopes: ["check", "outcome"] });
  for (const [person, groups] of Object.entries({ anna: ["finance"], bob: ["finance", "legal"] })) {
    await send("operator", "/admin/persons", { name: person });
    await make(person, { name: `${person}-laptop`, scopes: ["approve", "receipts", "rules"], person, groups });
  }
  await make("otto", { name: "otto-laptop", owner: "operations", scopes: ["admin", "receipts", "rules"] });
  await make("prometheus", { name: "prometheus", owner: "operations", scopes: ["metrics"] });
  copyFileSync(join(root, "tools", "screenshots", "support.yaml"), join(gate.folder, "contracts", "support.yaml"));
  await send("operator", "/admin/reload", {});
}

async function shots({ send }: StoryGate): Promise<readonly Shot[]> {
  const { approvals } = await send("anna", "/approvals?state=pending&limit=50");
  const hidden = (approvals as readonly { id: string; receipt: number; reason: string }[]).find(({ reason }) =>
    reason.includes("640"),
  );
  const [used] = (await send("anna", "/receipts?tool_name=refund&verdict=ESCALATE&answered=ALLOW&outcome=done&limit=1"))
    .receipts;
  const showDiff = (page: Page): Promise<unknown> =>
    page.getByRole("button", { name: "Show the diff" }).first().click();
  const explains = async (page: Page): Promise<void> => {
    const call = {
      tool_name: "refund",
      tool_input: { order: "A-5474", usd: 120.5 },
      platform_state: { customer: "lena", paid_usd: 100 },
    };
    await page.getByLabel("The body of a check").fill(JSON.stringify(call, null, 2));
    await page.getByRole("button", { name: "Explain", exact: true }).click();
    await page.getByRole("heading", { name: "The result" }).waitFor();
  };
  const verifies = async (page: Page): Promise<void> => {
    await page.getByRole("button", { name: "Verify now" }).click();
    await page.getByText(/rows are valid/).waitFor();
  };
  const inbox = { name: "inbox", path: "/" };
  const approval = { name: "approval", path: `/approvals/${hidden?.id ?? ""}` };
  return [
    inbox,
    { ...inbox, name: "inbox-dark", dark: true },
    approval,
    { ...approval, name: "approval-dark", dark: true },
    { name: "receipts", path: "/receipts" },
    { name: "receipt", path: `/receipts/${used.seq}` },
    { name: "explain", path: "/explain", first: explains },
    { name: "rollout", path: "/rollout" },
    { name: "contract", path: "/contract", first: showDiff },
    { name: "ledger", path: "/ledger", who: "otto", first: verifies },
    { name: "access", path: "/access", who: "otto" },
  ];
}

async function take(browser: Browser, gate: Running, keys: ReadonlyMap<string, string>, shot: Shot): Promise<Buffer> {
  const { path, who = "anna", dark = false, first } = shot;
  const context = await browser.newContext({
    viewport: size,
    colorScheme: dark ? "dark" : "light",
    locale: "en-GB",
    timezoneId: "UTC",
  });
  await context.clock.setFixedTime(shown);
  const page = await context.newPage();
  await page.goto(`${gate.address}/console`);
  await page.getByLabel("Your key").fill(keys.get(who) ?? "");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator("#title").waitFor();
  await page.goto(`${gate.address}/console${path === "/" ? "" : path}`);
  await page.locator("#title").waitFor();
  await page.getByText("Loading …").first().waitFor({ state: "hidden" });
  await first?.(page);
  await page.getByText("live", { exact: true }).waitFor();
  await page.waitForTimeout(300);
  const taken = await page.screenshot();
  const text = await page.locator("body").innerText();
  if (process.env["SCREENSHOT_WHOLE"] !== undefined)
    writeFileSync(join(process.env["SCREENSHOT_WHOLE"], `${shot.name}.png`), await page.screenshot({ fullPage: true }));
  await context.close();
  return palettePng({ ...size, rgba: await pixelsOf(browser, taken), text });
}

/** The browser decodes its own picture, so no other decoder is needed. */
async function pixelsOf(browser: Browser, png: Buffer): Promise<Buffer> {
  const page = await browser.newPage();
  const text = await page.evaluate<string>(`(async () => {
    const bytes = Uint8Array.from(atob("${png.toString("base64")}"), (letter) => letter.charCodeAt(0));
    const picture = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const canvas = new OffscreenCanvas(picture.width, picture.height);
    const drawing = canvas.getContext("2d");
    drawing.drawImage(picture, 0, 0);
    const { data } = drawing.getImageData(0, 0, picture.width, picture.height);
    let text = "";
    for (let at = 0; at < data.length; at += 32768) text += String.fromCharCode(...data.subarray(at, at + 32768));
    return btoa(text);
  })()`);
  await page.close();
  return Buffer.from(text, "base64");
}
