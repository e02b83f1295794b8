/**
 * Goal: a call under an alias is a call of the tool, for keys, rules, counters, approvals, grants, denials and stops, and
 * its receipt keeps both names. Method: each rule is a scenario against a gate over HTTP. Positive control: the same
 * scenario fails on a gate with a planted defect.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, test, type TestContext } from "node:test";
import { aliased, aliasedPayments, as, movedPayments, ownNameAlone, verdictOf } from "../support/aliases.ts";
import {
  approved,
  assertLedgerValid,
  large,
  naming,
  runScenarios,
  small,
  startDesk,
  type Desk,
  type Scenario,
} from "../support/approvals.ts";
import { command } from "../support/command.ts";
import { control } from "../support/controls/control.ts";
import { ask, check, root, temporaryFolder } from "../support/gate.ts";
import type { Mutation } from "../support/mutation/mutate.ts";

const why = "the agent pays the wrong people";

/** The contract before it gave the tool the alias `Pay`. */
const withoutPay = aliasedPayments.replace("aliases: [Pay, send_money]", "aliases: [send_money]");

/** Puts another contract in force, whose file the mandate names. */
async function reload(desk: Desk, contract: string): Promise<{ readonly status: number; readonly text: string }> {
  writeFileSync(join(desk.folder, "contracts", "pay.yaml"), contract);
  return desk.operates("/admin/reload", {});
}

async function receiptsOf(desk: Desk, tool: string): Promise<readonly number[]> {
  const { json } = await ask(desk, `/receipts?tool_name=${tool}`);
  return (json.receipts as readonly { readonly seq: number }[]).map(({ seq }) => seq);
}

async function assertVerifies(desk: Desk): Promise<void> {
  const { json } = await ask(desk, "/ledger/verify");
  assert.equal(json.ok, true, JSON.stringify(json));
}

/** Runs a command on the ledger of a gate that has stopped. */
async function run(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await command(args);
  assert.equal(code, 0, `${args.join(" ")}: ${stdout}${stderr}`);
  return stdout;
}

/** Exports the ledger and runs the two verifiers that share no code with the gate. */
async function assertOutsidersAccept(desk: Desk): Promise<void> {
  const folder = join(desk.folder, "export");
  await run("export", folder, "--data-dir", join(desk.folder, "data"));
  const { vkeys } = JSON.parse(readFileSync(join(folder, "log.json"), "utf8")) as { readonly vkeys: readonly string[] };
  for (const [program, file] of [
    [process.execPath, "svc-verify.mjs"] as const,
    ["python3", "svc_verify.py"] as const,
  ]) {
    const given = [join(root, "verify", file), folder, "--key", vkeys[0] ?? ""];
    const { status, stdout, error } = spawnSync(program, given, { encoding: "utf8" });
    if (error === undefined) assert.equal(status, 0, `${file}: ${stdout}`);
  }
}

