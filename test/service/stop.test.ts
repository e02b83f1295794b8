/**
 * Goal: a stop blocks every call in its scope from its row on, whatever the mode and whatever was approved before, until
 * an administrator lifts it. Method: each rule is a scenario against a gate over HTTP. Positive control: the same
 * scenario fails on a gate with a planted defect.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import {
  approved,
  large,
  losesRows,
  naming,
  payments,
  runScenarios,
  small,
  startDesk,
  type Desk,
  type Scenario,
} from "../support/approvals.ts";
import { command } from "../support/command.ts";
import { control } from "../support/controls/control.ts";
import { ask } from "../support/gate.ts";
import type { Mutation } from "../support/mutation/mutate.ts";

const why = "the agent pays the wrong people";

async function stops(desk: Desk, scope: unknown, more: object = {}, tenant = ""): Promise<any> {
  const { status, json, text } = await desk.operates(`${tenant}/admin/stop`, { scope, why, ...more });
  assert.equal(status, 200, text);
  return json;
}

async function lifts(desk: Desk, scope: unknown): Promise<void> {
  const { status, text } = await desk.operates("/admin/stop/lift", { scope, why: "checked" });
  assert.equal(status, 200, text);
}

async function verdictOf(desk: Desk, call: object, agent?: string): Promise<string> {
  return (await desk.asks(call, agent)).verdict;
}

async function assertHolds(desk: Desk): Promise<void> {
  const { json } = await ask(desk, "/ledger/verify");
  assert.equal(json.valid ?? json.ok, true, JSON.stringify(json));
}

const answeredAsReached = {
  within: "stopOf",
  find: "return stopFor(active, { key: caller.keyName, session, tool, alias })",
  put: "return undefined",
};

const scenarios: readonly Scenario[] = [
  {
    rule: "C24: after the stop's 200 every call is blocked, and the reason names the person and why",
    run: async (desk) => {
      assert.equal(await verdictOf(desk, small), "ALLOW");
      const { receipt, ledgers } = await stops(desk, "all");
      assert.deepEqual(ledgers, [null]);
      const blocked = await desk.asks(small);
      assert.equal(blocked.verdict, "BLOCK");
      assert.equal(blocked.reason, `Svc: operator stopped every call: ${why}`);
      assert.equal((await desk.outcomeOf(blocked.receipt.seq)).asked.stop, receipt.seq);
      const { json } = await ask(desk, `/receipts/${blocked.receipt.seq}`);
      assert.deepEqual([json.verdict, json.answered], ["ALLOW", "BLOCK"], "the verdict is the contract's");
      const shown = await desk.as("anna", "/stop");
      assert.deepEqual(
        [shown.json.stopped, shown.json.stops[0].person, shown.json.stops[0].scope],
        [true, "operator", "all"],
      );
      assert.equal((await ask(desk, "/health")).json.stopped, true);
      await lifts(desk, "all");
      assert.equal(await verdictOf(desk, small), "ALLOW");
      assert.equal((await ask(desk, "/health")).json.stopped, undefined);
      await assertHolds(desk);
    },
    defect: answeredAsReached,
  },
  {
    rule: "R17: a stop covers exactly its scope: tools, a key, or one session of a key",
    run: async (desk) => {
      const { json } = await desk.operates("/admin/keys", { name: "other", scopes: ["check"] });
      const [first, other] = [undefined, json.key as string];
      const calls: readonly (readonly [object, string | undefined])[] = [
        [small, first],
        [{ ...small, session_id: "s2" }, first],
        [small, other],
        [{ ...small, tool_name: "pay.legal" }, first],
      ];
      const own = (await ask(desk, "/receipts")).json.receipts;
      assert.ok(own);
      const blocked = async (): Promise<readonly boolean[]> => {
        const answers = await Promise.all(calls.map(([call, agent]) => desk.asks(call, agent)));
        return answers.map(({ reason }) => /stopped/.test(reason as string));
      };
      const { json: row } = await ask(desk, `/receipts/${(await desk.asks(small)).receipt.seq}`);
      const scopes: readonly (readonly [unknown, readonly boolean[]])[] = [
        [{ tools: ["pay.send", "pay.other"] }, [true, true, true, false]],
        [{ key: row.key }, [true, true, false, true]],
        [{ session: { key: row.key, id: "s2" } }, [false, true, false, false]],
      ];
      for (const [scope, expected] of scopes) {
        await stops(desk, scope);
        assert.deepEqual(await blocked(), expected, JSON.stringify(scope));
        await lifts(desk, scope);
        assert.deepEqual(await blocked(), [false, false, false, false]);
      }
    },
    defect: { within: "isStopped", find: "scope.session.key === key && scope.session.id === session", put: "true" },
  },
  {
    rule: "[issue 30, item 9] stops of a key and of every call can be set beside any number of narrower ones",
    run: async (desk) => {
      const tool = (run: number): object => ({ tools: [`tool-${run}`] });
      const session = (run: number): object => ({ session: { key: "default", id: `run-${run}` } });
      for (let run = 0; run < 100; run += 1) await stops(desk, session(run));
      for (let run = 0; run < 100; run += 1) await stops(desk, tool(run));
      for (const [kind, scope] of Object.entries({ tools: { tools: ["pay.send"] }, sessions: session(100) })) {
        const { status, json } = await desk.operates("/admin/stop", { scope, why });
        const sentence = `100 stops of ${kind} are in force: lift some of them, or stop the key or every call`;
        assert.deepEqual([status, json.detail], [409, sentence]);
      }
      await stops(desk, tool(0));
      assert.equal(await verdictOf(desk, small), "ALLOW");
      for (const key of ["default", "other"]) await stops(desk, { key });
      assert.equal(await verdictOf(desk, small), "BLOCK");
      await lifts(desk, { key: "default" });
      assert.equal(await verdictOf(desk, small), "ALLOW");
      await stops(desk, "all");
      assert.equal(await verdictOf(desk, small), "BLOCK");
      await lifts(desk, tool(0));
      await stops(desk, { tools: ["pay.send"] });
      assert.equal((await desk.as("anna", "/stop")).json.stops.length, 202);
      await assertHolds(desk);
    },
    defect: [
      { within: "tooManyStops", find: 'kind === "all" || kind === "key"', put: "false && kind" },
      { within: "tooManyStops", find: "kindOf(stop.scope) === kind", put: "true" },
    ],
  },
  {
    rule: "[issue 30, item 9] the rate of a key does not keep a person from stopping every call",
    run: async (desk) => {
      const person = { scopes: ["approve"], person: "anna", groups: ["finance"], rate: { per_second: 1, burst: 1 } };
      const { json } = await desk.operates("/admin/keys", { name: "slow", ...person });
      const headers = { authorization: `Bearer ${json.key}`, "content-type": "application/json" };
      const body = JSON.stringify({ scope: "all", why });
      const statuses = async (path: string, options: object): Promise<readonly number[]> => {
        const answers = Array.from({ length: 20 }, () => ask(desk, path, { headers, ...options }));
        return [...new Set((await Promise.all(answers)).map(({ status }) => status))];
      };
      assert.ok((await statuses("/stop", {})).includes(429));
      assert.deepEqual(await statuses("/admin/stop", { method: "POST", body }), [200]);
      assert.equal(await verdictOf(desk, small), "BLOCK");
    },
    defect: {
      within: "addKeyHooks",
      find: "forEmergencies ? undefined : refusalForRate(exchange, service)",
      put: "refusalForRate(exchange, service)",
    },
  },
  {
    rule: "decided point 4: a stop enforces in observe mode, and only the stopped rows have mode enforce",
    options: { mode: "observe" },
    run: async (desk) => {
      assert.equal(await verdictOf(desk, large), "ALLOW");
      await stops(desk, { tools: ["pay.send"] });
      const blocked = await desk.asks(large);
      assert.deepEqual([blocked.verdict, blocked.mode], ["BLOCK", "enforce"]);
      const other = await desk.asks({ ...large, tool_name: "pay.legal" });
      assert.deepEqual([other.verdict, other.mode], ["ALLOW", "observe"]);
      const { json } = await ask(desk, "/health");
      assert.deepEqual([json.mode, json.stopped], ["observe", true]);
      await assertHolds(desk);
    },
    defect: { within: "modeOf", find: 'stop === undefined ? mode : "enforce"', put: "mode" },
  },
  {
    rule: "C24: a stop cancels the approvals in its scope, and frees what they hold",
    run: async (desk) => {
      const id = await approved(desk);
      const held = { ...large, tool_input: { amount: 1400, to: "anna" }, session_id: "s2" };
      assert.equal(await verdictOf(desk, held), "BLOCK", "1,200 of 2,500 are held");
      await stops(desk, "all");
      assert.equal((await desk.as("anna", `/approvals/${id}`)).json.status, "cancelled");
      assert.equal(await verdictOf(desk, naming(id)), "BLOCK");
      await lifts(desk, "all");
      assert.equal(await verdictOf(desk, naming(id)), "BLOCK", "an approval from before the stop cannot be used");
      assert.equal(await verdictOf(desk, held), "ESCALATE");
      await assertHolds(desk);
    },
    defect: {
      within: "stoppedApprovals",
      find: 'if (approvals === "end") return { ends: stopped, reopens: [] };',
      put: "return { ends: [], reopens: [] };",
    },
  },
  {
    rule: "R17: with `keep` a stop ends the votes, and the approval waits for a person again",
    run: async (desk) => {
      const id = await approved(desk);
      await stops(desk, { tools: ["pay.send"] }, { approvals: "keep" });
      const { json } = await desk.as("anna", `/approvals/${id}`);
      assert.deepEqual([json.status, json.has, json.use_by], ["pending", 0, null]);
      assert.equal(await verdictOf(desk, naming(id)), "BLOCK");
      await lifts(desk, { tools: ["pay.send"] });
      assert.equal(await verdictOf(desk, naming(id)), "ESCALATE", "the vote from before does not count");
      assert.equal((await desk.decides("anna", id, "approve")).json.status, "approved");
      assert.equal(await verdictOf(desk, naming(id)), "ALLOW");
      await assertHolds(desk);
    },
    defect: { within: "stoppedApprovals", find: "stopped.filter(({ votes }) => votes.length > 0)", put: "[]" },
  },
  {
    rule: "R17: a vote during the stop counts after it",
    run: async (desk) => {
      const id = await approved(desk);
      await stops(desk, "all", { approvals: "keep" });
      assert.equal((await desk.decides("bob", id, "approve")).json.status, "approved");
      assert.equal(await verdictOf(desk, naming(id)), "BLOCK", "the stop blocks an approved call too");
      assert.equal((await desk.as("anna", `/approvals/${id}`)).json.status, "approved", "it was not used");
      await lifts(desk, "all");
      assert.equal(await verdictOf(desk, naming(id)), "ALLOW");
    },
    defect: answeredAsReached,
  },
  {
    rule: "D8: who decides may set a stop, only an administrator lifts it, and an agent may do neither",
    run: async (desk) => {
      const { json: agent } = await desk.operates("/admin/keys", { name: "agent", scopes: ["check"] });
      const post = (path: string, by: string): Promise<number> =>
        ask(desk, path, {
          method: "POST",
          headers: { authorization: `Bearer ${by}`, "content-type": "application/json" },
          body: JSON.stringify({ scope: "all", why }),
        }).then(({ status }) => status);
      assert.equal(await post("/admin/stop", agent.key), 403);
      assert.equal(await post("/admin/stop", desk.keys["anna"] ?? ""), 200);
      assert.match((await desk.asks(small)).reason, /^Svc: anna stopped every call: /);
      assert.equal(await post("/admin/stop/lift", agent.key), 403);
      assert.equal(await post("/admin/stop/lift", desk.keys["anna"] ?? ""), 403);
      await lifts(desk, "all");
    },
    defect: { within: "refusalForKey", find: "key.scopes.has(each)", put: 'key.scopes.has(each) || each === "admin"' },
  },
  {
    rule: "[issue 17] a stopped call counts as an attempt, and neither as released nor as escalated",
    options: {
      contract: payments
        .replace(
          "  tries:",
          "  asked: { of: [pay.send], per: platform.wallet, counting: escalated, within: 24h }\n  tries:",
        )
        .replace(
          "rules:\n",
          `rules:
  - rule: busy
    on: [pay.send]
    when: counters.asked > 0 || counters.tries > 3
    verdict: BLOCK
    reason: "{counters.asked} asked, {counters.tries} tried"
`,
        ),
    },
    run: async (desk) => {
      await stops(desk, "all");
      for (let n = 0; n < 3; n += 1) await desk.asks(large);
      await lifts(desk, "all");
      assert.equal(await verdictOf(desk, small), "ALLOW");
      assert.match((await desk.asks(small)).reason, /0 asked, 4 tried/);
    },
    defect: {
      within: "howOf",
      find: 'stop === undefined ? judged?.judgement.how : "stopped"',
      put: "judged?.judgement.how",
    },
  },
  {
    rule: "[issue 17] a recorded ALLOW is not repeated after a stop, not even after its end",
    run: async (desk) => {
      const call = { ...small, call_id: "0".repeat(32) };
      assert.equal(await verdictOf(desk, call), "ALLOW");
      await stops(desk, "all");
      await lifts(desk, "all");
      const again = await ask(desk, "/check", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(call),
      });
      assert.deepEqual([again.status, again.json.code], [409, "call-id-used"]);
    },
    defect: {
      within: "endOfAllow",
      find: "!harmlessActs.has(act)",
      put: '!act.startsWith("stop") && !harmlessActs.has(act)',
    },
  },
];

runScenarios("the stop", scenarios);

suite("a stop over time", () => {
  const restarted = async (t: TestContext, defects?: readonly Mutation[]): Promise<string> => {
    const desk = await startDesk(t);
    await stops(desk, "all");
    await desk.stop();
    const again = await startDesk(t, { folder: desk.folder, persons: {}, ...(defects && { defects }) });
    return verdictOf(again, small);
  };
  test("a stop outlives a restart of the gate", async (t) => {
    assert.equal(await restarted(t), "BLOCK");
  });
  control("positive control: a gate that does not read its rows forgets the stop", async (t) => {
    const defect = { within: "stopActIn", find: "found && { seq, at, act: found }", put: "undefined" };
    assert.equal(await restarted(t, [defect]), "ALLOW");
  });

  /** Loses a row and resumes, then asks a gate for calls, and lifts the stop. */
  const resumed = async (t: TestContext, defects?: readonly Mutation[]): Promise<void> => {
    const desk = await startDesk(t);
    const call = { ...small, tool_name: "pay.legal" };
    assert.equal(await verdictOf(desk, call), "ESCALATE");
    await losesRows(t, desk, (again) => again.asks(small));
    const again = await startDesk(t, { folder: desk.folder, peer: desk, ...(defects && { defects }) });
    const reason = "Svc: Ada stopped every call: the ledger was resumed after a restore, and lacks rows";
    for (const each of [small, call]) {
      const answer = await again.asks(each);
      assert.deepEqual([answer.verdict, answer.reason], ["BLOCK", reason]);
    }
    const run = async (...args: readonly string[]): Promise<string> => {
      const { code, stdout, stderr } = await command(["stop", ...args, "--data-dir", join(desk.folder, "data")]);
      assert.equal(code, 0, stderr);
      return stdout;
    };
    assert.match(await run("--list"), /^every call\n {2}since .*, by Ada: the ledger was resumed after a restore/);
    const refused = await again.as("anna", "/admin/stop/lift", { scope: "all" });
    assert.deepEqual([refused.status, await verdictOf(again, call)], [403, "BLOCK"]);
    await run("--lift");
    assert.equal(await verdictOf(again, call), "ESCALATE");
    await assertHolds(again);
  };
  test("R17: a resume after a restore blocks every call until an administrator lifts the stop", (t) => resumed(t));
  control("positive control: a gate that answers checks right after a resume is noticed", async (t) => {
    const defect = { within: "stopActOf", find: "if (lost === undefined) return undefined;", put: "return undefined;" };
    await assert.rejects(resumed(t, [defect]), /'ALLOW'|'ESCALATE'|is unknown/);
  });
});
