/**
 * Goal: an HTTP key gains and loses its rights at once, has no others, and is never stored or logged. Method: requests
 * with the operator's key that a gate leaves and with keys made by that key. The gate's files and log are searched for
 * every key that it gave out, and for one that it was asked to keep (the positive control).
 */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { routes } from "../../packages/gate/src/server/http/routes.ts";
import { command } from "../support/command.ts";
import {
  ask,
  check,
  key as firstKey,
  spawnGate,
  startGate,
  temporaryFolder,
  type Answer,
  type Running,
} from "../support/gate.ts";
import { connect } from "node:net";
import { once } from "node:events";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

type Gate = Pick<Running, "address">;

function operatorKey(folder: string): string {
  return JSON.parse(readFileSync(join(folder, "data", "operator.json"), "utf8")).key;
}

function bearer(key: string): { readonly headers: Record<string, string> } {
  return { headers: { authorization: `Bearer ${key}`, "content-type": "application/json" } };
}

function act(gate: Gate, key: string, path: string, body: object = {}): Promise<Answer> {
  return ask(gate, path, { method: "POST", ...bearer(key), body: JSON.stringify(body) });
}

async function make(gate: Gate, admin: string, body: object, path = "/admin/keys"): Promise<string> {
  const made = await act(gate, admin, path, body);
  assert.equal(made.status, 201, made.text);
  return made.json.key;
}

function checkWith(gate: Gate, key: string, tool = "note.add"): Promise<Answer> {
  return check(gate, { tool_name: tool, tool_input: {} }, { authorization: `Bearer ${key}` });
}

test("each creation, rotation or revocation of a key is a row and applies to the next request", async (t) => {
  const gate = await startGate(t);
  const admin = operatorKey(gate.folder);
  const made = await act(gate, admin, "/admin/keys", {
    name: "ci",
    owner: "Payments",
    scopes: ["check"],
    expires: "90d",
  });
  assert.equal(made.status, 201);
  assert.equal(made.headers.get("cache-control"), "no-store");
  const { key } = made.json;
  assert.equal((await checkWith(gate, key)).status, 200);
  const rotated = await act(gate, admin, "/admin/keys/ci/rotate", { overlap: "1h" });
  assert.equal(rotated.status, 200);
  assert.deepEqual([(await checkWith(gate, key)).status, (await checkWith(gate, rotated.json.key)).status], [200, 200]);
  const listed = await ask(gate, "/admin/keys", bearer(admin));
  assert.deepEqual(
    listed.json.keys.map(({ name, state, owner }: Record<string, unknown>) => [name, state, owner]),
    [
      ["ci", "rotating", "Payments"],
      ["default", "active", null],
    ],
  );
  assert.match(listed.json.keys[0].last_used, /^\d{4}-/);
  assert.ok(!listed.text.includes(hash("sha256", key, "hex")) && !listed.text.includes("svcg_"));
  assert.equal((await act(gate, admin, "/admin/keys/ci/revoke")).status, 200);
  assert.deepEqual([(await checkWith(gate, key)).status, (await checkWith(gate, rotated.json.key)).status], [401, 401]);
  const { json: page } = await ask(gate, "/receipts?kind=all");
  const rows = page.receipts.toReversed();
  assert.deepEqual(
    rows.map((row: Record<string, unknown>) => [row["seq"], row["act"] ?? "check", row["key"]]),
    [
      [1, "keys.create", "operator"],
      [2, "check", "ci"],
      [3, "keys.rotate", "operator"],
      [4, "check", "ci"],
      [5, "check", "ci"],
      [6, "keys.revoke", "operator"],
    ],
  );
  says("the row of a new key", rows[0].reason);
  assert.equal(rows[5].tool_input.revoked, true);
  assert.deepEqual(made.json.receipt, { seq: 1, hash: rows[0].hash });
  const { json: walk } = await ask(gate, "/ledger/verify");
  assert.deepEqual([walk.ok, walk.rows], [true, 6]);
});

