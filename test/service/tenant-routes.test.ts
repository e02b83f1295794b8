/**
 * Goal: a route below a tenant's path works on that tenant's ledger, and shows nothing of the root and of other tenants.
 * Method: a key of the tenant acme asks every route of the administrators, at its own path, at the root's and at another
 * tenant's. Each ledger has a stop, keys, people and calls, whose names must not appear elsewhere. Positive control:
 * the same requests to a gate that hands out the root's gate.
 */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { routes } from "../../packages/gate/src/server/http/routes.ts";
import { startDesk, type Desk } from "../support/approvals.ts";
import { command } from "../support/command.ts";
import { control } from "../support/controls/control.ts";
import { ask, temporaryFolder, type Answer } from "../support/gate.ts";
import type { Mutation } from "../support/mutation/mutate.ts";

const contract = `contract: desk
tools:
  door.open: { input: { type: object, additionalProperties: true }, otherwise: ALLOW }
`;
const call = { tool_name: "door.open", tool_input: {}, session_id: "s" };

const ledgers = ["root", "acme", "blue"] as const;
type LedgerName = (typeof ledgers)[number];

/** The path of a ledger's routes. */
const at = (ledger: LedgerName): string => (ledger === "root" ? "" : `/t/${ledger}`);

interface Bench {
  readonly desk: Desk;
  /** Asks with a key of the ledger: its administrator's, its approver's, or its agent's. */
  readonly by: (who: `${LedgerName}-${"admin" | "person" | "agent"}`, path: string, body?: object) => Promise<Answer>;
  /** The number of rows of each ledger. */
  readonly rows: () => Promise<Readonly<Record<LedgerName, number>>>;
  readonly verdicts: () => Promise<Readonly<Record<LedgerName, string>>>;
}

/** Starts a gate with two tenants; root, acme and blue each have keys, a person, a call and a stop of one session. */
async function startBench(t: TestContext, defects?: readonly Mutation[], more: NodeJS.ProcessEnv = {}): Promise<Bench> {
  const folder = temporaryFolder(t);
  const lines = ["acme", "blue"].map((tenant) => {
    mkdirSync(join(folder, tenant));
    writeFileSync(join(folder, tenant, "desk.yaml"), contract);
    return `  ${tenant}: { mandate: ${tenant}/desk.yaml, mode: enforce }`;
  });
  const [tenants, notify] = [join(folder, "tenants.yaml"), join(folder, "notify.json")];
  writeFileSync(tenants, `tenants:\n${lines.join("\n")}\n`);
  writeFileSync(notify, JSON.stringify(endpoints), { mode: 0o600 });
  const env = { SVC_TENANTS: tenants, SVC_NOTIFY: notify, ...more } as Record<string, string>;
  const desk = await startDesk(t, { folder, contract, persons: {}, env, ...(defects && { defects }) });
  const keys: Record<string, string> = {};
  for (const ledger of ledgers) {
    assert.equal((await desk.operates("/admin/persons", { name: `${ledger}-anna` })).status, 201);
    for (const [who, form] of Object.entries({
      admin: { scopes: ["admin"] },
      person: { scopes: ["approve", "receipts"], person: `${ledger}-anna`, groups: ["desk"] },
      agent: { scopes: ["check"] },
    })) {
      const made = await desk.operates(`${at(ledger)}/admin/keys`, { name: `${ledger}-${who}`, ...form });
      assert.equal(made.status, 201, made.text);
      keys[`${ledger}-${who}`] = made.json.key;
    }
  }
  Object.assign(desk.keys, keys);
  const by: Bench["by"] = (who, path, body) => {
    const authorization = `Bearer ${keys[who] ?? ""}`;
    if (body === undefined) return ask(desk, path, { headers: { authorization } });
    const headers = { authorization, "content-type": "application/json" };
    return ask(desk, path, { method: "POST", headers, body: JSON.stringify(body) });
  };
  const each = async <Value>(of: (ledger: LedgerName) => Promise<Value>): Promise<Record<LedgerName, Value>> => ({
    root: await of("root"),
    acme: await of("acme"),
    blue: await of("blue"),
  });
  for (const ledger of ledgers) {
    assert.equal((await by(`${ledger}-agent`, `${at(ledger)}/check`, call)).json.verdict, "ALLOW");
    const scope = { session: { key: `${ledger}-agent`, id: `${ledger}-run` } };
    const set = await desk.operates(`${at(ledger)}/admin/stop`, { scope, why: `${ledger}-secret` });
    assert.equal(set.status, 200, set.text);
  }
  return {
    desk,
    by,
    rows: () => each(async (ledger) => (await by(`${ledger}-person`, `${at(ledger)}/ledger/verify`)).json.rows),
    verdicts: () => each(async (ledger) => (await by(`${ledger}-agent`, `${at(ledger)}/check`, call)).json.verdict),
  };
}

