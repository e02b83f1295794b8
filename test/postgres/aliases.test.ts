/**
 * Goal: gates that share a ledger judge an alias by the contract that is in force there. Method: each rule is a scenario
 * with two gates as processes on the run's PostgreSQL. Positive control: the same scenario fails with two gates that
 * have a planted defect.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { after, suite, test } from "node:test";
import { aliasedPayments, as, movedPayments, verdictOf } from "../support/aliases.ts";
import { approved, large, naming, small, type Desk } from "../support/approvals.ts";
import { control } from "../support/controls/control.ts";
import { ask, check } from "../support/gate.ts";
import type { Mutation } from "../support/mutation/mutate.ts";
import { sharedPostgres, type Databases } from "../support/databases.ts";
import { notFollowing, twoDesks } from "../support/two-desks.ts";

const server = await sharedPostgres({ after });

interface SharedScenario {
  readonly rule: string;
  readonly run: (one: Desk, other: Desk) => Promise<void>;
  readonly defect: Mutation;
}

/** The contract after the alias `Pay` has moved to another tool, which lets its calls through. */
const moved = movedPayments.replace("otherwise: ESCALATE", "otherwise: ALLOW");

async function move(desk: Desk): Promise<void> {
  writeFileSync(join(desk.folder, "contracts", "pay.yaml"), moved);
  const { status, text } = await desk.operates("/admin/reload", {});
  assert.equal(status, 200, text);
}

const scenarios: readonly SharedScenario[] = [
  {
    rule: "the own name of a tool finds calls under its aliases, and each row has both names",
    run: async (one, other) => {
      const seqs = [];
      for (const [desk, name] of [
        [one, "Pay"],
        [other, "pay.send"],
        [other, "send_money"],
      ] as const)
        seqs.push((await desk.asks(as(name, small))).receipt.seq);
      const { json } = await ask(other, "/receipts?tool_name=pay.send");
      const rows = json.receipts as readonly {
        readonly seq: number;
        readonly tool_name: string;
        readonly tool?: string;
      }[];
      assert.deepEqual(
        rows.map(({ seq, tool_name: sent, tool }) => [seq, sent, tool]),
        [
          [seqs[2], "send_money", "pay.send"],
          [seqs[1], "pay.send", undefined],
          [seqs[0], "Pay", "pay.send"],
        ],
      );
      assert.deepEqual((await ask(one, "/receipts?tool_name=Pay")).json.receipts, []);
    },
    defect: {
      within: "checkRow",
      find: "{ session: entry.sessionId, tool: entry.toolName, verdict: entry.verdict }",
      put: "{ session: entry.sessionId, tool: entry.alias ?? entry.toolName, verdict: entry.verdict }",
    },
  },
  {
    rule: "an approval of a call under an alias at one gate is used under the own name at the other",
    run: async (one, other) => {
      const id = await approved(one, as("Pay", large));
      assert.equal(await verdictOf(other, naming(id, large)), "ALLOW");
      assert.equal((await one.as("anna", `/approvals/${id}`)).json.status, "used");
      const { json } = await other.as("anna", "/approvals?state=used&tool_name=pay.send");
      assert.equal(json.approvals.length, 1);
    },
    defect: { within: "openedBy", module: "entry/approval-rows", find: "call.tool", put: "call.tool_name" },
  },
  {
    rule: "a stop of a tool at one gate blocks its aliases at the other",
    run: async (one, other) => {
      await one.operates("/admin/stop", { scope: { tools: ["pay.send"] }, why: "drill" });
      for (const name of ["Pay", "pay.send"]) assert.match((await other.asks(as(name, small))).reason, /stopped/);
    },
    defect: {
      within: "stopOf",
      find: "{ key: keyName, session, tool, alias }",
      put: "{ key: keyName, session, tool: alias ?? tool }",
    },
  },
  {
    rule: "[P6] a stop at one gate holds at the other for the names that a reload there gives the tool",
    run: async (one, other) => {
      await one.operates("/admin/stop", { scope: { tools: ["Transfer"] }, why: "drill" });
      assert.equal(await verdictOf(other, small), "ALLOW");
      const renamed = aliasedPayments.replace("aliases: [Pay, send_money]", "aliases: [Pay, Transfer]");
      writeFileSync(join(other.folder, "contracts", "pay.yaml"), renamed);
      assert.equal((await other.operates("/admin/reload", {})).status, 200);
      for (const desk of [one, other])
        for (const name of ["Pay", "pay.send"]) assert.match((await desk.asks(as(name, small))).reason, /stopped/);
      const lifted = await one.operates("/admin/stop/lift", { scope: { tools: ["Transfer"] } });
      assert.deepEqual([lifted.status, lifted.json.stops], [200, []], lifted.text);
      assert.equal(await verdictOf(other, small), "ALLOW");
    },
    defect: { within: "stopOf", find: "aliases.get(name) === tool", put: "false" },
  },
  {
    rule: "a key is compared with the tool that an alias means when the call is decided, not when it arrives",
    run: async (one, other) => {
      const made = await one.operates("/admin/keys", { name: "agent", scopes: ["check"], tools: ["pay.send"] });
      const authorization = `Bearer ${made.json.key as string}`;
      // The other gate hears of the key within a second.
      while ((await check(other, as("Pay", small), { authorization })).status === 401) await wait(100);
      assert.equal((await check(other, as("Pay", small), { authorization })).json.verdict, "ALLOW");
      await move(one);
      const { status, json } = await check(other, as("Pay", small), { authorization });
      assert.deepEqual([status, json.code], [422, "wrong-tool"], "the other gate has not written since the reload");
      assert.match(json.detail, /"pay\.legal", which was sent as "Pay"/);
      assert.equal((await check(other, as("send_money", small), { authorization })).json.verdict, "ALLOW");
    },
    defect: {
      within: "Sequencer.#decide",
      find: "current.prepared.request.toolName",
      put: "prepared.prepared.request.toolName",
    },
  },
];

function aliases(there: Databases): void {
  suite("PostgreSQL: aliases at two gates", () => {
    for (const { rule, run, defect } of scenarios) {
      test(rule, async (t) => {
        const [one, other] = await twoDesks(t, await there.create(), { contract: aliasedPayments });
        await run(one, other);
        assert.equal((await ask(other, "/ledger/verify")).json.ok, true);
      });
      control(`positive control: a defect is noticed by "${rule}"`, async (t) => {
        // Else the other gate hears of a reload by itself, perhaps before the scenario's next call.
        const given = { contract: aliasedPayments, defects: [defect, notFollowing] };
        const [one, other] = await twoDesks(t, await there.create(), given);
        await assert.rejects(() => run(one, other));
      });
    }
  });
}

if (typeof server === "string")
  test("PostgreSQL is available to the tests of aliases", { skip: server }, () => undefined);
else aliases(server);