test("a good key without the scope of a route gets a 403 that names the scope", async (t) => {
  const gate = await startGate(t);
  const admin = operatorKey(gate.folder);
  const names = ["check", "rules", "receipts", "outcome", "approve", "admin", "metrics"];
  const keys = new Map<string, string>();
  await act(gate, admin, "/admin/persons", { name: "anna" });
  for (const scope of names) {
    const person = scope === "approve" ? { person: "anna" } : {};
    keys.set(scope, await make(gate, admin, { name: scope, scopes: [scope], ...person }));
  }
  const rows = gate.ledger.head.seq;
  for (const { method, path, scope, orScopes = [] } of routes) {
    // Only a key of the tenant opens a path that names one.
    if (scope === undefined || path.includes("/:tenant")) continue;
    for (const [name, key] of keys) {
      const body = method === "POST" ? { body: "{" } : {};
      // A stream would not end, so its query is wrong.
      const target = path === "/events" ? "/events?after=x" : path.replace(/:\w+/, "1");
      const answer = await ask(gate, target, { method, ...bearer(key), ...body });
      if (name === scope || orScopes.some((each) => each === name))
        // A hook's own refusal is a 403 too.
        assert.notDeepEqual([answer.status, answer.json?.code], [403, "forbidden"], `${method} ${path} with ${name}`);
      else {
        assert.deepEqual([answer.status, answer.json.code], [403, "forbidden"], `${method} ${path} with ${name}`);
        const scopes = [scope, ...orScopes];
        says(`without ${scopes.join(" or ")}`, answer.json.detail, { '"KEY"': `"${name}"` });
      }
    }
  }
  assert.equal(gate.ledger.head.seq, rows, "nothing was recorded");
});

test("a key for some tools is refused for other tools before the gate decides anything", async (t) => {
  const gate = await startGate(t);
  const key = await make(gate, operatorKey(gate.folder), { name: "mailer", tools: ["mail.*", "note.add"] });
  assert.deepEqual([(await checkWith(gate, key)).status, (await checkWith(gate, key, "mail.send")).status], [200, 200]);
  const rows = gate.ledger.head.seq;
  for (const tool of ["door.open", "note.addx", "Mail.send", "mail"]) {
    const { status, json } = await checkWith(gate, key, tool);
    assert.deepEqual([status, json.code], [422, "wrong-tool"], "a client that fails open does not open for it");
    says("a tool that the key does not name", json.detail, { '"TOOL"': `"${tool}"` });
  }
  assert.equal(gate.ledger.head.seq, rows);
});

test("a tenant's administrators manage only its keys, and another tenant looks like an unknown one", async (t) => {
  const folder = temporaryFolder(t);
  const tenants = join(folder, "tenants.yaml");
  writeFileSync(tenants, "tenants:\n  acme: { mandate: mandate.yaml }\n  globex: { mandate: mandate.yaml }\n");
  const gate = await startGate(t, { folder, flags: { tenants } });
  const root = operatorKey(folder);
  const unknown = await act(gate, root, "/admin/keys", { name: "x", tenant: "acne" });
  assert.equal(unknown.status, 400);
  says("an unknown tenant", unknown.json.detail);
  const acme = await make(gate, root, { name: "ops", tenant: "acme", scopes: ["receipts", "admin"] });
  const globex = await make(gate, root, { name: "ops", scopes: ["receipts", "admin"] }, "/t/globex/admin/keys");
  const ci = await make(gate, acme, { name: "ci" }, "/t/acme/admin/keys");
  const at = (tenant: string, key: string): Promise<Answer> =>
    ask(gate, `/t/${tenant}/check`, {
      method: "POST",
      ...bearer(key),
      body: '{"tool_name":"note.add","tool_input":{}}',
    });
  assert.equal((await at("acme", ci)).json.verdict, "ALLOW");
  const outside = await Promise.all([
    at("globex", ci),
    at("nobody", ci),
    checkWith(gate, ci),
    act(gate, acme, "/t/globex/admin/keys", { name: "y" }),
    act(gate, acme, "/t/nobody/admin/keys", { name: "y" }),
    act(gate, acme, "/admin/keys", { name: "y" }),
    act(gate, acme, "/t/globex/admin/keys/ops/revoke"),
    ask(gate, "/t/globex/admin/keys", bearer(acme)),
    checkWith(gate, "svcg_wrong"),
  ]);
  assert.equal(new Set(outside.map(({ status, text }) => `${status} ${text}`)).size, 1);
  assert.equal(outside[0]?.status, 401);
  const own = await ask(gate, "/t/acme/admin/keys", bearer(acme));
  assert.deepEqual(
    own.json.keys.map(({ name }: { name: string }) => name),
    ["ci", "ops"],
  );
  assert.equal((await ask(gate, "/admin/keys", bearer(root))).json.keys.length, 4);
  const more = await act(gate, acme, "/t/acme/admin/keys", { name: "z", scopes: ["rules"] });
  assert.equal(more.status, 403);
  assert.equal((await act(gate, root, "/t/acme/admin/keys/ci/revoke")).status, 200);
  const theirs = await ask(gate, "/t/globex/admin/keys", bearer(globex));
  assert.deepEqual([(await at("acme", ci)).status, theirs.status], [401, 200]);
  const by = (await ask(gate, "/receipts?kind=all")).json.receipts.map((row: { key: string }) => row.key);
  assert.deepEqual(by, ["operator", "acme/ops", "operator", "operator"], "who did it, over all tenants");
});