/** An endpoint of each ledger. Nothing listens there. */
const endpoints = {
  endpoints: ledgers.map((ledger) => ({
    name: `${ledger}-pager`,
    url: "https://127.0.0.1:9/",
    allow_private: true,
    secrets: [`whsec_${Buffer.from(`${ledger} has a secret of its own!`).toString("base64")}`],
    ...(ledger !== "root" && { tenants: [ledger] }),
  })),
};

interface Case {
  readonly route: string;
  /** The path, if it has a name in it. */
  readonly path?: string;
  readonly by?: "admin" | "person";
  readonly body?: object;
  readonly status?: number;
  /** The ledger in which it makes a row. Keys and people are rows of the root, with the tenant in them. */
  readonly row?: LedgerName;
}

/** Every route that an administrator's key opens. */
const cases: readonly Case[] = [
  { route: "GET /stop" },
  { route: "GET /stop", by: "person" },
  { route: "POST /admin/stop", body: { scope: { tools: ["a"] }, why: "acme" }, row: "acme" },
  { route: "POST /admin/stop", by: "person", body: { scope: { key: "a" }, why: "acme" }, row: "acme" },
  { route: "POST /admin/stop/lift", body: { scope: { key: "a" } }, row: "acme" },
  { route: "POST /admin/reload", body: { mode: "observe" }, row: "acme" },
  { route: "POST /admin/erase", body: { rows: [[1, 1]], parts: ["reason"], reason: "asked" }, row: "acme" },
  { route: "GET /admin/keys" },
  { route: "POST /admin/keys", body: { name: "new", scopes: ["check"] }, status: 201, row: "root" },
  { route: "POST /admin/keys/:name/rotate", path: "/admin/keys/new/rotate", body: {}, row: "root" },
  {
    route: "POST /admin/keys/:name/update",
    path: "/admin/keys/new/update",
    body: { person: "acme-anna" },
    row: "root",
  },
  { route: "POST /admin/keys/:name/revoke", path: "/admin/keys/new/revoke", body: {}, row: "root" },
  { route: "POST /admin/keys/:name/revoke", path: "/admin/keys/blue-agent/revoke", body: {}, status: 404 },
  { route: "GET /admin/persons" },
  { route: "POST /admin/persons", body: { name: "eve" }, status: 403 },
  { route: "GET /admin/notify" },
  { route: "POST /admin/notify/replay", body: { from: 1 } },
];

/** Asks all routes with acme's keys, and returns a sentence for each answer or row that is not acme's. */
async function strayed({ by, rows }: Bench): Promise<readonly string[]> {
  const found: string[] = [];
  for (const { route, path, by: who = "admin", body, status = 200, row } of cases) {
    const below = path ?? route.replace(/^\w+ /, "");
    const before = await rows();
    for (const other of ["root", "blue"] as const) {
      const refused = await by(`acme-${who}`, at(other) + below, body);
      if (refused.status !== 401) found.push(`${route} of ${other}: ${refused.status}`);
    }
    const answer = await by(`acme-${who}`, at("acme") + below, body);
    if (answer.status !== status) found.push(`${route}: ${answer.text}`);
    if (/root-|blue-/.test(answer.text)) found.push(`${route} shows ${answer.text}`);
    const now = await rows();
    for (const ledger of ledgers)
      if (now[ledger] - before[ledger] !== (ledger === row ? 1 : 0)) found.push(`${route}: a row of ${ledger}`);
  }
  return found;
}

/** A tenant's keys set, see and lift stops; the other ledgers must not notice. */
async function assertOwnStops({ by, verdicts, desk }: Bench): Promise<void> {
  const every = { scope: "all", why: "acme" };
  const set = await by("acme-person", "/t/acme/admin/stop", every);
  assert.deepEqual([set.status, set.json.ledgers], [200, ["acme"]]);
  assert.deepEqual(await verdicts(), { root: "ALLOW", acme: "BLOCK", blue: "ALLOW" });
  assert.doesNotMatch((await by("blue-person", "/t/blue/stop")).text, /acme/);
  assert.equal((await by("acme-admin", "/t/acme/admin/stop/lift", { scope: "all" })).status, 200);
  assert.deepEqual(await verdicts(), { root: "ALLOW", acme: "ALLOW", blue: "ALLOW" });
  // The root's stop of every call applies in each tenant. There it is seen, but only the root lifts it.
  assert.equal((await by("root-person", "/admin/stop", { scope: "all", why: "everything" })).status, 200);
  assert.deepEqual(await verdicts(), { root: "BLOCK", acme: "BLOCK", blue: "BLOCK" });
  assert.equal((await by("acme-admin", "/t/acme/admin/stop/lift", { scope: "all" })).status, 409);
  assert.deepEqual(await verdicts(), { root: "BLOCK", acme: "BLOCK", blue: "BLOCK" });
  assert.equal((await by("root-admin", "/admin/stop/lift", { scope: "all" })).status, 200);
  // The root's administrators set and lift a tenant's stop.
  assert.equal((await desk.operates("/t/acme/admin/stop", every)).status, 200);
  assert.deepEqual(await verdicts(), { root: "ALLOW", acme: "BLOCK", blue: "ALLOW" });
  assert.equal((await desk.operates("/t/acme/admin/stop/lift", { scope: "all" })).status, 200);
  assert.deepEqual(await verdicts(), { root: "ALLOW", acme: "ALLOW", blue: "ALLOW" });
}

