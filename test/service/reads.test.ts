/**
 * Goal: reads delay no check, and a key with many reads delays only its own. Method: gates over HTTP. For each route, the
 * test takes all places or all turns, and looks if its requests wait; a table in spec/api.md must say the same. Positive
 * controls: requests that wait for nothing, and gates whose places and turns have no bound.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { suite, test } from "node:test";
import type { ReadKind } from "../../packages/gate/src/server/admission/reads.ts";
import { routes } from "../../packages/gate/src/server/http/routes.ts";
import type { HttpRoute } from "../../packages/gate/src/server/http/route.ts";
import { limits } from "../../packages/core/src/wire/mod.ts";
import { small, startDesk, type Desk } from "../support/approvals.ts";
import { control } from "../support/controls/control.ts";
import { ask, check, root, startGate, submit, type Answer, type Running } from "../support/gate.ts";
import { eventually } from "../support/patience.ts";

const call = '{"tool_name":"note.add","tool_input":{}}';
const never = new AbortController();

/** A request of each route that reads, and the status of its answer. */
const requests: Readonly<Record<string, { readonly path?: string; readonly body?: object; readonly status?: number }>> =
  {
    "GET /rules": {},
    "GET /rules/example": {},
    "POST /explain": { body: { call: { tool_name: "note.add", tool_input: {} } } },
    "GET /receipts": {},
    "GET /receipts/:seq": { path: "/receipts/1" },
    "GET /report": {},
    "GET /ledger/verify": {},
    "GET /checkpoint": {},
    "GET /tile/*": { path: "/tile/entries/000.p/1" },
    "GET /metrics": {},
    "GET /approvals": {},
    "GET /approvals/:id": { path: "/approvals/1-0123456789abcdef", status: 404 },
    "GET /grants": {},
    "POST /grants": {
      body: { approval: "1-0123456789abcdef", hash: "0".repeat(64), preview: true, uses: 1 },
      status: 404,
    },
    "GET /events": { path: "/events?after=0" },
    "GET /stop": {},
    "GET /admin/keys": { status: 200 },
    "GET /admin/persons": {},
    "GET /admin/notify": {},
  };

const nameOf = ({ method, path }: HttpRoute): string => `${method} ${path}`;
const kindOf = ({ reads, readsItself }: HttpRoute): ReadKind | undefined => reads ?? readsItself;

/** Sends the request of a route. */
async function send(gate: Running, name: string, keys: Keys): Promise<number> {
  const [method = "", route = ""] = name.split(" ");
  const { path = route, body } = requests[name] ?? {};
  const own = route.startsWith("/admin/") ? keys.operator : keys.reader;
  const headers = { authorization: `Bearer ${own}`, ...(body && { "content-type": "application/json" }) };
  const gone = new AbortController();
  const text = body === undefined ? {} : { body: JSON.stringify(body) };
  const { status } = await fetch(`${gate.address}${path}`, { method, headers, ...text, signal: gone.signal });
  gone.abort(); // A stream of events does not end by itself.
  return status;
}

interface Keys {
  readonly operator: string;
  /** Opens the routes that read. */
  readonly reader: string;
}

/** Makes a key for the routes that read. */
async function makeKeys(gate: Running): Promise<Keys> {
  const operator = JSON.parse(readFileSync(join(gate.folder, "data", "operator.json"), "utf8")).key as string;
  const headers = { authorization: `Bearer ${operator}`, "content-type": "application/json" };
  const post = (path: string, body: object): Promise<Answer> =>
    ask(gate, path, { method: "POST", headers, body: JSON.stringify(body) });
  await post("/admin/persons", { name: "anna" });
  const scopes = ["rules", "receipts", "metrics", "approve"];
  const { json } = await post("/admin/keys", { name: "reader", scopes, person: "anna" });
  return { operator, reader: json.key as string };
}

/** Takes all places of the root. Returns a function that gives them back. */
async function takePlaces(gate: Running, kind: ReadKind): Promise<() => void> {
  const { readsOfTenantMax, longReadsOfTenantMax } = limits;
  const explanation = Math.min(limits.explainsMax, Math.max(1, availableParallelism() - 1));
  const places = { short: readsOfTenantMax, long: longReadsOfTenantMax, replay: readsOfTenantMax, explanation }[kind];
  const reads = Array.from({ length: places }, (_, n) => gate.reads.enter(kind, { tenant: null, id: `k${n}` }, never));
  const entered = await Promise.all(reads);
  return () => entered.forEach((each) => each.ok && each.value.leave());
}