/** Returns the text itself, and the forms in which it can appear inside base64url. */
function spellings(text: string): readonly string[] {
  const encoded = [0, 1, 2].map((before) => Buffer.from(`${" ".repeat(before)}${text}`).toString("base64url"));
  return [text, ...encoded.map((each, before) => each.slice(Math.ceil((before * 4) / 3), -2))];
}

test("no key appears in the gate's files or log, except the first key in its own file", async (t) => {
  const folder = temporaryFolder(t);
  const data = join(folder, "data");
  const gate = await spawnGate(t, [], {
    cwd: folder,
    env: { SVC_DATA_DIR: data, SVC_LOG: "trace", SVC_MODE: "enforce" },
  });
  const operator = operatorKey(folder);
  const first = readFileSync(join(data, "first-key"), "utf8").trim();
  const one = await make(gate, operator, { name: "one", scopes: ["receipts", "admin"] });
  const rotated = await act(gate, one, "/admin/keys/one/rotate");
  const two = rotated.json.key;
  for (const used of [one, two, first])
    for (const key of [one, two, first])
      await check(gate, { tool_name: "note.add", tool_input: { key } }, { authorization: `Bearer ${used}` });
  await act(gate, operator, "/admin/keys", { name: two, owner: 5 });
  await act(gate, two, `/admin/keys/${one}/revoke`);
  await ask(gate, "/nowhere", bearer(two));
  await ask(gate, "/rules", bearer(two));
  gate.kill("SIGTERM");
  assert.equal(await gate.exit, 0);
  const files = readdirSync(data, { recursive: true, encoding: "utf8" }).filter((name) =>
    statSync(join(data, name)).isFile(),
  );
  const filesWith = (text: string): readonly string[] =>
    files.filter((name) => spellings(text).some((spelling) => readFileSync(join(data, name)).includes(spelling)));
  assert.deepEqual(files.toSorted(), [
    "checkpoint",
    "first-key",
    "head.pin",
    "key-uses.json",
    "keys.json",
    "ledger.db",
    "owner.lock",
    "signing.key",
  ]);
  // A key among a call's arguments is the caller's data: the search must find it.
  assert.deepEqual([...new Set([one, two].flatMap(filesWith))], ["ledger.db"], "positive control");
  assert.deepEqual(filesWith(operator), []);
  const rows = await command(["verify", data]);
  assert.equal(rows.code, 0, rows.stderr);
  for (const key of [one, two, first, operator])
    assert.ok(!gate.stderr().includes(key) && !gate.stdout().includes(key));
  assert.ok(
    gate.stderr().includes('"key":"one"') || gate.stderr().includes("forbidden"),
    "positive control: it is logged",
  );
});

