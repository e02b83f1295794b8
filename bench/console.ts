import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request, type ClientRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { consoleAssets } from "../packages/console/src/server/assets.ts";
import { launchChromium } from "../test/support/chromium.ts";
import { besideStreams, openStream } from "./beside.ts";
import { gateSettings, start, type Load, type Server } from "./check.ts";
import { fillElsewhere } from "./fill.ts";
import { atLeast, atMost, conclude, median, medianInterval, printTable, round, shown } from "./report.ts";

const rows = Number(process.env["BENCH_ROWS"] ?? 1_000_000);
const rounds = Number(process.env["BENCH_ROUNDS"] ?? 7);
const seconds = Number(process.env["BENCH_SECONDS"] ?? 2);
const approvals = 200;
const consoles = 50;
const slowdown = 4;

/**
 * Measures the console: the size of its files, the time from sign-in to an inbox with 200 approvals on a slow processor,
 * a page of receipts in a large ledger, the pages of calls that an agent made to be slow, and checks beside 50 open
 * consoles.
 */
export async function benchConsole(): Promise<void> {
  const sizes = await fileSizes();
  const folder = mkdtempSync(join(tmpdir(), "svc-gate-bench-"));
  const data = join(folder, "data");
  fillElsewhere(data, rows);
  const gate = await start(["--max-semi-space-size=8", "bin/svc-gate.mjs", "serve"], gateSettings(data));
  try {
    const operator = (JSON.parse(readFileSync(join(data, "operator.json"), "utf8")) as { readonly key: string }).key;
    const person = await makePerson(gate, operator, "anna");
    const other = await makePerson(gate, operator, "bob"); // One key may sign in 30 times.
    const pages = await pageTimes(gate, person);
    const open = (): Promise<readonly ClientRequest[]> =>
      Promise.all(Array.from({ length: consoles }, (_, at) => openConsole(gate, at % 2 === 0 ? person : other)));
    const { without, beside } = await besideStreams(gate, { rounds, seconds, open });
    await escalate(gate, operator);
    const inbox = await inboxTimes(gate, await makePerson(gate, operator, "cleo"));
    const calls = await callTimes(gate, await makePerson(gate, operator, "dora"), await hostileCalls(gate, operator));
    report({ sizes, pages, without, beside, inbox, calls });
  } finally {
    gate.child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Sizes {
  readonly inbox: number;
  readonly all: number;
  readonly uplot: number;
}

/** The compressed bytes of scripts and styles. */
async function fileSizes(): Promise<Sizes> {
  const { files, first } = await consoleAssets();
  const sum = (names: Iterable<string>): number =>
    [...names].reduce((bytes, name) => bytes + (files.get(name)?.gzip.length ?? 0), 0);
  const uplot = sum(["npm/uplot.js"]);
  return { inbox: sum([...first, "console/src/browser/style.css"]), all: sum(files.keys()) - uplot, uplot };
}

async function makePerson(gate: Server, operator: string, name: string): Promise<string> {
  await post(gate, operator, "/admin/persons", { name });
  const made = await post(gate, operator, "/admin/keys", {
    name: `${name}-laptop`,
    scopes: ["approve", "receipts"],
    person: name,
  });
  return (made as { readonly key: string }).key;
}

async function post({ url }: Server, key: string, path: string, body: object): Promise<unknown> {
  const answer = await fetch(url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
  return answer.json();
}

/** Milliseconds for a page of receipts, at many positions of the ledger. */
async function pageTimes({ url }: Server, key: string): Promise<readonly number[]> {
  const times: number[] = [];
  for (let at = 1; at <= 40; at += 1) {
    const before = Math.floor((rows / 40) * at);
    const filter = at % 2 === 0 ? "" : "&tool_name=payment.send&answered=ALLOW";
    const startedAt = performance.now();
    const answer = await fetch(`${url}/receipts?limit=50&before=${before}${filter}`, {
      headers: { authorization: `Bearer ${key}` },
    });
    await answer.text();
    times.push(performance.now() - startedAt);
  }
  return times;
}

/** What an open page keeps at the gate: a session and a stream of events. */
async function openConsole({ url }: Server, key: string): Promise<ClientRequest> {
  const { origin } = new URL(url);
  const page = { "x-svc-console": "1", "sec-fetch-site": "same-origin", origin };
  const signed = await send(
    `${url}/console/session`,
    { ...page, "content-type": "application/json" },
    JSON.stringify({ key }),
  );
  const cookie = String(signed.cookie).split(";")[0] ?? "";
  const secret = (JSON.parse(signed.text) as { readonly session: string }).session;
  return openStream(`${url}/console/api/events`, { ...page, cookie, "x-svc-session": secret, "x-svc-background": "1" });
}

function send(
  url: string,
  headers: Readonly<Record<string, string>>,
  body: string,
): Promise<{ readonly cookie: unknown; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method: "POST", headers }, (answer) => {
      let text = "";
      answer.on("data", (piece: Buffer) => (text += piece.toString()));
      answer.on("end", () => resolve({ cookie: answer.headers["set-cookie"]?.[0], text }));
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

/** Calls that a person must decide: the price of their resource is not known. One key has at most 100 open. */
async function escalate(gate: Server, operator: string): Promise<void> {
  const names = ["agent-a", "agent-b", "agent-c"];
  const made = await Promise.all(names.map((name) => post(gate, operator, "/admin/keys", { name, scopes: ["check"] })));
  const keys = made.map((each) => (each as { readonly key: string }).key);
  for (let at = 0; at < approvals; at += 1)
    await post(gate, keys[at % keys.length] ?? "", "/check", callOf(at, `run-${Math.floor(at / 4)}`));
}

function callOf(at: number, session: string, more: object = {}): object {
  return {
    tool_name: "payment.send",
    tool_input: {
      amount: 5 + at / 100,
      currency: "USD",
      payee_address: "shop.example",
      offer_expires_epoch: 4_102_444_800,
      ...more,
    },
    session_id: session,
    platform_state: { monthly_spend_usd: 0, approved_payees: ["shop.example"], now_epoch: 1_767_225_600 },
  };
}

/** Texts of nearly 256 KiB that would make a page slow, if it showed them whole or had an element for each character. */
const hostile: Readonly<Record<string, string>> = {
  "60,000 hidden characters": "\u200b".repeat(60_000),
  "hidden characters between letters": "a\u200b".repeat(60_000),
  "combining marks": "\u0301".repeat(120_000),
  "one long word": "x".repeat(250_000),
  "letters from right to left": "a\u05d0".repeat(80_000),
};

/** Asks the calls, and after each a harmless one of the same key. Returns their approvals by what is in their texts. */
async function hostileCalls(gate: Server, operator: string): Promise<ReadonlyMap<string, string>> {
  const calls = new Map<string, string>();
  for (const [at, [name, text]] of Object.entries(hostile).entries()) {
    const made = await post(gate, operator, "/admin/keys", { name: `agent-${at}`, scopes: ["check"] });
    const { key } = made as { readonly key: string };
    for (const [about, merchant] of [
      [name, text],
      [`the call after ${name}`, "shop"],
    ] as const) {
      const answer = await post(gate, key, "/check", callOf(at, `hostile-${at}`, { merchant }));
      calls.set(about, (answer as { readonly approval: { readonly id: string } }).approval.id);
    }
  }
  return calls;
}

/** Milliseconds from the address of a call's page until it has its buttons, by what is in the call. */
async function callTimes(
  { url }: Server,
  key: string,
  calls: ReadonlyMap<string, string>,
): Promise<ReadonlyMap<string, readonly number[]>> {
  const times = new Map<string, number[]>([...calls.keys()].map((name) => [name, []]));
  const browser = await launchChromium();
  try {
    const page = await (await browser.newContext()).newPage();
    await page.goto(`${url}/console`);
    await page.fill("#key", key);
    await page.click("button[type=submit]");
    await page.locator("#title").waitFor();
    for (let turn = 0; turn <= rounds; turn += 1)
      for (const [name, id] of calls) {
        const startedAt = performance.now();
        await page.goto(`${url}/console/approvals/${id}`);
        await page.getByRole("button", { name: "Deny", exact: true }).waitFor();
        await page.evaluate("new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))");
        if (turn > 0) times.get(name)?.push(performance.now() - startedAt);
      }
    return times;
  } finally {
    await browser.close();
  }
}

/** Milliseconds from the press of "Sign in" to an inbox with all approvals that takes the next key. */
async function inboxTimes({ url }: Server, key: string): Promise<readonly number[]> {
  const browser = await launchChromium();
  try {
    const times: number[] = [];
    for (let turn = 0; turn <= rounds; turn += 1) {
      const ms = await inboxTime(browser, url, key);
      if (turn > 0) times.push(ms);
    }
    return times;
  } finally {
    await browser.close();
  }
}

async function inboxTime(browser: Browser, url: string, key: string): Promise<number> {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    const cdp = await context.newCDPSession(page);
    await page.goto(`${url}/console`);
    await page.fill("#key", key);
    await cdp.send("Emulation.setCPUThrottlingRate", { rate: slowdown });
    return await page.evaluate<number>(pressing);
  } finally {
    await context.close();
  }
}

/** Runs in the page, because the throttle does not slow this process. */
const pressing = `(async () => {
  const began = performance.now();
  document.querySelector("button[type=submit]").click();
  for (;;) {
    await new Promise(requestAnimationFrame);
    if (document.querySelectorAll("li.row").length >= ${approvals}) break;
    if (performance.now() - began > 30_000) throw new Error("the inbox did not come");
  }
  await new Promise((resolve) => setTimeout(resolve)); // The page takes input now.
  return performance.now() - began;
})()`;

interface Found {
  readonly without: readonly Load[];
  readonly beside: readonly Load[];
  readonly sizes: Sizes;
  readonly pages: readonly number[];
  readonly inbox: readonly number[];
  readonly calls: ReadonlyMap<string, readonly number[]>;
}

function report({ sizes, pages, without, beside, inbox, calls }: Found): void {
  const cpu = (side: readonly Load[]): number => median(side.map(({ cpuMicros }) => cpuMicros));
  const perSecond = (side: readonly Load[]): number => median(side.map((each) => each.perSecond));
  console.log(`\n${rows} rows, ${rounds} rounds; medians with their 95 % intervals`);
  printTable([
    ["", "value"],
    ["compressed, inbox", sizes.inbox],
    ["compressed, all pages without uPlot", sizes.all],
    ["compressed, uPlot", sizes.uplot],
    ["a page of receipts, ms", shown(medianInterval(pages))],
    [
      `sign-in to an inbox with ${approvals} approvals, processor slowed ${slowdown} times, ms`,
      shown(medianInterval(inbox)),
    ],
    ...[...calls].map(([name, times]) => [`the page of ${name}, ms`, shown(medianInterval(times))]),
    ["checks/s without consoles", shown(medianInterval(without.map((each) => each.perSecond)))],
    [`checks/s with ${consoles} consoles`, shown(medianInterval(beside.map((each) => each.perSecond)))],
    ["processor time for each check without, \u00b5s", round(cpu(without))],
    ["processor time for each check with, \u00b5s", round(cpu(beside))],
  ]);
  conclude("console", {
    inbox_bytes: atMost(sizes.inbox, 45_000),
    all_bytes: atMost(sizes.all, 90_000),
    receipts_page_ms: atMost(Math.max(...pages), 100),
    inbox_ms: atMost(median(inbox), 1000),
    slowest_call_ms: atMost(Math.max(...[...calls.values()].map(median)), 1000),
    checks_with_over_without: atLeast(perSecond(beside) / perSecond(without), 0.97),
    checks_for_each_processor_second_with_over_without: atLeast(cpu(without) / cpu(beside), 0.97),
  });
}