suite("every route", () => {
  const reading = routes.filter((route) => kindOf(route) !== undefined);

  test("that is a GET reads in a place, or is known to answer from memory", () => {
    const others = routes.filter((route) => route.method === "GET" && kindOf(route) === undefined);
    const known = [
      "/.well-known/authzen-configuration",
      "/.well-known/authzen-configuration/t/:tenant",
      "/health",
      "/ready",
    ];
    assert.deepEqual(others.map(({ path }) => path).toSorted(), known);
    assert.deepEqual(reading.map(nameOf).toSorted(), Object.keys(requests).toSorted());
  });

  test("that reads waits for a place, and everything else does not", async (t) => {
    const gate = await startGate(t);
    const keys = await makeKeys(gate);
    await check(gate, call);
    for (const route of reading) {
      const name = nameOf(route);
      const kind = kindOf(route) as ReadKind;
      const line = gate.reads.lines[kind];
      const leave = await takePlaces(gate, kind);
      const answered = send(gate, name, keys);
      await eventually(`${name} waits`, () => line.waiting === 1);
      assert.equal((await check(gate, call)).status, 200, "positive control: a check does not wait");
      assert.equal((await ask(gate, "/health")).status, 200, "positive control: nor does /health");
      leave();
      assert.equal(await answered, requests[name]?.status ?? 200, name);
      const again = await takePlaces(gate, kind);
      again();
      assert.equal(line.waiting, 0, `${name} has given its place back`);
    }
  });

  test("that reads more than memory waits for its turn, and gives it back", async (t) => {
    const gate = await startGate(t);
    const keys = await makeKeys(gate);
    await check(gate, call);
    const { turns } = gate.reads;
    // POST /grants reads only about a call that waits for a person.
    for (const route of reading.filter(({ method, path }) => method !== "POST" || path !== "/grants")) {
      const name = nameOf(route);
      const taken = await turns.start();
      const before = turns.started;
      const answered = send(gate, name, keys);
      const isApart = route.isApart === true && route.path !== "/ledger/verify";
      if (isApart) assert.equal(await answered, 200, `positive control: ${name} has no turn`);
      taken.end();
      assert.equal(await answered, requests[name]?.status ?? 200, name);
      if (!isApart) assert.ok(turns.started > before, name);
    }
  });
});

test("a slice of a page has at most 32 receipts", async (t) => {
  const gate = await startGate(t);
  for (let n = 0; n < 100; n += 1) await check(gate, call);
  const slices = async (limit: number): Promise<number> => {
    const before = gate.reads.turns.started;
    assert.equal((await ask(gate, `/receipts?limit=${limit}`)).json.receipts.length, limit);
    return gate.reads.turns.started - before;
  };
  const one = await slices(32);
  assert.deepEqual([await slices(64), await slices(100)], [one + 1, one + 3]);
});

test("a slice that reads approvals has at most 16, however large their calls are", async (t) => {
  const contract =
    "contract: pay\ntools: { pay: { input: { type: object, additionalProperties: true }, otherwise: ESCALATE } }\nrules: []\n";
  const open = "approvals: { open: { key: 100, session: 25, ledger: 100 } }";
  const gate = await startGate(t, {
    contracts: { "pay.yaml": contract },
    mandate: `mandate: pay\ncontracts: [contracts/pay.yaml]\n${open}\n`,
  });
  const keys = await makeKeys(gate);
  let path = "";
  for (let n = 0; n < 64; n += 1) {
    const body = { tool_name: "pay", tool_input: { n, text: "x".repeat(100_000) }, session_id: `s${n % 8}` };
    const { json } = await check(gate, body);
    path = `/approvals/${json.approval.id}`;
  }
  const slices = async (of: string): Promise<number> => {
    const before = gate.reads.turns.started;
    const { status, text } = await ask(gate, of, { headers: { authorization: `Bearer ${keys.reader}` } });
    assert.equal(status, 200, text);
    return gate.reads.turns.started - before;
  };
  const one = await slices("/approvals?limit=1");
  assert.ok(one <= 3, `positive control: ${one} slices for one approval`);
  for (const page of [path, "/approvals?limit=64"]) {
    const found = await slices(page);
    assert.ok(found > 64 / 16, `${page}: ${found} slices`);
  }
});