test("keys survive a restart, and verify, replay and report accept the rows of key changes", async (t) => {
  const folder = temporaryFolder(t);
  const gate = await startGate(t, { folder });
  const key = await make(gate, operatorKey(folder), { name: "ci", scopes: ["check", "rules"] });
  const gone = await make(gate, operatorKey(folder), { name: "gone" });
  await checkWith(gate, key);
  await act(gate, operatorKey(folder), "/admin/keys/gone/revoke");
  await checkWith(gate, key, "mail.send");
  await gate.stop();
  const data = join(folder, "data");
  for (const args of [["verify"], ["replay"], ["report"]]) {
    const { code, stdout, stderr } = await command([...args, data]);
    assert.equal(code, 0, `${args.join(" ")}: ${stdout}${stderr}`);
  }
  const again = await startGate(t, { folder });
  assert.deepEqual([(await checkWith(again, key)).status, (await checkWith(again, gone)).status], [200, 401]);
  const { json } = await ask(again, "/receipts?kind=all&limit=5");
  assert.equal(json.receipts.filter((row: { kind?: string }) => row.kind === "change").length, 2);
  assert.equal((await ask(again, "/rules", bearer(firstKey))).status, 200);
});

/** Returns the messages of the warnings in a process's log. */
function warningsIn({ stderr }: { readonly stderr: () => string }): readonly string[] {
  const lines = stderr()
    .split("\n")
    .filter((line) => line.startsWith('{"level":40,'));
  return lines.map((line) => (JSON.parse(line) as { readonly msg: string }).msg);
}

test("a revoked first key stays revoked although SVC_API_KEY names it, and the start says so", async (t) => {
  const folder = temporaryFolder(t);
  const env = { SVC_DATA_DIR: join(folder, "data"), SVC_API_KEY: firstKey };
  const gate = await spawnGate(t, [], { cwd: folder, env });
  assert.equal((await checkWith(gate, firstKey)).status, 200);
  assert.equal((await act(gate, operatorKey(folder), "/admin/keys/default/revoke")).status, 200);
  assert.equal((await checkWith(gate, firstKey)).status, 401);
  gate.kill("SIGTERM");
  await gate.exit;
  const again = await spawnGate(t, [], { cwd: folder, env });
  assert.equal((await checkWith(again, firstKey)).status, 401);
  assert.equal(warningsIn(again).length, warningsIn(gate).length + 1);
  says("SVC_API_KEY names a revoked key", warningsIn(again).find((line) => line.includes("SVC_API_KEY")) ?? "");
});

/** Sends a check whose body ends only after another action; returns the answer's status. */
async function checkAround(gate: Running, key: string, meanwhile: () => Promise<unknown>): Promise<number> {
  const body = JSON.stringify({ tool_name: "note.add", tool_input: {} });
  const socket = connect(gate.port, "127.0.0.1");
  await once(socket, "connect");
  const head = ["POST /check HTTP/1.1", "Host: gate", `Authorization: Bearer ${key}`, "Content-Type: application/json"];
  head.push(`Content-Length: ${body.length}`, "Expect: 100-continue");
  socket.write(`${head.join("\r\n")}\r\n\r\n`);
  await once(socket, "data"); // The gate has read the head and accepted the key.
  await meanwhile();
  socket.write(body);
  const [answer] = (await once(socket, "data")) as [Buffer];
  socket.destroy();
  return Number(answer.toString("latin1").split(" ")[1]);
}

test("a key that is revoked while the body of a check is arriving is refused", { tags: ["attack-14"] }, async (t) => {
  const gate = await startGate(t);
  const admin = operatorKey(gate.folder);
  const key = await make(gate, admin, { name: "slow", scopes: ["check"] });
  const rotate = (): Promise<Answer> => act(gate, admin, "/admin/keys/slow/rotate", { overlap: "1h" });
  assert.equal(
    await checkAround(gate, key, () => Promise.resolve()),
    200,
    "positive control: nothing happens meanwhile",
  );
  assert.equal(await checkAround(gate, key, rotate), 200, "the key before a rotation is valid until the overlap ends");
  const before = gate.ledger.head.seq;
  assert.equal(await checkAround(gate, key, () => act(gate, admin, "/admin/keys/slow/revoke")), 401);
  assert.equal(gate.ledger.head.seq, before + 1, "the revocation's row alone");
});
