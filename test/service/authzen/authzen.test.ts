/**
 * Goal: an AuthZEN evaluation is a check: the same keys, facts, limits, counters, approvals and receipts, and nothing
 * but an ALLOW permits. Method: scenarios over HTTP. Positive control: each fails on a gate with a planted defect.
 */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { limits } from "../../../packages/core/src/wire/mod.ts";
import { runScenarios, type Desk } from "../../support/approvals.ts";
import { ask, key, requestText, send, startGate, temporaryFolder, type Answer } from "../../support/gate.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const contract = `contract: shop
platform:
  type: object
  properties: { budget: { type: number }, region: { type: string } }
host_facts: [region]
tools:
  pay:
    input:
      type: object
      additionalProperties: false
      required: [subject, action, resource]
      properties:
        subject: { type: object, additionalProperties: true }
        resource: { type: object, additionalProperties: true }
        action:
          type: object
          additionalProperties: false
          required: [properties]
          properties:
            properties:
              type: object
              additionalProperties: true
              required: [amount]
              properties: { amount: { type: number } }
    requires:
      - when: platform.present && has(platform.budget)
        reason: the platform did not send its budget
    otherwise: ALLOW
  look: { aliases: [view], input: { type: object, additionalProperties: true }, otherwise: ALLOW }
  local:
    input: { type: object, additionalProperties: true }
    requires: [platform.present, has(platform.region)]
    otherwise: ALLOW
  shut: { input: { type: object, additionalProperties: true }, otherwise: BLOCK }
  ask: { input: { type: object, additionalProperties: true }, otherwise: ESCALATE }
  visit: { input: { type: object, additionalProperties: true }, otherwise: ALLOW }
counters:
  visits: { of: visit, per: session }
rules:
  - rule: budget
    on: pay
    when: input.action.properties.amount > platform.budget
    verdict: BLOCK
    reason: "{input.action.properties.amount} is over {platform.budget}"
  - { rule: often, on: visit, when: counters.visits > 1, verdict: BLOCK, reason: "{counters.visits} visits are enough" }
