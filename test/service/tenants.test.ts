/**
 * Goal: tenants of one process share nothing but the process. Each has its own ledger, contract, mode, keys, sessions
 * and counters; a missing tenant looks like another's tenant; a fault in one tenant affects no other. Method: gates in
 * this process with tenants, whose files, threads and ledgers are broken one by one.
 */
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { Worker } from "node:worker_threads";
import { command } from "../support/command.ts";
import { ask, check, exchange, key, startGate, temporaryFolder, type Answer, type Running } from "../support/gate.ts";
import { eventually } from "../support/patience.ts";

const contract = (verdict: string): string => `contract: desk
tools:
  door.open: { input: { type: object, additionalProperties: true }, otherwise: ${verdict} }
counters:
  opened: { of: [door.open], per: session }
rules:
  - { rule: enough, on: [door.open], when: counters.opened >= 3, verdict: BLOCK, reason: "{counters.opened} times is enough" }
`;

const open = { tool_name: "door.open", tool_input: {}, session_id: "s" };

type Entries = Readonly<Record<string, { readonly text?: string; readonly mode?: string }>>;

/** Writes the tenants file and their contracts. */
function writeTenants(folder: string, entries: Entries): string {
  const lines = Object.entries(entries).map(([id, { text = contract("ALLOW"), mode = "enforce" }]) => {
    mkdirSync(join(folder, id), { recursive: true });
    writeFileSync(join(folder, id, "desk.yaml"), text);
    return `  ${id}: { mandate: ${id}/desk.yaml, mode: ${mode} }`;
  });
  const file = join(folder, "tenants.yaml");
  writeFileSync(file, `tenants:\n${lines.join("\n")}\n`);
  return file;
}

async function startTenants(
  t: TestContext,
  entries: Entries,
  flags: Readonly<Record<string, string>> = {},
): Promise<Running> {
  const folder = temporaryFolder(t);
  return startGate(t, { folder, flags: { tenants: writeTenants(folder, entries), ...flags } });
}

/** Makes a key that belongs to one tenant. */
async function keyOf(
  gate: Running,
  tenant: string,
  scopes = ["check", "rules", "receipts"],
  name = "agent",
): Promise<string> {
  const { json, status } = await admin(gate, `/t/${tenant}/admin/keys`, { name, scopes });
  assert.equal(status, 201);
  return json.key;
}

