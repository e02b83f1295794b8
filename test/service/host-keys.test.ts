/**
 * Goal: the key of an agent's host is worth little, because the agent itself can read it. It opens seven routes, its
 * facts count only where a contract lists them, and its approvals lift only its own calls. Method: scenarios over HTTP,
 * each compared with an ordinary key. Positive control: each scenario fails on a gate with a planted defect.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { routes } from "../../packages/gate/src/server/http/routes.ts";
import { assertLedgerValid, naming, runScenarios, startDesk, type Desk } from "../support/approvals.ts";
import { command } from "../support/command.ts";
import { ask, check, type Answer } from "../support/gate.ts";
import { trySignIn } from "../support/console.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

/** The host may state its folder and a price. Nobody but the platform may state the wallet and the number of seats. */
const contract = `contract: pay
platform:
  type: object
  properties: { cwd: { type: string }, price: { type: number }, wallet: { type: string }, seats: { type: number } }
host_facts: [cwd, price]
subject: [platform.cwd, platform.wallet]
tools:
  pay.send:
    input: { type: object, additionalProperties: false, required: [amount], properties: { amount: { type: number, minimum: 0 } } }
    requires: platform.present
    otherwise: ALLOW
  pay.owned:
    input: { type: object, additionalProperties: true }
    requires: [platform.present, has(platform.wallet)]
    otherwise: ALLOW
counters:
  owned: { of: pay.send, per: key, when: has(platform.wallet) }
  spent: { of: pay.send, per: key, sum: input.amount, counting: released, settles: outcome, within: 24h }
rules:
  - rule: large
    on: pay.send
    when: input.amount > 1000
    verdict: ESCALATE
    approval: { by: [finance], pins: [platform.seats], grants: { at_most: 1h, uses: 5 } }
    reason: it is a large payment
  - rule: owner
    on: pay.send
    when: counters.owned > 1
    verdict: BLOCK
    reason: "{counters.owned} payments named a wallet"
  - rule: budget
    on: pay.send
    when: counters.spent + input.amount > 5000
    verdict: BLOCK
    reason: "{counters.spent} is spent"
`;

const facts = { cwd: "/home/anna", price: 3, wallet: "w", seats: 2 };
const call = (amount: number, state: object = facts): object => ({
  tool_name: "pay.send",
  tool_input: { amount },
  session_id: "s1",
  platform_state: state,
});

function hostKey(desk: Desk, more: object = {}): Promise<Answer> {
  return desk.operates("/admin/keys", { name: "laptop", kind: "host", ...more });
}

async function keyOf(made: Promise<Answer>): Promise<string> {
  const { status, text, json } = await made;
  assert.equal(status, 201, text);
  return json.key;
}

/** A host's key, and an ordinary key of an agent. */
async function agents(desk: Desk): Promise<readonly [host: string, ordinary: string]> {
  const ordinary = desk.operates("/admin/keys", { name: "agent", scopes: ["check"] });
  return [await keyOf(hostKey(desk)), await keyOf(ordinary)];
}