`;
const options = { contract };

const subject = { type: "user", id: "anna" };
const resource = { type: "shop", id: "s1" };
const act = (name: string, properties?: object): object => ({
  subject,
  resource,
  action: { name, ...(properties && { properties }) },
});
const pay = { ...act("pay", { amount: 5 }), context: { budget: 10 } };

function post({ address }: Pick<Desk, "address">, path: string, body: object | string, own = key): Promise<Answer> {
  return ask({ address }, `/access/v1${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${own}` },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

const one = (desk: Pick<Desk, "address">, body: object | string, own?: string): Promise<Answer> =>
  post(desk, "/evaluation", body, own);

async function decisionOf(desk: Pick<Desk, "address">, body: object | string, own?: string): Promise<any> {
  const { status, text, json } = await one(desk, body, own);
  assert.equal(status, 200, text);
  assert.deepEqual(Object.keys(json), ["decision", "context"]);
  return json;
}

/** The decisions of a batch, and the whole of each. */
async function batch(desk: Pick<Desk, "address">, body: object | string, own?: string): Promise<readonly any[]> {
  const { status, text, json } = await post(desk, "/evaluations", body, own);
  assert.equal(status, 200, text);
  assert.deepEqual(Object.keys(json), ["evaluations"]);
  return json.evaluations;
}

const decisions = (items: readonly any[]): readonly boolean[] => items.map(({ decision }) => decision);

async function madeKey(desk: Desk, body: object): Promise<string> {
  const { status, json, text } = await desk.operates("/admin/keys", body);
  assert.equal(status, 201, text);
  return json.key;
}

runScenarios("AuthZEN evaluations", [
  {
    rule: "the receipt has the tool, subject, action and resource as they came, the facts, the session and the body's digest",
    options,
    run: async (desk) => {
      const body =
        '{"subject":{"type":"user","id":"anna","more":1,"properties":{"a":1.50}},"resource":{"type":"shop","id":"\\u0061"},' +
        '"action":{"name":"pay","properties":{"amount":5.0,"list":[1e2,null,"\\u00e9"]}},"context":{"budget":10.00},' +
        '"session_id":"run","unknown":{"x":1}}';
      const { decision, context } = await decisionOf(desk, body);
      assert.equal(decision, true, JSON.stringify(context));
      assert.equal(context.receipt.request, hash("sha256", body, "hex"));
      const { text, json: row } = await ask(desk, `/receipts/${context.receipt.seq}`);
      assert.deepEqual([row.tool_name, row.session_id, row.verdict], ["pay", "run", "ALLOW"]);
      const input =
        '{"subject":{"type":"user","id":"anna","properties":{"a":1.50}},"action":{"properties":{"amount":5.0,' +
        '"list":[1e2,null,"é"]}},"resource":{"type":"shop","id":"a"}}';
      assert.ok(text.includes(`"tool_input":${input},"platform_state":{"budget":10.00}`), text);
    },
    defect: { within: "jsonText", module: "wire/json", find: "value.text", put: "String(Number(value.text))" },
  },
  {
    rule: "facts come from the context alone: a snapshot among the properties is not one",
    options,
    run: async (desk) => {
      assert.equal((await decisionOf(desk, pay)).decision, true);
      const facts = { budget: 10 };
      for (const [name, request] of Object.entries({
        resource: { ...act("pay", { amount: 5 }), resource: { ...resource, properties: facts } },
        subject: { ...act("pay", { amount: 5 }), subject: { ...subject, properties: facts } },
        action: act("pay", { amount: 5, ...facts }),
        platform_state: { ...act("pay", { amount: 5 }), platform_state: facts },
      })) {
        const { decision, context } = await decisionOf(desk, request);
        assert.deepEqual([decision, context.reason], [false, "Svc: the platform did not send its budget"], name);
        const { json: row } = await ask(desk, `/receipts/${context.receipt.seq}`);
        assert.equal(row.platform_state, null);
      }
    },
    defect: {
      within: "toCheck",
      find: 'members.get("context")',
      put: 'members.get("context") ?? members.get("platform_state") ?? members.get("resource").get("properties")',
    },
  },
  {
    rule: "a member that is in the context and among the properties is a 400",
    options,
    run: async (desk) => {
      const rows = await desk.rows();
      const facts = { budget: 10 };
      for (const [name, request] of Object.entries({
        resource: { ...pay, resource: { ...resource, properties: facts } },
        subject: { ...pay, subject: { ...subject, properties: { budget: 1 } } },
        action: { ...pay, ...act("pay", { amount: 5, budget: 10 }) },
      })) {
        const { status, json } = await one(desk, request);
        assert.deepEqual([status, json.code], [400, "invalid-request"]);
        says(`twice: ${name}`, json.detail);
      }
      assert.equal(await desk.rows(), rows);
      const items = await batch(desk, { ...pay, evaluations: [{}, { resource: { ...resource, properties: facts } }] });
      assert.deepEqual(decisions(items), [true, false]);
      assert.equal(items[1].context.error.status, 400);
    },
    defect: { within: "toCheck", find: "sharedMember(members)", put: "undefined" },
  },
  {
    rule: "only ALLOW is true: a BLOCK and an ESCALATE are false, and the context is the answer of a check",
    options,
    run: async (desk) => {
      for (const [name, verdict] of [
        ["look", "ALLOW"],
        ["view", "ALLOW"],
        ["shut", "BLOCK"],
        ["nobody", "BLOCK"],
        ["ask", "ESCALATE"],
      ] as const) {
        const { decision, context } = await decisionOf(desk, act(name));
        assert.deepEqual([decision, context.verdict, context.mode], [verdict === "ALLOW", verdict, "enforce"], name);
        const parked = verdict === "ESCALATE" ? ["approval"] : [];
        assert.deepEqual(Object.keys(context), ["verdict", "reason", "mode", "receipt", ...parked]);
      }
    },
    defect: { within: "decide", module: "http/authzen", find: 'verdict === "ALLOW"', put: 'verdict !== "BLOCK"' },
  },
  {
    rule: "a call that a person approved is true once, if the request names the approval",
    options,
    run: async (desk) => {
      const { approval } = (await decisionOf(desk, act("ask"))).context;
      assert.equal((await desk.decides("anna", approval.id, "approve")).status, 200);
      const again = (await decisionOf(desk, act("ask"))).context;
      assert.deepEqual([again.verdict, again.approval.next], ["ESCALATE", "check"]);
      const named = { ...act("ask"), approval: { id: approval.id } };
      assert.equal((await decisionOf(desk, { ...named, resource: { ...resource, id: "s2" } })).decision, false);
      // It is for one evaluation, so the others of a request do not inherit it.
      const items = await batch(desk, { ...named, evaluations: [{}, { approval: { id: approval.id } }] });
      assert.deepEqual(decisions(items), [false, true]);
      assert.equal((await decisionOf(desk, named)).decision, false);
    },
    defect: { within: "toCheck", find: '["session_id", "approval"]', put: '["session_id"]' },
  },
  {
    rule: "while the gate observes, each decision is true, and the context says so",
    options: { ...options, mode: "observe" },
    run: async (desk) => {
      for (const name of ["look", "shut", "ask"]) {
        const { decision, context } = await decisionOf(desk, act(name));
        assert.deepEqual([decision, context.mode], [true, "observe"]);
      }
      assert.equal((await ask(desk, "/receipts?limit=1")).json.receipts[0].verdict, "ESCALATE");
    },
    defect: {
      within: "decide",
      module: "http/authzen",
      find: '`{"decision":${decision},"context":${answered.value}}`',
      put: '`{"decision":${decision}}`',
    },
  },
  {
    rule: "a batch ends with its first denial, or with its first permit, if it says so",
    options,
    run: async (desk) => {
      const evaluations = ["look", "shut", "look", "ask"].map((name) => ({ action: { name } }));
      const request = { subject, resource, evaluations };
      const run = async (semantic: string | undefined, items = evaluations): Promise<readonly boolean[]> => {
        const before = await desk.rows();
        const named = semantic === undefined ? {} : { options: { evaluations_semantic: semantic, later: 1 } };
        const answer = decisions(await batch(desk, { ...request, evaluations: items, ...named }));
        const judged = items.slice(0, answer.length).filter(({ action }) => typeof action.name === "string");
        assert.equal(await desk.rows(), before + judged.length, "only what was judged has a receipt");
        return answer;
      };
      assert.deepEqual(await run(undefined), [true, false, true, false]);
      assert.deepEqual(await run("execute_all"), [true, false, true, false]);
      assert.deepEqual(await run("deny_on_first_deny"), [true, false]);
      assert.deepEqual(await run("permit_on_first_permit"), [true]);
      assert.deepEqual(await run("permit_on_first_permit", evaluations.toReversed()), [false, true]);
      const broken: any[] = [{ action: { name: 1 } }, { action: { name: "look" } }];
      assert.deepEqual(await run("deny_on_first_deny", broken), [false], "a failure is a denial");
      assert.deepEqual(await run("permit_on_first_permit", broken), [false, true]);
    },
    defect: { within: "decideAll", find: "decided.at(-1)?.decision === last", put: "false" },
  },
  {
    rule: "an unknown semantic is a 400, and so are options and a list of another type",
    options,
    run: async (desk) => {
      const rows = await desk.rows();
      for (const [name, more] of Object.entries({
        "unknown semantic": { options: { evaluations_semantic: "permit_all" } },
        "another case": { options: { evaluations_semantic: "Execute_All" } },
        "semantic null": { options: { evaluations_semantic: null } },
        "options text": { options: "execute_all" },
        "options null": { options: null },
        "list null": { evaluations: null },
        "list object": { evaluations: {} },
        "wrong default": { subject: "anna" },
        "incomplete default": { resource: { type: "shop" } },
        "wrong context": { context: [] },
      })) {
        const request = { evaluations: [{ ...act("look"), context: {} }], ...more };
        const { status, json } = await post(desk, "/evaluations", request);
        assert.deepEqual([status, json.code], [400, "invalid-request"], name);
        says(`batch: ${name}`, json.detail);
      }
      assert.equal(await desk.rows(), rows);
    },
    defect: { within: "semanticOf", find: "semantics.find((each) => each === named)", put: '"execute_all"' },
  },
  {
    rule: "one evaluation that cannot be read is denied with its error, and the others are decided",
    options,
    run: async (desk) => {
      const broken: Readonly<Record<string, unknown>> = {
        "a text": "look",
        "a list": [],
        null: null,
        "no name": { action: {} },
        "a number as type": { resource: { type: 1, id: "s1" } },
        "properties null": { subject: { ...subject, properties: null } },
        "context null": { context: null },
        "an empty session": { session_id: "" },
        "an empty tool": { action: { name: "" } },
        "another approval": { approval: "apr_1" },
      };
      for (const [name, item] of Object.entries(broken)) {
        const rows = await desk.rows();
        const items = await batch(desk, { ...act("look"), evaluations: [{}, item, {}] });
        assert.deepEqual(decisions(items), [true, false, true], name);
        const { error } = items[1].context;
        assert.deepEqual([error.status, error.code], [400, "invalid-request"]);
        says(`item: ${name}`, error.message);
        assert.equal(await desk.rows(), rows + 2);
      }
    },
    defect: { within: "batchOf", find: "checks.push(check);", put: "if (check.ok) checks.push(check);" },
  },
  {
    rule: "each evaluation counts, also if it is in the list twice",
    options,
    run: async (desk) => {
      const items = await batch(desk, {
        ...act("visit"),
        session_id: "run",
        evaluations: [{}, {}, {}, { session_id: "b" }],
      });
      assert.deepEqual(decisions(items), [true, true, false, true]);
      const rows = items.map(({ context }) => context.receipt.seq);
      assert.deepEqual(
        rows,
        rows.toSorted((a, b) => a - b),
        "the receipts are in the order of the request",
      );
      assert.equal((await decisionOf(desk, { ...act("visit"), session_id: "run" })).decision, false);
    },
    defect: {
      within: "inherited",
      find: '["subject", "action", "resource", "context", "session_id"]',
      put: '["subject", "action", "resource", "context"]',
    },
  },
  {
    rule: "a member that appears twice is refused at any depth, and nothing of the request is decided",
    options,
    run: async (desk) => {
      const rows = await desk.rows();
      const text = JSON.stringify(pay);
      const twice = [
        text.replace('"context"', '"context":{"budget":1},"context"'),
        text.replace('"budget"', '"budget":1,"budget"'),
        text.replace('"budget"', '"budget":1,"\\u0062udget"'),
        text.replace('"amount"', '"amount":1,"amount"'),
        `{"evaluations":[${text},${text.replace('"id"', '"id":"x","id"')}]}`,
      ];
      for (const body of twice) {
        for (const path of ["/evaluation", "/evaluations"]) {
          const { status, json } = await post(desk, path, body);
          assert.deepEqual([status, json.code], [400, "invalid-json"], body);
          assert.match(json.detail, /appears twice/);
        }
      }
      assert.equal(await desk.rows(), rows);
    },
    defect: { within: "JsonReader.#object", module: "wire/json", find: "members.has(name)", put: "false" },
  },
  {
    rule: "a body over the limit is refused, and so are evaluations that exceed it with their defaults",
    options,
    run: async (desk) => {
      const rows = await desk.rows();
      const filled = { ...subject, properties: { text: "x".repeat(limits.bodyBytesMax / 4) } };
      const request = { ...act("look"), subject: filled };
      const large = await one(desk, JSON.stringify(pay).padEnd(limits.bodyBytesMax + 1));
      const many = await post(desk, "/evaluations", { ...request, evaluations: [{}, {}, {}, {}] });
      for (const { status, json } of [large, many]) assert.deepEqual([status, json.code], [413, "body-too-large"]);
      says("evaluations with their defaults", many.json.detail);
      assert.equal(await desk.rows(), rows);
      assert.deepEqual(decisions(await batch(desk, { ...request, evaluations: [{}, {}, {}] })), [true, true, true]);
    },
    defect: { within: "batchOf", find: "rest < 0", put: "false" },
  },
  {
    rule: "the routes need a key with the scope check, and keep to the key's tools with 403",
    options,
    run: async (desk) => {
      const reader = await madeKey(desk, { name: "reader", scopes: ["rules"] });
      const narrow = await madeKey(desk, { name: "narrow", scopes: ["check"], tools: ["look"] });
      for (const path of ["/evaluation", "/evaluations"]) {
        const refused = await post(desk, path, pay, "wrong-key-wrong-key");
        assert.deepEqual([refused.status, refused.headers.get("www-authenticate")], [401, "Bearer"]);
        assert.equal((await post(desk, path, pay, reader)).status, 403);
        const { status, json } = await post(desk, path, pay, narrow);
        assert.deepEqual([status, json.code], [403, "forbidden"]);
      }
      const rows = await desk.rows();
      const items = await batch(desk, { ...pay, evaluations: [{}, { action: { name: "look" } }] }, narrow);
      assert.deepEqual(decisions(items), [false, true]);
      assert.deepEqual([items[0].context.error.status, items[0].context.error.code], [403, "forbidden"]);
      says("the key's tools", items[0].context.error.message);
      assert.equal(await desk.rows(), rows + 1);
    },
    defect: { within: "inDialect", find: 'dialect === "authzen"', put: "false" },
  },
  {
    rule: "each evaluation is charged to the key's rate",
    options,
    run: async (desk) => {
      const slow = await madeKey(desk, { name: "slow", scopes: ["check"], rate: { per_second: 1, burst: 3 } });
      const { headers, json } = await post(
        desk,
        "/evaluations",
        { ...act("look"), evaluations: [{}, {}, {}, {}, {}] },
        slow,
      );
      assert.deepEqual(decisions(json.evaluations), [true, true, true, false, false]);
      const { error } = json.evaluations[4].context;
      assert.deepEqual([error.status, error.code], [429, "rate-limited"]);
      assert.match(headers.get("ratelimit") ?? "", /r=0/);
    },
    defect: { within: "decideItem", find: "refusalForRate(exchange, service)", put: "undefined" },
  },
  {
    rule: "a fact of a host's key counts only if the contract lists it, and its properties never do",
    options,
    run: async (desk) => {
      const host = await madeKey(desk, { name: "laptop", kind: "host" });
      assert.equal((await decisionOf(desk, pay)).decision, true);
      const { decision, context } = await decisionOf(desk, pay, host);
      assert.equal(decision, false);
      says("a fact of a host", context.reason);
      const near = { ...act("local"), context: { region: "north" } };
      assert.deepEqual(decisions(await batch(desk, { evaluations: [near, pay] }, host)), [true, false]);
      assert.equal((await ask(desk, `/receipts/${context.receipt.seq}`)).json.key_kind, "host");
    },
    defect: { within: "answerCheck", find: "key?.kind", put: "undefined" },
  },
  {
    rule: "a key that was revoked during a batch decides nothing more",
    options,
    run: async (desk) => {
      const own = await madeKey(desk, { name: "short", scopes: ["check"] });
      const request = { ...act("look"), evaluations: Array.from({ length: limits.evaluationsMax }, () => ({})) };
      const running = batch(desk, { ...request, options: { evaluations_semantic: "deny_on_first_deny" } }, own);
      const hasStarted = async (): Promise<boolean> =>
        (await ask(desk, "/receipts?key=short")).json.receipts.length > 0;
      while (!(await hasStarted()));
      await desk.operates("/admin/keys/short/revoke", {});
      const items = await running;
      assert.ok(items.length < limits.evaluationsMax, `${items.length} were decided`);
      assert.equal(items.at(-1).context.error.code, "unauthorized");
    },
    defect: { within: "decideItem", find: "shared.credential()", put: "shared.key" },
  },
]);

test("tenants have the routes, and only a tenant's own key reads its document, at both paths", async (t) => {
  const folder = temporaryFolder(t);
  const tenants = join(folder, "tenants.yaml");
  writeFileSync(tenants, "tenants:\n  acme: { mandate: mandate.yaml }\n");
  const gate = await startGate(t, { folder, contracts: { "shop.yaml": contract }, flags: { tenants } });
  const operator = JSON.parse(readFileSync(join(folder, "data", "operator.json"), "utf8")).key as string;
  const made = await ask(gate, "/admin/keys", {
    method: "POST",
    headers: { authorization: `Bearer ${operator}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "acme", scopes: ["check"], tenant: "acme" }),
  });
  const acme = made.json.key as string;
  const read = (path: string, own: string): Promise<Answer> =>
    ask(gate, path, { headers: { authorization: own === "" ? "" : `Bearer ${own}` } });
  const documentPath = "/.well-known/authzen-configuration";
  const point = gate.address;
  assert.deepEqual((await read(documentPath, key)).json, {
    policy_decision_point: point,
    access_evaluation_endpoint: `${point}/access/v1/evaluation`,
    access_evaluations_endpoint: `${point}/access/v1/evaluations`,
  });
  // The first is where the standard looks.
  for (const path of [`${documentPath}/t/acme`, `/t/acme${documentPath}`]) {
    const { json } = await read(path, acme);
    assert.equal(json.policy_decision_point, `${point}/t/acme`);
    assert.equal(json.access_evaluation_endpoint, `${point}/t/acme/access/v1/evaluation`);
    const { status } = await post({ address: json.policy_decision_point }, "/evaluation", pay, acme);
    assert.equal(status, 200);
  }
  for (const own of ["", key, acme]) {
    for (const path of [
      `${documentPath}/t/none`,
      `/t/none${documentPath}`,
      ...(own === acme ? [documentPath] : [`${documentPath}/t/acme`]),
    ])
      assert.equal((await read(path, own)).status, 401, path);
  }
});

test("a document is only for the gate's own names, and without tenants there is none for a tenant", async (t) => {
  const gate = await startGate(t, { contracts: { "shop.yaml": contract } });
  const documentPath = "/.well-known/authzen-configuration";
  const line = `GET ${documentPath} HTTP/1.1`;
  const foreign = await send(gate, requestText(line));
  assert.equal(foreign.status, 421);
  says("another Host", JSON.parse(foreign.body).detail);
  const own = await send(gate, requestText(line).replace("Host: gate", `Host: localhost:${gate.port}`));
  assert.deepEqual([own.status, JSON.parse(own.body).policy_decision_point], [200, `http://localhost:${gate.port}`]);
  // A key of the root opens no tenant's path.
  assert.equal((await ask(gate, `${documentPath}/t/acme`)).status, 401);
});