const scenarios: readonly Scenario[] = [
  {
    rule: "a counter counts the calls under all names of a tool together",
    options: aliased,
    run: async (desk) => {
      const often = (name: string): object => as(name, { ...small, tool_input: { amount: 5, to: "often" } });
      assert.equal(await verdictOf(desk, often("Pay")), "ALLOW");
      const { verdict, reason } = await desk.asks(often("pay.send"));
      assert.deepEqual([verdict, reason], ["ESCALATE", "Svc: 1 were tried"]);
      assert.match((await desk.asks(often("send_money"))).reason, /2 were tried/);
    },
    defect: ownNameAlone,
  },
  {
    rule: "an approval of a call under one name can be used under another one",
    options: aliased,
    run: async (desk) => {
      const id = await approved(desk, as("Pay", large));
      const { json } = await desk.as("anna", `/approvals/${id}`);
      assert.deepEqual([json.tool_name, json.sent_as], ["pay.send", "Pay"]);
      assert.equal(await verdictOf(desk, naming(id, as("Pay", small))), "ALLOW", "another call does not use it");
      assert.equal(await verdictOf(desk, naming(id, large)), "ALLOW");
      assert.equal((await desk.as("anna", `/approvals/${id}`)).json.status, "used");
      const { json: page } = await desk.as("anna", "/approvals?state=used&tool_name=pay.send");
      assert.equal(page.approvals.length, 1);
      await assertVerifies(desk);
    },
    defect: { within: "ApprovableCall.#bound", find: "request.toolName", put: "request.alias ?? request.toolName" },
  },
  {
    rule: "a denial of a tool in a session blocks the tool under every name",
    options: aliased,
    run: async (desk) => {
      const { approval } = await desk.asks(as("Pay", large));
      const denied = await desk.decides("anna", approval.id, "deny", { scope: "tool", comment: "no more payments" });
      assert.equal(denied.status, 200, denied.text);
      const other = { ...large, tool_input: { amount: 1100, to: "eve" } };
      for (const name of ["pay.send", "send_money"])
        assert.match((await desk.asks(as(name, other))).reason, /no more payments/);
      await assertVerifies(desk);
    },
    defect: {
      within: "BatchCall.judge",
      find: "const { approvalId: named, sessionId: session, toolName: tool } = request;",
      put: "const { approvalId: named, sessionId: session, toolName, alias } = request; const tool = alias ?? toolName;",
    },
  },
  {
    rule: "a grant from a call under one name covers calls under the others",
    options: aliased,
    run: async (desk) => {
      const { approval, receipt } = await desk.asks(as("Pay", large));
      const body = { approval: approval.id, hash: receipt.hash, amounts: { "input.amount": 4000 } };
      const made = await desk.as("anna", "/grants", body);
      assert.equal(made.status, 201, made.text);
      assert.equal((await desk.as("anna", "/grants")).json.grants[0].tool_name, "pay.send");
      for (const name of ["send_money", "pay.send"])
        assert.equal(await verdictOf(desk, as(name, { ...large, tool_input: { amount: 1001, to: "anna" } })), "ALLOW");
      await assertVerifies(desk);
    },
    defect: {
      within: "knownGrants",
      find: "request.toolName === grant.tool",
      put: "(request.alias ?? request.toolName) === grant.tool",
    },
  },
  {
    rule: "a stop of a tool blocks the tool under every name",
    options: aliased,
    run: async (desk) => {
      await desk.operates("/admin/stop", { scope: { tools: ["pay.send"] }, why });
      for (const name of ["pay.send", "Pay", "send_money"])
        assert.match((await desk.asks(as(name, small))).reason, /stopped/);
      assert.doesNotMatch((await desk.asks({ ...small, tool_name: "pay.legal" })).reason, /stopped/);
      await assertVerifies(desk);
    },
    defect: {
      within: "stopOf",
      find: "{ key: keyName, session, tool, alias }",
      put: "{ key: keyName, session, tool: alias ?? tool }",
    },
  },
  {
    rule: "a stop that names an alias blocks the tool under every name, and lifting it by that name ends it",
    options: aliased,
    run: async (desk) => {
      const scope = { tools: ["Pay"] };
      await desk.operates("/admin/stop", { scope, why });
      assert.deepEqual((await ask(desk, "/stop")).json.stops[0].scope, { tools: ["Pay", "pay.send"] });
      for (const name of ["pay.send", "Pay", "send_money"])
        assert.match((await desk.asks(as(name, small))).reason, /stopped/);
      const lifted = await desk.operates("/admin/stop/lift", { scope, why: "checked" });
      assert.equal(lifted.status, 200, lifted.text);
      assert.equal(await verdictOf(desk, as("send_money", small)), "ALLOW");
      await assertVerifies(desk);
    },
    defect: { within: "ownNames", first: "return [];" },
  },
  {
    rule: "[P6] a stop of a name covers the tool under every name, once a reload makes the name an alias of it",
    options: { ...aliased, contract: withoutPay },
    run: async (desk) => {
      const { json } = await desk.operates("/admin/stop", { scope: { tools: ["Pay"] }, why });
      assert.match(json.warnings[0], /^no tool with the name "Pay" /);
      assert.equal(await verdictOf(desk, small), "ALLOW");
      assert.equal((await reload(desk, aliasedPayments)).status, 200);
      for (const name of ["Pay", "send_money", "pay.send"]) {
        const { reason, receipt } = await desk.asks(as(name, small));
        assert.match(reason, /stopped every call of "Pay"/);
        const { as: covered } = (await desk.outcomeOf(receipt.seq)).asked;
        assert.equal(covered, name === "Pay" ? undefined : "Pay", "the row says which name of the stop covers it");
      }
      assert.equal((await desk.operates("/admin/stop/lift", { scope: { tools: ["Pay"] } })).status, 200);
      assert.equal(await verdictOf(desk, small), "ALLOW");
      await assertLedgerValid(desk);
    },
    defect: [
      { within: "stopOf", find: "aliases.get(name) === tool", put: "false" },
      { within: "isStopped", find: "scope.tools.includes(alias)", put: "false" },
    ],
  },
  {
    rule: "[P6] a stop of an alias covers the tool after a reload that removes the alias, and both scopes lift it",
    options: aliased,
    run: async (desk) => {
      for (const scope of [{ tools: ["Pay"] }, { tools: ["Pay", "pay.send"] }]) {
        assert.equal((await reload(desk, aliasedPayments)).status, 200);
        assert.equal((await desk.operates("/admin/stop", { scope: { tools: ["Pay"] }, why })).status, 200);
        assert.equal((await reload(desk, withoutPay)).status, 200);
        for (const name of ["Pay", "send_money", "pay.send"])
          assert.match((await desk.asks(as(name, small))).reason, /stopped/);
        const lifted = await desk.operates("/admin/stop/lift", { scope });
        assert.deepEqual([lifted.status, lifted.json.stops], [200, []], lifted.text);
        assert.equal(await verdictOf(desk, small), "ALLOW");
      }
      const { status, json } = await desk.operates("/admin/stop/lift", { scope: { tools: ["Pay"] } });
      const more = "`svc-gate stop --list` and GET /stop show those in force";
      assert.deepEqual([status, json.detail], [409, `no stop in force has this scope: ${more}`]);
      await desk.operates("/admin/stop", { scope: { tools: ["Pay", "pay.legal"] }, why });
      const near = await desk.operates("/admin/stop/lift", { scope: { tools: ["Pay"] } });
      assert.match(near.json.detail, /these are, and each is lifted whole: every call of "Pay", "pay.legal"$/);
      await assertLedgerValid(desk);
    },
    defect: [
      { within: "withStopAct", find: "wholeScope(written, act.also)", put: "written" },
      { within: "stopNamed", find: "isSameScope(stop.written, scope)", put: "false" },
    ],
  },
  {
    rule: "[P6] a stop holds for a tool that two reloads rename, and for one that had the stopped name between two reloads",
    options: { ...aliased, contract: withoutPay },
    run: async (desk) => {
      const renamed = withoutPay.replace(
        "  pay.send:\n    aliases: [send_money]",
        "  pay.out:\n    aliases: [pay.send]",
      );
      const moved = renamed.replaceAll("[pay.send]", "[pay.out]").replace("aliases: [pay.out]", "aliases: [pay.old]");
      const { status, text } = await desk.operates("/admin/stop", { scope: { tools: ["pay.send"] }, why });
      assert.equal(status, 200, text);
      for (const contract of [
        renamed.replaceAll("of: [pay.send]", "of: [pay.out]").replaceAll("on: [pay.send]", "on: [pay.out]"),
        moved,
      ]) {
        const done = await reload(desk, contract);
        assert.equal(done.status, 200, done.text);
        assert.match((await desk.asks(as("pay.out", small))).reason, /stopped/);
      }
      const [shown] = (await ask(desk, "/stop")).json.stops;
      assert.deepEqual([shown.scope, shown.written], [{ tools: ["pay.send", "pay.out"] }, { tools: ["pay.send"] }]);
      const last = moved.replaceAll("pay.out", "pay.old").replace("aliases: [pay.old]", "aliases: [pay.x]");
      assert.equal((await reload(desk, last)).status, 200);
      assert.match((await desk.asks(as("pay.old", small))).reason, /stopped/, "an alias is the tool's only name now");
      assert.equal((await desk.operates("/admin/stop/lift", { scope: { tools: ["pay.send"] } })).status, 200);
      assert.equal(await verdictOf(desk, as("pay.old", small)), "ALLOW");
      await assertLedgerValid(desk);
    },
    defect: { within: "completeStops", first: "return [];" },
  },
  {
    rule: "a key for a tool may send its aliases, and a key for another tool may not",
    options: aliased,
    run: async (desk) => {
      const keyFor = async (name: string, tools: readonly string[]): Promise<string> =>
        (await desk.operates("/admin/keys", { name, scopes: ["check"], tools })).json.key as string;
      const [own, legal, alias] = [
        await keyFor("own", ["pay.send"]),
        await keyFor("legal", ["pay.legal"]),
        await keyFor("alias", ["Pay"]),
      ];
      for (const name of ["pay.send", "Pay"]) assert.equal(await verdictOf(desk, as(name, small), own), "ALLOW");
      for (const key of [legal, alias]) {
        const { status, json } = await check(desk, as("Pay", small), { authorization: `Bearer ${key}` });
        assert.deepEqual([status, json.code], [422, "wrong-tool"]);
        assert.match(json.detail, /does not cover the tool "pay\.send", which was sent as "Pay"$/);
      }
      const before = await desk.rows();
      const mixed = await Promise.all(
        [own, legal, own, legal].map((key) => check(desk, as("Pay", small), { authorization: `Bearer ${key}` })),
      );
      assert.deepEqual(
        mixed.map(({ status }) => status),
        [200, 422, 200, 422],
      );
      assert.equal(await desk.rows(), before + 2, "a refused call has no row");
    },
    defect: {
      within: "Sequencer.#decide",
      find: "current.prepared.request.toolName",
      put: "submission.request.toolName",
    },
  },
  {
    rule: "a receipt keeps the name that was sent and shows the tool that was judged, and the own name finds it",
    options: aliased,
    run: async (desk) => {
      const own = (await desk.asks(small)).receipt.seq as number;
      const alias = (await desk.asks(as("Pay", small))).receipt.seq as number;
      const unknown = (await desk.asks(as("Pai", small))).receipt.seq as number;
      const { json: row } = await ask(desk, `/receipts/${alias}`);
      assert.deepEqual([row.tool_name, row.tool, JSON.parse(row.leaf).tool], ["Pay", "pay.send", "pay.send"]);
      assert.match(Buffer.from(row.evidence[0], "base64url").toString(), /"tool_name":"Pay"\}\]$/);
      for (const seq of [own, unknown]) assert.ok(!("tool" in (await ask(desk, `/receipts/${seq}`)).json));
      assert.match(
        (await ask(desk, `/receipts/${unknown}`)).json.reason,
        /it resembles "Pay", an alias of "pay\.send"$/,
      );
      assert.deepEqual(await receiptsOf(desk, "pay.send"), [alias, own]);
      assert.deepEqual(await receiptsOf(desk, "Pay"), []);
      assert.deepEqual(await receiptsOf(desk, "Pai"), [unknown]);
      await assertVerifies(desk);
    },
    defect: { within: "checkRow", find: "entry.alias ?? entry.toolName", put: "entry.toolName" },
  },
  {
    rule: "verification finds a row whose column hides it from the filter by the tool",
    options: aliased,
    run: async (desk) => {
      const { receipt } = await desk.asks(as("Pay", small));
      await assertVerifies(desk);
      const database = new DatabaseSync(join(desk.folder, "data", "ledger.db"));
      database.prepare("UPDATE receipts SET tool = 'Pay' WHERE seq = ?").run(receipt.seq);
      database.close();
      const { json } = await ask(desk, "/ledger/verify");
      assert.deepEqual([json.ok, json.first_broken?.seq], [false, receipt.seq]);
    },
    defect: { within: "verifyEvidence", find: "leaf.tool !== null && leaf.tool !== tool && !isErased", put: "false" },
  },
  {
    rule: "replay, deep verification and both small verifiers accept calls under aliases, and reports show one tool",
    options: aliased,
    run: async (desk) => {
      const id = await approved(desk, as("Pay", large));
      for (const name of ["send_money", "pay.send", "Pay"]) await desk.asks(naming(id, as(name, large)));
      await desk.asks(as("send_money", { ...small, tool_input: { amount: 5, to: "nobody" } }));
      const { receipt } = await desk.asks({ ...small, tool_name: "Pay", tool_input: { amount: 5, to: "nobody" } });
      await assertLedgerValid(desk);
      const data = join(desk.folder, "data");
      const report = JSON.parse(await run("report", data, "--json"));
      const tools = (report.by_tool as readonly { readonly tool: string }[]).map(({ tool }) => tool);
      assert.deepEqual([...new Set(tools)], ["pay.send"]);
      assert.match(
        await run("explain", "--receipt", String(receipt.seq), "--data-dir", data),
        /pay\.send \(sent as Pay\)/,
      );
      const lines = (await run("export", "-", "--format", "jsonl", "--data-dir", data)).trimEnd().split("\n");
      const { tool, sent_as: alias } = JSON.parse(lines[receipt.seq - 1] ?? "");
      assert.deepEqual([tool, alias], ["pay.send", "Pay"]);
      await assertOutsidersAccept(desk);
    },
    // The leaf names the alias, so a replay finds another tool.
    defect: {
      within: "checkRow",
      find: "entry.routed ? entry.toolName : null",
      put: "entry.routed ? (entry.alias ?? entry.toolName) : null",
    },
  },
  {
    rule: "after a reload that moves an alias, a new counter counts old rows by the tool that was judged then",
    options: aliased,
    run: async (desk) => {
      for (const name of ["Pay", "pay.send"]) await desk.asks(as(name, small));
      const rule =
        'on: [pay.send], when: counters.all >= 2, verdict: BLOCK, final: true, reason: "{counters.all} before"';
      const counting = movedPayments
        .replace("counters:\n", "counters:\n  all: { of: [pay.send], per: platform.wallet, within: 48h }\n")
        .replace("rules:\n", `rules:\n  - { rule: all, ${rule} }\n`);
      const { status, text } = await reload(desk, counting);
      assert.equal(status, 200, text);
      assert.match((await desk.asks(as("send_money", small))).reason, /2 before/);
      const { json } = await ask(desk, `/receipts/${(await desk.asks(as("Pay", small))).receipt.seq}`);
      assert.equal(json.tool, "pay.legal");
      await assertLedgerValid(desk);
    },
    defect: { within: "recountRow", find: "call.tool", put: "call.tool_name" },
  },
  {
    rule: "a row shows the tool that its contract means, also for calls that arrive during a reload",
    options: aliased,
    run: async (desk) => {
      const sent = Array.from({ length: 8 }, () => desk.asks(as("Pay", small)));
      assert.equal((await reload(desk, movedPayments)).status, 200);
      await Promise.all([...sent, desk.asks(as("Pay", small))]);
      const contracts = new Map<string, Set<string>>();
      for (const { leaf } of (await ask(desk, "/receipts")).json.receipts as readonly { readonly leaf: string }[]) {
        const { contract, tool } = JSON.parse(leaf);
        contracts.set(contract, (contracts.get(contract) ?? new Set()).add(tool));
      }
      assert.ok([...contracts.values()].every(({ size }) => size === 1));
      assert.deepEqual([...(contracts.get(contractNow(await ask(desk, "/rules"))) ?? [])], ["pay.legal"]);
      await assertLedgerValid(desk);
    },
    // A gate that keeps the name of the first contract for later ones.
    defect: {
      within: "withOwnName",
      first: [
        "const known = Reflect.get(globalThis, sent.toolName);",
        "if (known !== undefined) return { ...sent, toolName: known, alias: sent.toolName };",
        "Reflect.set(globalThis, sent.toolName, aliases.get(sent.toolName));",
      ].join(" "),
    },
  },
  {
    rule: "a name with two meanings in the contracts of a mandate keeps the old contracts in force",
    options: { ...aliased, mandate: "mandate: two\ncontracts: [contracts/pay.yaml]\n" },
    run: async (desk) => {
      const other = (aliases: string, tool = "other.pay"): string =>
        [
          `contract: other\ntools:\n  ${tool}:\n    aliases: [${aliases}]`,
          "    input: { type: object, additionalProperties: true }\n    otherwise: ALLOW\n",
        ].join("\n");
      writeFileSync(
        join(desk.folder, "mandate.yaml"),
        "mandate: two\ncontracts: [contracts/pay.yaml, contracts/other.yaml]\n",
      );
      const put = async (contract: string): Promise<{ readonly status: number; readonly text: string }> => {
        writeFileSync(join(desk.folder, "contracts", "other.yaml"), contract);
        return desk.operates("/admin/reload", {});
      };
      for (const contract of [other("Pay"), other("pay.legal"), other("x", "Pay")]) {
        const { status, text } = await put(contract);
        assert.equal(status, 422, `${contract}\n${text}`);
        assert.match(text, /error\[alias\]/);
      }
      assert.equal((await put(other("elsewhere"))).status, 200);
      assert.equal(await verdictOf(desk, as("elsewhere", small)), "ALLOW");
      const shared = other("Pay, Geld", "pay.send");
      assert.equal((await put(shared)).status, 200, "two contracts that list one tool share its aliases");
      for (const name of ["Geld", "send_money", "Pay"]) assert.equal(await verdictOf(desk, as(name, small)), "ALLOW");
      assert.match(
        (await desk.asks(as("Geld", { ...small, tool_input: { amount: 999_999, to: "x" } }))).reason,
        /is spent/,
      );
    },
    defect: { within: "readAliases", find: "known !== undefined && known.tool !== tool", put: "false" },
  },
];