function admin(gate: Running, path: string, body: object = {}): Promise<Answer> {
  const file = readFileSync(join(gate.folder, "data", "operator.json"), "utf8");
  const { key: operator } = JSON.parse(file) as { readonly key: string };
  return ask(gate, path, {
    method: "POST",
    headers: { authorization: `Bearer ${operator}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

function checkAt(gate: Running, tenant: string, bearer: string, body: object = open): Promise<Answer> {
  return check({ address: `${gate.address}/t/${tenant}` }, body, { authorization: `Bearer ${bearer}` });
}

function askAt(gate: Running, tenant: string, path: string, bearer: string): Promise<Answer> {
  return ask({ address: `${gate.address}/t/${tenant}` }, path, {
    headers: { authorization: bearer && `Bearer ${bearer}` },
  });
}

suite("tenants", () => {
  test("an erasure in a tenant affects only that tenant, whichever administrator asks for it", async (t) => {
    const gate = await startTenants(t, { acme: {}, blue: {} });
    const keys = { acme: await keyOf(gate, "acme"), blue: await keyOf(gate, "blue") };
    const acmeAdmin = await keyOf(gate, "acme", ["admin"], "ops");
    const inRoot = await check(gate, open);
    for (const [tenant, bearer] of Object.entries(keys)) await checkAt(gate, tenant, bearer);
    const erased = async (): Promise<readonly unknown[]> => {
      const own = await ask(gate, `/receipts/${inRoot.json.receipt.seq}`);
      const [acme, blue] = [
        await askAt(gate, "acme", "/receipts/1", keys.acme),
        await askAt(gate, "blue", "/receipts/1", keys.blue),
      ];
      return [own, acme, blue].map(({ json }) => json.erased);
    };
    const before = await erased();
    const body = (parts: readonly string[], seq: number): object => ({
      rows: [[seq, seq]],
      parts,
      reason: "request 7",
    });
    const asTenant = await ask(gate, "/t/acme/admin/erase", {
      method: "POST",
      headers: { authorization: `Bearer ${acmeAdmin}`, "content-type": "application/json" },
      body: JSON.stringify(body(["reason"], 1)),
    });
    assert.deepEqual([asTenant.status, asTenant.json.rows], [200, 1]);
    assert.deepEqual(await erased(), [before[0], ["reason"], before[2]]);
    assert.equal((await admin(gate, "/t/blue/admin/erase", body(["outcome"], 1))).status, 200);
    assert.deepEqual(await erased(), [before[0], ["reason"], ["outcome"]]);
    // Positive control: the same request to the root changes the root.
    assert.equal((await admin(gate, "/admin/erase", body(["reason"], inRoot.json.receipt.seq))).status, 200);
    assert.deepEqual(await erased(), [["reason"], ["reason"], ["outcome"]]);
  });

  test("each tenant and the root have their own contract, mode, ledger, sessions and counters", async (t) => {
    const gate = await startTenants(t, { acme: {}, blue: { text: contract("ESCALATE"), mode: "observe" } });
    const [acme, blue] = [await keyOf(gate, "acme"), await keyOf(gate, "blue")];
    for (let n = 1; n <= 4; n += 1) {
      const { json } = await checkAt(gate, "acme", acme);
      assert.deepEqual([json.verdict, json.receipt.seq, json.mode], [n <= 3 ? "ALLOW" : "BLOCK", n, "enforce"]);
    }
    const other = (await checkAt(gate, "blue", blue)).json;
    assert.deepEqual([other.verdict, other.receipt.seq, other.mode], ["ALLOW", 1, "observe"]);
    assert.match(other.reason, /ESCALATE was recorded/);
    assert.match((await check(gate, open)).json.reason, /the door is shut/, "the root answers by its own contract");
    const pages = [
      await askAt(gate, "acme", "/receipts?kind=all", acme),
      await askAt(gate, "blue", "/receipts?kind=all", blue),
    ];
    assert.deepEqual(
      pages.map(({ json }) => json.receipts.length),
      [4, 1],
    );
    const logs = pages.map(({ json }) => JSON.parse(json.receipts[0].leaf).log);
    assert.notEqual(logs[0], logs[1]);
    assert.match((await askAt(gate, "blue", "/rules", blue)).text, /otherwise: ESCALATE/);
    for (const [id, bearer] of [
      ["acme", acme],
      ["blue", blue],
    ] as const)
      assert.equal((await askAt(gate, id, "/ledger/verify", bearer)).json.ok, true);
    const walked = await command(["verify", "--deep", join(gate.folder, "data", "tenants", "acme")]);
    assert.match(walked.stdout, /^ok: 4 rows[^]*\b4 checks\b/, walked.stderr);
  });

  test("the gate answers a foreign key alike for an existing and a missing tenant", async (t) => {
    const gate = await startTenants(t, { acme: {}, blue: {} });
    const acme = await keyOf(gate, "acme");
    await checkAt(gate, "acme", acme);
    const before = readdirSync(join(gate.folder, "data", "tenants"));
    const body = JSON.stringify(open);
    const requests = [
      ["POST", "/check", body],
      ["GET", "/receipts", ""],
      ["GET", "/receipts/1", ""],
      ["GET", "/rules", ""],
      ["GET", "/ledger/verify", ""],
      ["GET", "/health", ""],
      ["GET", "/nothing", ""],
      ["DELETE", "/check", ""],
      ["POST", "/admin/reload", "{}"],
      ["GET", "/admin/keys", ""],
    ] as const;
    for (const bearer of ["", "wrong", key, acme]) {
      for (const [method, path, sent] of requests) {
        const [theirs, nobodys] = await Promise.all(
          ["blue", "none"].map((tenant) => exchange(gate.port, requestOf(method, `/t/${tenant}${path}`, bearer, sent))),
        );
        assert.equal(plain(theirs), plain(nobodys), `${method} ${path} with ${bearer || "no key"}`);
      }
    }
    assert.deepEqual(readdirSync(join(gate.folder, "data", "tenants")), before, "nothing was opened for a wrong key");
    assert.equal((await askAt(gate, "blue", "/receipts", acme)).status, 401);
    assert.notEqual(
      (await askAt(gate, "acme", "/receipts", acme)).status,
      401,
      "positive control: its own key opens it",
    );
    assert.equal((await admin(gate, "/t/none/admin/reload")).status, 404, "the root's administrator may know");
  });

  test("/health shows a tenant's mode only to a key of that tenant", async (t) => {
    const gate = await startTenants(t, { acme: { mode: "observe" } });
    const acme = await keyOf(gate, "acme");
    assert.deepEqual((await askAt(gate, "acme", "/health", "")).json, { status: "ok", mode: "enforce" });
    assert.deepEqual((await askAt(gate, "acme", "/health", acme)).json, { status: "ok", mode: "observe" });
  });

  test("/health is open, and another tenant's key learns no more than no key", { tags: ["attack-14"] }, async (t) => {
    const gate = await startTenants(t, { acme: { mode: "observe" }, blue: {} });
    const acme = await keyOf(gate, "acme");
    for (const bearer of ["wrong", key, acme]) {
      for (const tenant of ["blue", "none"]) {
        const { status, json } = await askAt(gate, tenant, "/health", bearer);
        assert.deepEqual([status, json], [200, { status: "ok", mode: "enforce" }], `${tenant} with ${bearer}`);
      }
    }
    const root = await ask(gate, "/health", { headers: { authorization: `Bearer ${acme}` } });
    assert.deepEqual([root.status, root.json.mode], [200, "enforce"]);
  });

  test("a key gets 401 on another tenant's routes and 404 or 405 elsewhere", { tags: ["attack-14"] }, async (t) => {
    const gate = await startTenants(t, { acme: {}, blue: {} });
    const acme = await keyOf(gate, "acme");
    for (const tenant of ["blue", "none"]) {
      assert.equal((await askAt(gate, tenant, "/rules", acme)).status, 401);
      assert.equal((await askAt(gate, tenant, "/nothing", acme)).status, 404);
      assert.equal((await askAt(gate, tenant, "/check", acme)).status, 405);
    }
    assert.equal((await askAt(gate, "%61cme", "/rules", acme)).status, 404, "an escape in the tenant's id");
    assert.equal((await askAt(gate, "acme", "/rules", acme)).status, 200, "positive control");
  });

  test("a bad contract or a damaged ledger makes only its own tenant unavailable", async (t) => {
    const gate = await startTenants(t, { acme: {}, bad: { text: "contract: [" }, torn: {} });
    const [acme, bad, torn] = [await keyOf(gate, "acme"), await keyOf(gate, "bad"), await keyOf(gate, "torn")];
    const folder = join(gate.folder, "data", "tenants", "torn");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "ledger.db"), "this is not a database, and long enough to be noticed");
    const [refused, unread, fine] = await Promise.all([
      checkAt(gate, "bad", bad),
      checkAt(gate, "torn", torn),
      checkAt(gate, "acme", acme),
    ]);
    assert.deepEqual([refused.status, refused.json.code], [503, "tenant-unavailable"]);
    assert.deepEqual([unread.status, unread.json.code], [503, "tenant-unavailable"]);
    assert.doesNotMatch(refused.text + unread.text, /data|yaml|database/, "nothing of the machine is told");
    assert.equal(fine.json.verdict, "ALLOW");
    assert.equal((await check(gate, { tool_name: "note.add", tool_input: {} })).json.verdict, "ALLOW");
    writeFileSync(join(gate.folder, "bad", "desk.yaml"), contract("ALLOW"));
    assert.equal((await admin(gate, "/t/bad/admin/reload")).status, 200);
    assert.equal(
      (await checkAt(gate, "bad", bad)).json.verdict,
      "ALLOW",
      "the repaired ledger is served without a restart",
    );
  });

  test("a fault in a tenant's ledger stops only that tenant, and a reload opens it again", async (t) => {
    const posted = t.mock.method(Worker.prototype, "postMessage");
    const gate = await startTenants(t, { acme: {}, blue: {} });
    const [acme, blue] = [await keyOf(gate, "acme"), await keyOf(gate, "blue")];
    await checkAt(gate, "blue", blue);
    posted.mock.resetCalls();
    await checkAt(gate, "acme", acme);
    const workers = new Set(posted.mock.calls.map((call) => call.this as Worker));
    assert.equal(workers.size, 2, "threads of its own: one writes, one has read its tail");
    for (const worker of workers) await worker.terminate();
    await assert.rejects(
      checkAt(gate, "acme", acme),
      "cut off, as at the end of a process: no answer without a receipt",
    );
    assert.equal((await checkAt(gate, "acme", acme)).status, 503, "it is not tried again at once");
    assert.equal((await checkAt(gate, "blue", blue)).json.receipt.seq, 2);
    assert.equal((await check(gate, { tool_name: "note.add", tool_input: {} })).status, 200);
    assert.equal((await admin(gate, "/t/acme/admin/reload")).status, 200);
    assert.equal((await checkAt(gate, "acme", acme)).json.receipt.seq, 2);
    assert.equal((await askAt(gate, "acme", "/ledger/verify", acme)).json.ok, true);
  });

  test("a gate serves more tenants than it keeps open, and a reopened tenant keeps its contract", async (t) => {
    const ids = Array.from({ length: 12 }, (_, at) => `t${at}`);
    const gate = await startTenants(t, Object.fromEntries(ids.map((id) => [id, {}])), { "tenants-open": "3" });
    const bearers = new Map<string, string>();
    for (const id of ids) bearers.set(id, await keyOf(gate, id));
    for (let round = 1; round <= 2; round += 1) {
      for (const id of ids) {
        const { json } = await checkAt(gate, id, bearers.get(id) ?? "");
        assert.deepEqual([json.verdict, json.receipt.seq], ["ALLOW", round], id);
        writeFileSync(join(gate.folder, id, "desk.yaml"), contract("BLOCK"));
      }
    }
    const { json } = await admin(gate, "/t/t0/admin/reload");
    assert.equal(json.changed, true);
    assert.equal((await checkAt(gate, "t0", bearers.get("t0") ?? "")).json.verdict, "BLOCK");
    assert.equal(
      (await checkAt(gate, "t1", bearers.get("t1") ?? "")).json.verdict,
      "ALLOW",
      "nobody reloaded that one",
    );
    const sent = ids.slice(0, 3).map((id) => checkAt(gate, id, bearers.get(id) ?? ""));
    for (const { status } of await Promise.all(sent)) assert.equal(status, 200);
  });

  test("a reload keeps a tenant's mode if the tenant's entry names none", async (t) => {
    const gate = await startTenants(t, { acme: {}, blue: {} }, { mode: "observe" });
    const [acme, blue] = [await keyOf(gate, "acme"), await keyOf(gate, "blue")];
    const file = join(gate.folder, "tenants.yaml");
    writeFileSync(file, readFileSync(file, "utf8").replace("acme/desk.yaml, mode: enforce", "acme/desk.yaml"));
    assert.equal((await admin(gate, "/admin/reload")).status, 200);
    assert.equal((await checkAt(gate, "acme", acme)).json.mode, "observe", "of SVC_MODE, when it is opened");
    for (const [id, mode] of [
      ["acme", "enforce"],
      ["blue", "assist"],
    ] as const)
      assert.equal((await admin(gate, `/t/${id}/admin/reload`, { mode })).json.now.mode, mode);
    for (const id of ["acme", "blue"]) await admin(gate, `/t/${id}/admin/reload`);
    assert.equal((await checkAt(gate, "acme", acme)).json.mode, "enforce", "enforcing does not end by accident");
    assert.equal((await checkAt(gate, "blue", blue)).json.mode, "enforce", "what its entry says");
  });

  test("a tenant's row distinguishes its own administrator from a root administrator with the same name", async (t) => {
    const gate = await startTenants(t, { acme: {} });
    const theirs = await keyOf(gate, "acme", ["admin", "receipts"]);
    const made = await admin(gate, "/admin/keys", { name: "agent", scopes: ["admin"] });
    for (const [mode, bearer] of [
      ["observe", theirs],
      ["enforce", made.json.key],
    ] as const) {
      const headers = { authorization: `Bearer ${bearer}`, "content-type": "application/json" };
      await ask(gate, "/t/acme/admin/reload", { method: "POST", headers, body: JSON.stringify({ mode }) });
    }
    const { json } = await askAt(gate, "acme", "/receipts?kind=all", theirs);
    assert.deepEqual(
      json.receipts.map((row: { readonly key: string }) => row.key),
      ["agent", "acme/agent"],
    );
  });

  test("a reload reads the tenants file again, serves new tenants and drops removed ones", async (t) => {
    const gate = await startTenants(t, { acme: {} });
    const acme = await keyOf(gate, "acme");
    await checkAt(gate, "acme", acme);
    writeTenants(gate.folder, { blue: {} });
    assert.equal((await admin(gate, "/admin/reload")).status, 200);
    const blue = await keyOf(gate, "blue");
    assert.equal((await checkAt(gate, "blue", blue)).json.verdict, "ALLOW");
    const gone = await checkAt(gate, "acme", acme);
    assert.deepEqual([gone.status, gone.json.code], [404, "not-found"]);
    writeFileSync(join(gate.folder, "tenants.yaml"), "tenants:\n  Blue: { mandat: x, mode: enforced }\n");
    const { status, json } = await admin(gate, "/admin/reload");
    assert.equal(status, 422);
    const codes = [...json.detail.matchAll(/error\[([a-z-]+)\]/g)].map(([, code]) => code);
    assert.deepEqual(new Set(codes), new Set(["missing", "mode", "name", "unknown-key"]));
    assert.equal((await checkAt(gate, "blue", blue)).status, 200, "what was there goes on");
  });
});

function requestOf(method: string, path: string, bearer: string, body: string): string {
  const headers = ["Host: gate", "Connection: close", ...(bearer === "" ? [] : [`Authorization: Bearer ${bearer}`])];
  if (method !== "GET") headers.push("Content-Type: application/json", `Content-Length: ${body.length}`);
  return `${method} ${path} HTTP/1.1\r\n${headers.join("\r\n")}\r\n\r\n${body}`;
}

/** Removes the members that differ in each answer. */
function plain(answer = ""): string {
  return answer.replace(/^(date|x-request-id): .*$/gim, "$1");
}

test("a stop answers the waits of a tenant and ends its streams", async (t) => {
  const gate = await startTenants(t, { acme: { text: contract("ESCALATE") } });
  const bearer = await keyOf(gate, "acme");
  const { json } = await checkAt(gate, "acme", bearer);
  const headers = { authorization: `Bearer ${bearer}` };
  const stream = await fetch(`${gate.address}/t/acme/events`, { headers });
  const before = gate.reads.turns.started;
  const waited = askAt(gate, "acme", `/approvals/${json.approval.id}?wait=50`, bearer);
  await eventually("it waits", () => gate.reads.turns.started > before);
  await gate.stop();
  assert.match(await stream.text(), /^retry: /, "not cut off");
  const answer = await waited;
  assert.deepEqual([answer.status, answer.json.status], [200, "pending"]);
});
