/**
 * Goal: each refusal of the table can be raised, has its status and the shape of problem details, writes no receipt and
 * shows no key. Method: a table keyed by the entries of `refusals`, so that an entry without a case does not compile. A
 * second table has the possible values of the Authorization header.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { limits, refusals, type RefusalCode } from "../../packages/core/src/wire/mod.ts";
import { until } from "../support/anchor-kit.ts";
import {
  keepsNothing,
  ask,
  check,
  desk,
  pauseLedger,
  key,
  post,
  requestText,
  send,
  startGate,
  submit,
  temporaryFolder,
  type Refused,
  type Running,
} from "../support/gate.ts";
import { oidcFile } from "../support/oidc.ts";

const json = "Content-Type: application/json";
const call = '{"tool_name":"note.add","tool_input":{}}';

type Raise = (gate: Running, t: TestContext) => Promise<Refused>;

const raise: Readonly<Record<RefusalCode, Raise>> = {
  "invalid-json": (gate) => send(gate, post("{")),
  "invalid-request": (gate) => send(gate, post('{"tool_name":"note.add"}')),
  "invalid-query": (gate) => send(gate, requestText("GET /receipts?limit=0 HTTP/1.1")),
  "bad-http": (gate) => send(gate, "NONSENSE\r\n\r\n"),
  unauthorized: (gate) => send(gate, "GET /rules HTTP/1.1\r\nHost: gate\r\n\r\n"),
  "wrong-tool": async (gate) => {
    const mailer = await make(gate, '{"name":"mailer","tools":["mail.*"]}');
    return send(gate, post(call).replace(key, mailer));
  },
  "sign-in-refused": (gate) =>
    signsIn(gate, { Host: hostOf(gate) }, { body: '{"oidc":{"flow":"forged","answer":"?code=x"}}' }),
  "provider-unavailable": (gate) => signsIn(gate, { Host: hostOf(gate) }, { path: "/oidc", body: "{}" }),
  "code-needed": (gate) => signsIn(gate, { Host: hostOf(gate) }),
  "wrong-origin": (gate) => signsIn(gate, { Host: hostOf(gate), Origin: "https://evil.example" }),
  "wrong-host": (gate) => signsIn(gate, { Host: "evil.example" }),
  forbidden: (gate) => send(gate, requestText("GET /admin/keys HTTP/1.1")),
  "call-id-used": async (gate) => {
    const identified = (input: string): string =>
      post(`{"tool_name":"note.add","tool_input":${input},"call_id":"${"0".repeat(32)}"}`);
    await send(gate, identified("{}"));
    return send(gate, identified('{"a":1}'));
  },
  conflict: (gate) => send(gate, operated(gate, post('{"name":"default"}').replace("/check", "/admin/keys"))),
  "not-found": (gate) => send(gate, requestText("GET /rule HTTP/1.1")),
  "method-not-allowed": (gate) => send(gate, requestText("PUT /check HTTP/1.1")),
  "body-timeout": (gate) => send(gate, requestText("POST /check HTTP/1.1", [json, "Content-Length: 99"], "{")),
  "body-too-large": (gate) => send(gate, post(" ".repeat(limits.bodyBytesMax + 1))),
  "unsupported-media-type": (gate) => send(gate, post(call).replace(json, "Content-Type: text/plain")),
  "headers-too-large": (gate) => send(gate, post(call, `X-Long: ${"x".repeat(limits.headerBytesMax)}`)),
  "contract-refused": (gate) => {
    writeFileSync(join(gate.folder, "mandate.yaml"), "mandate: test\n");
    return send(gate, operated(gate, post("{}").replace("/check", "/admin/reload")));
  },
  "rate-limited": async (gate) => {
    const slow = post(call).replace(key, await make(gate, '{"name":"slow","rate":{"per_second":1}}'));
    for (;;) {
      const answer = await send(gate, slow);
      if (answer.status !== 200) return answer;
    }
  },
  "tenant-unavailable": async (gate) => {
    const theirs = await make(gate, '{"name":"theirs","tenant":"broken","scopes":["rules"]}');
    return send(gate, requestText("GET /t/broken/rules HTTP/1.1").replace(key, theirs));
  },
  "queue-full": async (gate, t) => {
    const release = pauseLedger(gate, t);
    const waiting = [submit(gate, 0)];
    await release.started;
    waiting.push(submit(gate, limits.queueBytesMax));
    const refused = await send(gate, post(call));
    release.go();
    await Promise.all(waiting);
    return refused;
  },
  stopping: async (gate) => {
    await gate.gate.drain();
    return send(gate, post(call));
  },
  "ledger-unavailable": (gate, t) => {
    keepsNothing(gate, t);
    return send(gate, post(call));
  },
  superseded: (gate, t) => {
    const inForce = { contract: "", mode: "observe", engine: "svc-gate/999.0.0" };
    const transaction = { head: gate.ledger.head, store: { at: undefined, inForce }, abort: async () => undefined };
    t.mock.method(gate.ledger, "begin", async () => transaction);
    return send(gate, post(call));
  },
  "approval-closed": async (gate) => {
    const { id, hash, person } = await park(gate);
    await decide(gate, person, `${id}/deny`, { hash, comment: "no" });
    return decide(gate, person, `${id}/approve`, { hash });
  },
  "stop-refused": (gate) => operate(gate, "/admin/stop/lift", '{"scope":"all"}'),
  "approval-changed": async (gate) => {
    const { id, person } = await park(gate);
    return decide(gate, person, `${id}/approve`, { hash: "0".repeat(64) });
  },
  "not-an-approver": async (gate) => {
    const { id, hash } = await park(gate, "legal.sign");
    const person = await makePerson(gate, "dora", "approve", "receipts");
    return decide(gate, person, `${id}/approve`, { hash });
  },
  "self-approval": async (gate) => {
    await operate(gate, "/admin/persons", '{"name":"anna"}');
    const agent = await make(gate, '{"name":"agent","person":"anna"}');
    const { id, hash, person } = await park(gate, "mail.send", agent);
    return decide(gate, person, `${id}/approve`, { hash });
  },
  "too-many-waiting": async (gate) => {
    const { id, hash, person } = await park(gate);
    const path = `GET /approvals/${id}?wait=30 HTTP/1.1`;
    const waiting = Array.from({ length: limits.waitersOfKeyMax }, () => send(gate, requestText(path)));
    await until(() => gate.gate.approvals.waits.size === limits.waitersOfKeyMax);
    const refused = await send(gate, requestText(path));
    await decide(gate, person, `${id}/approve`, { hash });
    await Promise.all(waiting);
    return refused;
  },
  "grant-refused": async (gate) => {
    const { id, hash, person } = await park(gate);
    return decide(gate, person, `${id}/approve`, { hash, grant: {} });
  },
  "outcome-refused": async (gate) => {
    const { receipt } = (await check(gate, call.replace("note.add", "nobody.knows"))).json;
    return send(gate, post(JSON.stringify({ receipt, status: "done" })).replace("/check", "/outcomes"));
  },
  "clock-unreliable": (gate, t) => {
    const now = Date.now;
    t.mock.method(Date, "now", () => now() + 61_000);
    return send(gate, post(call));
  },
};

const hostOf = (gate: Running): string => new URL(gate.address).host;

/** Sends the sign-in of the console's page, with other header fields. */
function signsIn(
  gate: Running,
  own: Readonly<Record<string, string>>,
  { path = "/session", body = JSON.stringify({ key }) } = {},
): Promise<Refused> {
  const fields = {
    Origin: gate.address,
    "Sec-Fetch-Site": "same-origin",
    "X-Svc-Console": "1",
    "Content-Type": "application/json",
    "Content-Length": String(body.length),
    Connection: "close",
    ...own,
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return send(gate, `POST /console${path} HTTP/1.1\r\n${lines.join("")}\r\n${body}`);
}

interface Parked {
  readonly id: string;
  readonly hash: string;
  /** The key of anna, who may decide mail. */
  readonly person: string;
}

/** Parks a call for a person. */
async function park(gate: Running, tool = "mail.send", agent = key): Promise<Parked> {
  const { json: parked } = await check(gate, call.replace("note.add", tool), { authorization: `Bearer ${agent}` });
  const { id } = parked.approval as { readonly id: string };
  const { json: shown } = await ask(gate, `/approvals/${id}`);
  return { id, hash: shown.hash, person: await makePerson(gate, "anna", "approve") };
}

/** Makes a person and a key of that person. */
async function makePerson(gate: Running, person: string, ...scopes: readonly string[]): Promise<string> {
  await operate(gate, "/admin/persons", JSON.stringify({ name: person }));
  return make(gate, JSON.stringify({ name: `${person}-laptop`, scopes, person }));
}

function decide(gate: Running, person: string, path: string, body: object): Promise<Refused> {
  return send(gate, post(JSON.stringify(body)).replace("/check", `/approvals/${path}`).replace(key, person));
}

function operate(gate: Running, path: string, body: string): Promise<Refused> {
  return send(gate, operated(gate, post(body).replace("/check", path)));
}

/** Sends a request as the gate's operator does. */
function operated(gate: Running, request: string): string {
  const door = JSON.parse(readFileSync(join(gate.folder, "data", "operator.json"), "utf8")) as { readonly key: string };
  return request.replace(key, door.key);
}

async function make(gate: Running, body: string): Promise<string> {
  const made = await operate(gate, "/admin/keys", body);
  return (JSON.parse(made.body) as { readonly key: string }).key;
}

/** A desk with a tool that one group decides. */
const withLegal = desk.replace(
  "tools:\n",
  "tools:\n  legal.sign: { input: { type: object, additionalProperties: true }, otherwise: ESCALATE, approval: { by: [legal] } }\n",
);

const kept: ReadonlyMap<string, number> = new Map([
  ["call-id-used", 1],
  ["queue-full", 2],
  ["approval-closed", 4],
  ["grant-refused", 3],
  ["approval-changed", 3],
  ["not-an-approver", 5],
  ["self-approval", 4],
  ["too-many-waiting", 4],
  ["outcome-refused", 1],
  ["tenant-unavailable", 1],
  ["wrong-tool", 1],
]);

test("every refusal has its status and details and writes no receipt", { tags: ["error.refusals"] }, async (t) => {
  const codes = Object.keys(refusals) as RefusalCode[];
  assert.deepEqual(Object.keys(raise).toSorted(), codes.toSorted(), "a refusal without a case");
  await Promise.all(
    codes.map((code) => t.test(`the gate answers with the refusal ${code}`, (inner) => raised(code, inner))),
  );
});

async function raised(code: RefusalCode, t: TestContext): Promise<void> {
  const folder = temporaryFolder(t);
  const tenants = join(folder, "tenants.yaml");
  writeFileSync(tenants, "tenants:\n  broken: { mandate: nowhere.yaml }\n");
  const oidc = oidcFile(folder, { issuer: "http://127.0.0.1:9" }); // Nothing listens there.
  const gate = await startGate(t, { folder, contracts: { "desk.yaml": withLegal }, flags: { tenants, oidc } });
  const { status, head, body } = await raise[code](gate, t);
  assert.equal(status, refusals[code].status, body);
  assert.match(head, /^content-type: application\/problem\+json/im);
  assert.match(head, /^cache-control: no-store/im);
  const problem = JSON.parse(body);
  assert.deepEqual(Object.keys(problem), ["type", "title", "status", "code", "detail"]);
  assert.deepEqual([problem.type, problem.code], [`urn:svc-gate:refusal:${code}`, code]);
  assert.deepEqual([problem.title, problem.status], [refusals[code].title, status]);
  // One sentence, except for a contract: its detail lists every error, as the compiler prints it.
  assert.match(problem.detail, code === "contract-refused" ? /^error\[missing\]: / : /^[^\n]{10,}$/);
  assert.ok(!`${head}${body}`.includes(key));
  assert.equal(/^www-authenticate: Bearer\r?$/im.test(head), status === 401);
  assert.equal(/^retry-after: \d+\r?$/im.test(head), status === 503 || status === 429);
  assert.equal(/^allow: POST\r?$/im.test(head), status === 405);
  t.mock.restoreAll();
  const { json: walk } = await ask(gate, "/ledger/verify");
  assert.equal(walk.ok, true);
  if (code !== "rate-limited") assert.equal(walk.rows, kept.get(code) ?? 0);
}

const wrongKeys: readonly (readonly [string, string | undefined])[] = [
  ["no key", undefined],
  ["an empty one", "Bearer "],
  ["a wrong one", "Bearer wrong"],
  ["the key and more", `Bearer ${key}x`],
  ["half the key", `Bearer ${key.slice(0, -1)}`],
  ["another scheme", `Basic ${Buffer.from(`:${key}`).toString("base64")}`],
  ["no scheme", key],
  ["two keys", `Bearer ${key} ${key}`],
  ["the digest of the key", `Bearer ${createHash("sha256").update(key).digest("hex")}`],
];

test(
  "without a valid key every path except /health answers the same 401",
  { tags: ["auth.bearer", "auth.required-routes", "health.only-open-route", "auth.key-is-boundary"] },
  async (t) => {
    const gate = await startGate(t);
    const known = ["/check", "/rules", "/receipts", "/receipts/1", "/ledger/verify"];
    const paths = [
      ...known,
      "/check",
      "/rules",
      "/receipts",
      "/receipts/1",
      "/ledger/verify",
      "/",
      "/unknown",
      "/health/",
      "/healthz",
      "/%zz",
      "//health",
      "/HEALTH",
    ];
    const texts = new Set<string>();
    for (const [, authorization = ""] of wrongKeys) {
      for (const path of paths) {
        for (const method of ["GET", "POST", "DELETE"]) {
          const answer = await ask(gate, path, { method, headers: { authorization } });
          assert.equal(answer.status, 401, `${method} ${path} with ${authorization}`);
          assert.equal(answer.headers.get("www-authenticate"), "Bearer");
          texts.add(answer.text);
        }
      }
      assert.equal((await ask(gate, "/health", { headers: { authorization } })).status, 200);
      assert.equal((await ask(gate, "/health?x=1", { headers: { authorization } })).status, 200);
      assert.equal((await ask(gate, "/health", { method: "POST", headers: { authorization } })).status, 401);
    }
    assert.equal(texts.size, 1);
    for (const authorization of [`bearer ${key}`, `BEARER  ${key}`]) {
      assert.equal((await ask(gate, "/rules", { headers: { authorization } })).status, 200, authorization);
    }
    assert.equal(gate.ledger.head.seq, 0);
  },
);

test("the gate refuses a wrong key before it reads the body, even a huge or endless one", async (t) => {
  const gate = await startGate(t);
  const head = ["POST /check HTTP/1.1", "Host: gate", "Authorization: Bearer wrong", json];
  const never = await send(gate, `${head.join("\r\n")}\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n`);
  assert.equal(never.status, 401);
  const huge = await send(gate, `${head.join("\r\n")}\r\nContent-Length: 9999999999\r\n\r\n{`);
  assert.equal(huge.status, 401);
  const patient = await send(gate, `${head.join("\r\n")}\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n`);
  assert.equal(patient.status, 401);
  assert.ok(!patient.head.includes("100 Continue"));
});