function contractNow({ headers }: { readonly headers: Headers }): string {
  return `sha256:${(headers.get("etag") ?? "").replaceAll('"', "").replace(/^sha256:/, "")}`;
}

runScenarios("aliases", scenarios);

/** Starts a gate whose root has no tool `Pay`, and whose tenants give this name to two different tools. */
async function startWithTenants(t: TestContext, defects: readonly Mutation[] = []): Promise<Desk> {
  const folder = temporaryFolder(t);
  const lines = Object.entries({ acme: aliasedPayments, blue: movedPayments }).map(([tenant, contract]) => {
    mkdirSync(join(folder, tenant));
    writeFileSync(join(folder, tenant, "pay.yaml"), contract);
    return `  ${tenant}: { mandate: ${tenant}/pay.yaml, mode: enforce }\n`;
  });
  writeFileSync(join(folder, "tenants.yaml"), `tenants:\n${lines.join("")}`);
  const env = { SVC_TENANTS: join(folder, "tenants.yaml") };
  return startDesk(t, { folder, contract: withoutPay, persons: {}, env, defects });
}

/** A stop of the root covers, in each tenant, the tool that has the name there. */
async function assertStopsInTenants(desk: Desk): Promise<void> {
  const made = await Promise.all(
    ["acme", "blue"].map((tenant) =>
      desk.operates(`/t/${tenant}/admin/keys`, { name: `${tenant}-agent`, scopes: ["check"] }),
    ),
  );
  const [acme, blue] = made.map(({ json }) => json.key as string);
  const verdict = async (tenant: string, name: string, call: object = small): Promise<string> => {
    const key = tenant === "acme" ? acme : blue;
    const body = JSON.stringify(as(name, call));
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const { json } = await ask(desk, `/t/${tenant}/check`, { method: "POST", headers, body });
    return /stopped/.test(json.reason) ? "stopped" : json.verdict;
  };
  assert.equal(await verdict("acme", "pay.send", large), "ESCALATE");
  const set = await desk.operates("/admin/stop", { scope: { tools: ["Pay"] }, why });
  assert.deepEqual([set.json.warnings, set.json.ledgers], [[], [null, "acme", "blue"]], "a tenant knows the name");
  for (const name of ["Pay", "pay.send", "send_money"]) assert.equal(await verdict("acme", name), "stopped");
  assert.deepEqual([await verdict("blue", "pay.legal"), await verdict("blue", "pay.send")], ["stopped", "ALLOW"]);
  const { json: pending } = await desk.operates("/t/acme/admin/keys", { name: "reader", scopes: ["receipts"] });
  const headers = { authorization: `Bearer ${pending.key}` };
  const { json: page } = await ask(desk, "/t/acme/approvals?state=pending", { headers });
  assert.deepEqual(page.approvals, [], "the stop cancelled the call under the tool's own name");
  // A reload of the tenant that takes the name away does not free the tool that the stop meant.
  writeFileSync(join(desk.folder, "acme", "pay.yaml"), withoutPay);
  assert.equal((await desk.operates("/t/acme/admin/reload", {})).status, 200);
  assert.equal(await verdict("acme", "pay.send"), "stopped");
  assert.equal((await desk.operates("/admin/stop/lift", { scope: { tools: ["Pay"] } })).status, 200);
  for (const tenant of ["acme", "blue"])
    for (const name of ["pay.send", "send_money"]) assert.equal(await verdict(tenant, name), "ALLOW");
  for (const tenant of ["acme", "blue"]) {
    const { json } = await desk.operates(`/t/${tenant}/admin/keys`, { name: "auditor", scopes: ["receipts"] });
    const verify = await ask(desk, `/t/${tenant}/ledger/verify`, { headers: { authorization: `Bearer ${json.key}` } });
    assert.equal(verify.json.ok, true, verify.text);
  }
}

suite("aliases in tenants", { concurrency: 2 }, () => {
  test("[P6] a stop of the root covers the tool that has the name in each tenant", async (t) => {
    await assertStopsInTenants(await startWithTenants(t));
  });
  control("positive control: a gate that forgets the own names of the tenant is noticed", async (t) => {
    const defect = { within: "followedEvent", find: "ownNames(scope, names)", put: "[]" };
    const desk = await startWithTenants(t, [defect]);
    await assert.rejects(() => assertStopsInTenants(desk));
  });
});