function send({ address }: Desk, key: string, path: string, body?: object | string): Promise<Answer> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  if (body === undefined) return ask({ address }, path, { headers });
  return ask({ address }, path, {
    method: "POST",
    headers,
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

async function partOf(desk: Desk, seq: number, name: string): Promise<unknown> {
  const { json } = await ask(desk, `/receipts/${seq}`);
  const parts = (json.evidence as readonly string[]).map((part) => Buffer.from(part, "base64url").toString());
  const text = parts.find((part) => part.startsWith(`","${name}",`, 24)) ?? assert.fail(`no ${name}`);
  return text.slice(24 + `","${name}",`.length, -1);
}

async function approvedFor(desk: Desk, key: string, of: object): Promise<string> {
  const parked = await desk.asks(of, key);
  assert.equal(parked.verdict, "ESCALATE", parked.reason);
  assert.equal((await desk.decides("anna", parked.approval.id, "approve")).json.status, "approved");
  return parked.approval.id;
}

/** Every route, and whether a host's key opens it. */
const opened: Readonly<Record<string, boolean>> = {
  "POST /check": true,
  "POST /hooks/claude-code": true,
  "POST /hooks/codex": true,
  "POST /hooks/gemini-cli": true,
  "POST /hooks/copilot-cli": true,
  "POST /hooks/envoy/:server": true,
  "POST /access/v1/evaluation": true,
  "POST /access/v1/evaluations": true,
  "GET /.well-known/authzen-configuration": false,
  "GET /.well-known/authzen-configuration/t/:tenant": false,
  "GET /rules": false,
  "GET /rules/example": false,
  "POST /explain": false,
  "GET /receipts": false,
  "GET /receipts/:seq": false,
  "GET /report": false,
  "GET /ledger/verify": false,
  "GET /checkpoint": false,
  "GET /tile/*": false,
  "GET /metrics": false,
  "GET /ready": false,
  "GET /approvals": false,
  "GET /approvals/:id": true,
  "POST /approvals/:id/approve": false,
  "POST /approvals/:id/deny": false,
  "POST /approvals/:id/cancel": false,
  "POST /approvals/decide": false,
  "GET /grants": false,
  "POST /grants": false,
  "POST /grants/:id/approve": false,
  "POST /grants/:id/revoke": false,
  "GET /events": false,
  "POST /outcomes": true,
  "GET /stop": false,
  "POST /admin/stop": false,
  "POST /admin/stop/lift": false,
  "POST /admin/reload": false,
  "POST /admin/erase": false,
  "GET /admin/keys": false,
  "POST /admin/keys": false,
  "POST /admin/keys/:name/rotate": false,
  "POST /admin/keys/:name/revoke": false,
  "POST /admin/keys/:name/update": false,
  "GET /admin/persons": false,
  "POST /admin/persons": false,
  "GET /admin/notify": false,
  "POST /admin/notify/replay": false,
};

async function stateOf(desk: Desk): Promise<any> {
  const key = await keyOf(desk.operates("/admin/keys", { name: "ops", scopes: ["admin"] }));
  const { json } = await send(desk, key, "/admin/keys");
  return json.keys.find(({ name }: { readonly name: string }) => name === "laptop");
}

runScenarios("keys of hosts", [
  {
    rule: "a host's key opens seven routes and no other",
    options: { contract },
    run: async (desk) => {
      const [host, ordinary] = await agents(desk);
      const needing = routes.filter(({ scope }) => scope !== undefined);
      assert.deepEqual(
        needing.map(({ method, path }) => `${method} ${path}`),
        Object.keys(opened),
      );
      const rows = await desk.rows();
      for (const { method, path } of needing) {
        // A stream would not end, so its query is wrong.
        const target = path === "/events" ? "/events?after=x" : path.replace(/:\w+/, "1");
        const { status, json } = await send(desk, host, target, method === "POST" ? "{" : undefined);
        const isClosed = status === 401 || (status === 403 && json.code === "forbidden");
        assert.equal(!isClosed, opened[`${method} ${path}`], `${method} ${path}: ${status}`);
        if (isClosed && status === 403) says("another route", json.detail);
      }
      assert.equal(await desk.rows(), rows);
      // The only route that a host's key loses against an ordinary key with the scope check.
      const { approval } = await desk.asks(call(1200), host);
      assert.equal((await send(desk, host, `/approvals/${approval.id}/cancel`, { session_id: "s1" })).status, 403);
      const own = (await desk.asks(call(1300), ordinary)).approval;
      assert.equal((await send(desk, ordinary, `/approvals/${own.id}/cancel`, { session_id: "s1" })).status, 200);
    },
    defect: { within: "refusalForKey", find: "!forHosts && key.kind !== undefined", put: "false" },
  },
  {
    rule: "a host's key checks only its tools, and reads only the approvals that it asked for, without the call",
    options: { contract },
    run: async (desk) => {
      const host = await keyOf(hostKey(desk, { tools: ["pay.send"] }));
      const other = await keyOf(hostKey(desk, { name: "desktop" }));
      assert.equal(
        (await check(desk, { ...call(1), tool_name: "pay.owned" }, { authorization: `Bearer ${host}` })).status,
        422,
      );
      const { approval } = await desk.asks(call(1200), host);
      const shown = await send(desk, host, `/approvals/${approval.id}`);
      assert.deepEqual([shown.status, shown.json.status, shown.json.tool_input], [200, "pending", undefined]);
      const waiting = send(desk, host, `/approvals/${approval.id}?wait=20`);
      await desk.decides("anna", approval.id, "deny");
      assert.equal((await waiting).json.comment, "not today");
      assert.equal((await send(desk, other, `/approvals/${approval.id}`)).status, 404);
    },
    defect: { within: "show", module: "http/approvals", find: "approval.key === readKeyName(call)", put: "true" },
  },
  {
    rule: "a fact that the contract does not list is absent, the reason says so, and the receipt keeps it",
    options: { contract },
    run: async (desk) => {
      const [host, ordinary] = await agents(desk);
      const owned = { ...call(1), tool_name: "pay.owned" };
      const blocked = await desk.asks(owned, host);
      assert.equal(blocked.verdict, "BLOCK");
      says("a fact that does not count", blocked.reason);
      assert.equal((await desk.asks(owned, ordinary)).verdict, "ALLOW");
      const { json } = await ask(desk, `/receipts/${blocked.receipt.seq}`);
      assert.deepEqual([json.platform_state, json.key_kind], [facts, "host"]);
    },
    defect: { within: "countedFacts", find: "hostFacts?.has(name) === true", put: "true" },
  },
  {
    rule: "the row of a host's call says so in one member, and other rows are as before",
    options: { contract },
    run: async (desk) => {
      const [host, ordinary] = await agents(desk);
      const rest = '"session_id":"s1","tool_name":"pay.send"}';
      const ofHost = await desk.asks(call(1), host);
      const ofOther = await desk.asks(call(1), ordinary);
      assert.equal(await partOf(desk, ofHost.receipt.seq, "call"), `{"key_kind":"host",${rest}`);
      assert.equal(await partOf(desk, ofOther.receipt.seq, "call"), `{${rest}`);
      const id = `apr_1_${"0".repeat(32)}`;
      const { seq } = (await desk.asks(naming(id, call(1)), host)).receipt;
      assert.equal(await partOf(desk, seq, "call"), `{"approval":"${id}","key_kind":"host",${rest}`);
      const hook = { hook_event_name: "PreToolUse", session_id: "s1", tool_use_id: "t", tool_name: "pay.send" };
      const hooked = await send(desk, host, "/hooks/claude-code", { ...hook, cwd: "/", tool_input: { amount: 1 } });
      assert.equal(hooked.status, 200, hooked.text);
      assert.equal((await ask(desk, "/receipts?limit=1")).json.receipts[0].key_kind, "host", "a hook's call too");
      assert.equal("key_kind" in (await ask(desk, `/receipts/${ofOther.receipt.seq}`)).json, false);
      await assertLedgerValid(desk);
    },
    defect: { within: "checkRow", find: "entry.keyKind", put: "undefined" },
  },
  {
    rule: "a counter counts a host's call by the facts that count, also when it starts later",
    options: { contract },
    run: async (desk) => {
      const [host, ordinary] = await agents(desk);
      for (let n = 0; n < 3; n += 1) assert.equal((await desk.asks(call(1), host)).verdict, "ALLOW");
      const answers = [];
      for (let n = 0; n < 3; n += 1) answers.push((await desk.asks(call(1), ordinary)).verdict);
      assert.deepEqual(answers, ["ALLOW", "ALLOW", "BLOCK"]);
      // The same definition under another meaning is folded from the rows of both keys.
      const later = contract.replace("when: has(platform.wallet)", "when: has(platform.wallet) && true");
      writeFileSync(join(desk.folder, "contracts", "pay.yaml"), later);
      const reloaded = await desk.operates("/admin/reload", {});
      assert.equal(reloaded.status, 200, reloaded.text);
      assert.equal((await desk.asks(call(1), host)).verdict, "ALLOW");
      assert.equal((await desk.asks(call(1), ordinary)).verdict, "BLOCK");
      await assertLedgerValid(desk);
    },
    defect: { within: "recountRow", find: "call.key_kind", put: "undefined" },
  },
  {
    rule: "an approval is bound to the facts that count, and to no other",
    options: { contract },
    run: async (desk) => {
      const [host] = await agents(desk);
      const id = await approvedFor(desk, host, call(1200));
      const moved = await desk.asks(naming(id, call(1200, { ...facts, cwd: "/tmp" })), host);
      assert.equal(moved.verdict, "ESCALATE", "the folder counts");
      const others = { ...facts, wallet: "x", seats: 9 };
      assert.equal((await desk.asks(naming(id, call(1200, others)), host)).verdict, "ALLOW", "these do not");
      await assertLedgerValid(desk);
    },
    defect: { within: "ApprovableCall.#factTexts", find: "uncounted.length === 0", put: "true" },
  },
  {
    rule: "an approval lifts no call of a key of the other kind",
    options: { contract },
    run: async (desk) => {
      const [host, ordinary] = await agents(desk);
      for (const [asker, other] of [
        [host, ordinary],
        [ordinary, host],
      ] as const) {
        const same = call(1200, { cwd: "/" });
        const id = await approvedFor(desk, asker, same);
        assert.notEqual((await desk.asks(naming(id, same), other)).verdict, "ALLOW");
        assert.equal((await desk.asks(naming(id, same), asker)).verdict, "ALLOW");
      }
    },
    defect: [
      { within: "ApprovableCall.#bound", find: "caller.keyName", put: '"any"' },
      { within: "misfitsOf", find: "key === ask.key", put: "true" },
    ],
  },
  {
    rule: "a grant lifts no call of a key of the other kind",
    options: { contract },
    run: async (desk) => {
      const [host, ordinary] = await agents(desk);
      const same = (amount: number): object => call(amount, { cwd: "/" });
      const { approval, receipt } = await desk.asks(same(1200), host);
      const amounts = { "input.amount": 4000 };
      const body = { approval: approval.id, hash: receipt.hash, any_session: true, amounts };
      const made = await desk.as("anna", "/grants", body);
      assert.equal(made.status, 201, made.text);
      assert.equal((await desk.asks(same(1100), host)).verdict, "ALLOW");
      assert.equal((await desk.asks(same(1100), ordinary)).verdict, "ESCALATE");
      await assertLedgerValid(desk);
    },
    defect: [
      { within: "coveredAmounts", find: "call.key === grant.key", put: "true" },
      { within: "knownGrants", find: "keyName === grant.key", put: "true" },
    ],
  },
  {
    rule: "the card of an approval marks the facts of a host's key",
    options: { contract },
    run: async (desk) => {
      const [host, ordinary] = await agents(desk);
      const [mine, theirs] = [await desk.asks(call(1200), host), await desk.asks(call(1200), ordinary)];
      const shown = async (id: string): Promise<any> => (await desk.as("anna", `/approvals/${id}`)).json;
      const card = await shown(mine.approval.id);
      assert.deepEqual([card.key_kind, card.platform_state], ["host", facts]);
      assert.equal("key_kind" in (await shown(theirs.approval.id)), false);
      const file = join(desk.folder, "anna.key");
      writeFileSync(file, desk.keys["anna"] ?? "");
      const args = ["approvals", "show", mine.approval.id, "--url", desk.address, "--key-file", file];
      const printed = await command(args);
      assert.match(printed.stdout, /said by the agent's machine/, printed.stderr);
    },
    defect: { within: "detailOf", module: "http/approvals", find: "kind === undefined", put: "true" },
  },
  {
    rule: "an outcome that a host's key reports lowers no counter, and is only for its own calls",
    options: { contract },
    run: async (desk) => {
      const [host, ordinary] = await agents(desk);
      const { receipt } = await desk.asks(call(900), host);
      const { seq, hash } = receipt;
      const reported = await send(desk, host, "/outcomes", { receipt: { seq, hash }, status: "failed" });
      assert.equal(reported.status, 200, reported.text);
      for (let n = 0; n < 4; n += 1) assert.equal((await desk.asks(call(1000), host)).verdict, "ALLOW");
      assert.equal((await desk.asks(call(900), host)).verdict, "BLOCK", "the failed payment still counts");
      const other = (await desk.asks(call(2), ordinary)).receipt;
      const body = { receipt: { seq: other.seq, hash: other.hash }, status: "done" };
      assert.equal((await send(desk, host, "/outcomes", body)).status, 403);
    },
    defect: [
      { within: "reportOutcome", find: '!scopes.has("check")', put: "true" },
      { within: "reportOutcome", find: 'scopes.has("outcome")', put: "true" },
      {
        within: "OutcomeDesk.#reportIn",
        find: "reporter.mayLower && leaf.key !== reporter.name",
        put: "reporter.mayLower",
      },
    ],
  },
  {
    rule: "the kind is set when the key is made, and never changes",
    options: { contract },
    run: async (desk, t) => {
      for (const [what, more] of [
        ["scopes beside the kind", { scopes: ["check"] }],
        ["another kind", { kind: "root" }],
        ["the name of the first key", { name: "default" }],
      ] as const) {
        const { status, json } = await hostKey(desk, more);
        assert.equal(status, 400, what);
        says(what, json.detail);
      }
      const made = await hostKey(desk);
      assert.deepEqual([made.json.kind, made.json.scopes], ["host", ["check"]]);
      const { json: row } = await ask(desk, `/receipts/${made.json.receipt.seq}`);
      assert.equal(row.tool_input.kind, "host");
      says("the row of a host's key", row.reason);
      const update = await desk.operates("/admin/keys/laptop/update", { kind: "ordinary" });
      assert.equal(update.status, 400, update.text);
      await desk.operates("/admin/keys/laptop/update", { person: "anna" });
      const rotated = await desk.operates("/admin/keys/laptop/rotate", { overlap: "0s" });
      assert.equal(rotated.json.kind, "host");
      await desk.stop();
      const again = await startDesk(t, { folder: desk.folder, contract, persons: {} });
      const { kind, person } = await stateOf(again);
      assert.deepEqual([kind, person], ["host", "anna"]);
      assert.equal((await send(again, rotated.json.key, "/receipts")).status, 403, "after a new start too");
    },
    defect: { within: "recordBody", find: "kind === undefined", put: "true" },
  },
  {
    rule: "the record of an ordinary key has no kind, and its JSON says null",
    options: { contract },
    run: async (desk) => {
      const { json } = await desk.operates("/admin/keys", { name: "laptop", scopes: ["check"] });
      const { json: row } = await ask(desk, `/receipts/${json.receipt.seq}`);
      assert.deepEqual(
        [Object.keys(row.tool_input).toSorted(), (await stateOf(desk)).kind],
        [["digest", "expires", "name", "owner", "previous", "rate", "scopes", "tenant", "tools"], null],
      );
    },
    defect: { within: "recordBody", find: "kind === undefined ? {} : { kind }", put: "{ kind: null }" },
  },
  {
    rule: "a host's key opens no session of the console",
    options: { contract },
    run: async (desk) => {
      const [host] = await agents(desk);
      const refused = await trySignIn(desk, host);
      assert.equal(refused.status, 403, refused.text);
      assert.equal((await trySignIn(desk, desk.keys["anna"] ?? "")).status, 200);
    },
    defect: { within: "ConsoleDoor.signIn", find: "key.kind === undefined", put: "true" },
  },
  {
    rule: "R13: no key that checks opens approval lists, events or explanations without the scope receipts",
    options: { contract },
    run: async (desk) => {
      const statuses = async (scopes: readonly string[]): Promise<readonly number[]> => {
        const made = await keyOf(desk.operates("/admin/keys", { name: scopes.join("-"), scopes }));
        const answers = [
          await send(desk, made, "/approvals"),
          await send(desk, made, "/events?after=x"),
          await send(desk, made, "/grants"),
          await send(desk, made, "/explain", { call: call(1) }),
        ];
        return answers.map(({ status }) => status);
      };
      assert.deepEqual(await statuses(["check"]), [403, 403, 403, 403]);
      assert.deepEqual(await statuses(["check", "rules", "outcome", "metrics"]), [403, 403, 403, 403]);
      assert.deepEqual(await statuses(["check", "rules", "receipts"]), [200, 400, 200, 200]);
      assert.deepEqual(await statuses(["rules"]), [403, 403, 403, 200], "a key that does not check may explain");
    },
    defect: { within: "explain", module: "http/explain", find: '!key.scopes.has("receipts")', put: "false" },
  },
]);