test("a verification pauses, and ends although rows come faster than it walks", async (t) => {
  const gate = await startGate(t);
  const calls = async (count: number): Promise<void> => {
    await Promise.all(Array.from({ length: count }, () => submit(gate, 0)));
  };
  for (let n = 0; n < 4; n += 1) await calls(500);
  let slices = 0;
  const found = await gate.ledger.verify(async (slice) => {
    slices += 1;
    assert.ok(slices < 50, "it does not pause for rows that come meanwhile");
    await calls(900);
    return slice();
  });
  assert.equal(found.broken, undefined);
  assert.ok(slices > 1 && found.rows > 2000 + 900, `${slices} slices, ${found.rows} rows`);
});

/** Rows of one table of spec/api.md. */
function tableRows(): readonly (readonly string[])[] {
  const text = /^## Reads$([\s\S]*?)^## /m.exec(readFileSync(join(root, "spec", "api.md"), "utf8"))?.[1] ?? "";
  return text
    .split("\n")
    .filter((line) => /^\| (?:GET|POST) /.test(line))
    .map((line) =>
      line
        .split("|")
        .map((cell) => cell.trim())
        .slice(1, -1),
    );
}

test("the table in spec/api.md has each route with its places", () => {
  const places: Readonly<Record<ReadKind | "none", readonly string[]>> = {
    short: [String(limits.readsOfKeyMax), String(limits.readsOfTenantMax)],
    long: [String(limits.longReadsOfKeyMax), String(limits.longReadsOfTenantMax)],
    replay: [String(limits.longReadsOfKeyMax), String(limits.readsOfTenantMax)],
    explanation: ["max(1, processors - 1)", "the same, for all tenants"],
    none: ["", ""],
  };
  const expected = routes.map((route) => {
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}").replace("*", "{path}");
    return [`${route.method} ${path}`, ...places[kindOf(route) ?? "none"]];
  });
  const rows = tableRows();
  const found = rows.flatMap(([names = "", ofKey = "", ofTenant = ""]) =>
    names.split(", ").map((name, at) => {
      const [method = ""] = names.split(" ");
      return [at === 0 ? name : `${method} ${name}`, ofKey, ofTenant];
    }),
  );
  const sorted = (all: readonly (readonly string[])[]): readonly string[] =>
    all.map((row) => row.join(" | ")).toSorted();
  assert.deepEqual(sorted(found), sorted(expected));
  for (const row of rows) assert.notEqual(row[3], "", `${row[0]} has a slice`);
});

/**
 * Reads sixty pages of receipts at once, and sends one check after the other.
 *
 * @returns how many checks are answered before all pages, and the receipts of each page; none if the gate refuses it
 */
async function checksBesidePages(desk: Desk): Promise<{ readonly checks: number; readonly pages: readonly number[] }> {
  const body = { ...small, tool_input: { amount: 1, to: "x".repeat(300) } };
  const fill = async (): Promise<void> => {
    for (let n = 0; n < 50; n += 1) await desk.asks(body);
  };
  await Promise.all(Array.from({ length: 20 }, fill));
  const state = { isReading: true };
  const page = async (): Promise<number> => (await ask(desk, "/receipts?limit=1000")).json.receipts?.length ?? 0;
  const reading = Promise.all(Array.from({ length: 60 }, page)).finally(() => (state.isReading = false));
  let checks = 0;
  for (; state.isReading; checks += 1) await desk.asks(body);
  return { checks, pages: await reading };
}

suite("beside sixty pages of a thousand receipts", () => {
  test("checks are answered one after the other", async (t) => {
    const { checks, pages } = await checksBesidePages(await startDesk(t));
    assert.deepEqual(new Set(pages), new Set([1000]));
    assert.ok(checks > 250, `${checks} checks`);
  });

  control("positive control: without bounds, checks wait for the pages", async (t) => {
    const defects = [
      { within: "RequestQueue.#hasPlace", first: "return true;" },
      { within: "Turns.start", first: "this.#isFree = true;" },
      { within: "receiptsOfSlice", value: "1000" },
      { within: "charactersOfSlice", value: "10_000_000" },
    ];
    const { checks, pages } = await checksBesidePages(await startDesk(t, { defects }));
    const read = pages.filter((receipts) => receipts === 1000);
    assert.ok(read.length > 30, `${read.length} pages: on a busy machine the gate may refuse some`);
    assert.ok(checks <= 250, `${checks} checks`);
  });
});