/** A gate that works on the root's ledger, whatever the path. */
const rootForAll: readonly Mutation[] = [
  { within: "addRoutes", find: "{ ...call, gate: gate.value }", put: "{ ...call, gate: service.root }" },
  { within: "Service", find: "if (tenant === null) return work(this.root);", put: "return work(this.root);" },
];

suite("routes below a tenant's path", { concurrency: 2 }, () => {
  test("the table has every route that an administrator's key opens", () => {
    const open = routes.filter(({ scope, ofRoot }) => scope === "admin" && ofRoot === undefined);
    assert.deepEqual(
      [...new Set(cases.map(({ route }) => route))].toSorted(),
      open.map(({ method, path }) => `${method} ${path}`).toSorted(),
    );
  });

  test("each route of the administrators works on the tenant's ledger, and shows nothing of the others", async (t) => {
    assert.deepEqual(await strayed(await startBench(t)), []);
  });

  control("positive control: a gate that hands out the root's gate is noticed at each route of stops", async (t) => {
    const found = (await strayed(await startBench(t, rootForAll))).join("\n");
    for (const route of ["GET /stop", "POST /admin/stop", "POST /admin/stop/lift"])
      assert.ok(found.includes(route), found);
  });

  control("positive control: a list of all people is noticed", async (t) => {
    const everyone = {
      within: "listPeople",
      find: "if (tenant === null) return ring.known.people",
      put: "return ring.known.people",
    };
    const found = await strayed(await startBench(t, [everyone]));
    assert.match(found.join("\n"), /GET \/admin\/persons shows/);
  });

  test("[issue 30, item 8] a tenant's stop applies in that tenant alone, and nobody there lifts the root's", async (t) => {
    await assertOwnStops(await startBench(t));
  });

  control("positive control: with the root's gate, a tenant's stop stops the root", async (t) => {
    const bench = await startBench(t, rootForAll);
    await assert.rejects(() => assertOwnStops(bench));
  });

  test("[issue 30, item 9] a tenant can be stopped while other tenants take all places", async (t) => {
    // Without endpoints, a tenant is closed when it has no requests.
    const { desk, by } = await startBench(t, undefined, { SVC_NOTIFY: "", SVC_TENANTS_OPEN: "1" });
    const headers = { authorization: `Bearer ${desk.keys["blue-person"] ?? ""}` };
    const stream = new AbortController();
    t.after(() => stream.abort());
    const events = await fetch(`${desk.address}/t/blue/events`, { headers, signal: stream.signal });
    assert.equal(events.status, 200);
    const refused = await by("acme-agent", "/t/acme/check", call);
    assert.equal(
      refused.json.type.split(":").at(-1) ?? refused.text,
      "tenant-unavailable",
      "control: blue has the only place",
    );
    assert.equal((await by("acme-person", "/t/acme/admin/stop", { scope: "all", why: "acme" })).status, 200);
    assert.equal((await by("acme-agent", "/t/acme/check", call)).json.verdict, "BLOCK");
  });

  test("`svc-gate stop --tenant` stops the tenant alone, with a gate that serves and without one", async (t) => {
    const bench = await startBench(t);
    const { desk, verdicts } = bench;
    const stop = async (...args: readonly string[]): Promise<string> => {
      const data = ["--tenant", "acme", "--data-dir", join(desk.folder, "data")];
      const { code, stdout, stderr } = await command(["stop", ...args, ...data]);
      assert.deepEqual([code, stderr], [0, ""], args.join(" "));
      return stdout.replace(/row \d+/, "row ROW");
    };
    const said = [await stop("--why", "acme"), await stop("--list")];
    assert.deepEqual(await verdicts(), { root: "ALLOW", acme: "BLOCK", blue: "ALLOW" });
    said.push(await stop("--lift"), await stop("--list"));
    assert.deepEqual(await verdicts(), { root: "ALLOW", acme: "ALLOW", blue: "ALLOW" });
    await desk.stop();
    const offline = [await stop("--why", "acme"), await stop("--list")];
    offline.push(await stop("--lift"), await stop("--list"));
    const withoutTimes = (texts: readonly string[]): readonly string[] =>
      texts.map((text) => text.replaceAll(/\d{4}-[^,]+Z/g, "TIME"));
    assert.deepEqual(withoutTimes(offline), withoutTimes(said));
  });
});
