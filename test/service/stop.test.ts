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

async function assertInForce(desk: Desk): Promise<void> {
  const { json } = await ask(desk, "/ledger/verify");
  assert.equal(json.valid ?? json.ok, true, JSON.stringify(json));
}

const answeredAsReached = { within: "stopOf", first: "return undefined;" };

/** The scopes that GET /stop lists, in the order of their rows. */
async function inForce(desk: Desk): Promise<readonly unknown[]> {
  return (await ask(desk, "/stop")).json.stops.map(({ scope }: { readonly scope: unknown }) => scope);
}

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
      await assertInForce(desk);
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
      await assertInForce(desk);
    },
    defect: [
      { within: "tooManyStops", find: 'kind === "all" || kind === "key"', put: "false && kind" },
      { within: "tooManyStops", find: "classifyStopScope(stop.scope) === kind", put: "true" },
    ],
  },
  {
    rule: "[P1] a wider stop keeps the narrower ones: after its end they hold, and the answer lists them",
    run: async (desk) => {
      const session = { session: { key: "default", id: "s2" } };
      await stops(desk, { tools: ["pay.send"] });
      await stops(desk, session);
      await stops(desk, "all");
      const inS2 = { ...small, tool_name: "pay.legal", session_id: "s2" };
      const stopped = async (call: object): Promise<boolean> => /stopped/.test((await desk.asks(call)).reason);
      assert.equal(await stopped({ ...small, tool_name: "pay.legal" }), true);
      const { json } = await desk.operates("/admin/stop/lift", { scope: "all" });
      const still = [{ tools: ["pay.send"] }, session];
      assert.deepEqual(
        json.stops.map(({ scope }: { readonly scope: unknown }) => scope),
        still,
      );
      assert.deepEqual(await inForce(desk), still);
      assert.deepEqual([await stopped(small), await stopped(inS2)], [true, true]);
      assert.equal(await stopped({ ...small, tool_name: "pay.legal" }), false);
      await lifts(desk, { tools: ["pay.send"] });
      assert.deepEqual([await stopped(small), await stopped(inS2)], [false, true]);
      await assertInForce(desk);
    },
    defect: {
      within: "withStopAct",
      find: "!isSameStop(stop, act)",
      put: 'act.scope !== "all" && !isSameStop(stop, act)',
    },
  },
  {
    rule: "[P13] a stop of a name that nobody knows holds, and the answer names the nearest",
    run: async (desk) => {
      await desk.asks({ ...small, session_id: "run-17" });
      const session = (id: string, key = "default"): object => ({ session: { key, id } });
      const cases: readonly (readonly [object, readonly string[]])[] = [
        [{ key: "anna-laptp" }, ['no key with the name "anna-laptp" exists; did you mean "anna-laptop"?']],
        [{ key: "something-else" }, ['no key with the name "something-else" exists']],
        [
          { tools: ["pay.send", "pay.sent"] },
          ['no tool with the name "pay.sent" is in a contract that this gate has open; did you mean "pay.send"?'],
        ],
        [
          session("run-18"),
          ['no session with the name "run-18" of the key "default" has a row; did you mean "run-17"?'],
        ],
        [session("run-17", "defualt"), ['no key with the name "defualt" exists; did you mean "default"?']],
      ];
      for (const [scope, warnings] of cases)
        assert.deepEqual((await stops(desk, scope)).warnings, warnings, JSON.stringify(scope));
      assert.equal((await inForce(desk)).length, cases.length, "each is in force");
      assert.equal(await verdictOf(desk, { ...small, session_id: "run-18" }), "BLOCK");
      for (const scope of ["all", { key: "default" }, { tools: ["pay.legal", "pay.send"] }, session("run-18")])
        assert.deepEqual((await stops(desk, scope)).warnings, [], JSON.stringify(scope));
    },
    defect: { within: "warningsOf", module: "http/stop-warnings", first: "return [];" },
  },
  {
    rule: "[P13] a scope with a NUL is refused, because no call can have such a name",
    run: async (desk) => {
      for (const scope of [{ key: "a\0" }, { tools: ["a\0"] }, { session: { key: "default", id: "a\0" } }])
        assert.equal((await desk.operates("/admin/stop", { scope, why })).status, 400, JSON.stringify(scope));
      assert.deepEqual(await inForce(desk), []);
    },
    defect: { within: "isName", module: "approvals/stop-request", find: '!value.includes("\\0")', put: "true" },
  },
  {
    rule: "[P13] the answer to a stop counts the calls and grants that it ended, and the calls that lost their votes",
    options: { contract: payments.replace("{ by: [finance] }", "{ by: [finance], grants: { at_most: 1h, uses: 3 } }") },
    run: async (desk) => {
      const waiting = { ...large, tool_input: { amount: 1001, to: "eve" }, session_id: "s3" };
      const none = { approvals: 0, votes: 0, grants: 0 };
      const { approval, receipt } = await desk.asks(large);
      const grant = { approval: approval.id, hash: receipt.hash, amounts: { "input.amount": 2000 } };
      assert.equal((await desk.as("anna", "/grants", grant)).status, 201);
      assert.equal(await verdictOf(desk, waiting), "ESCALATE");
      assert.deepEqual((await stops(desk, { tools: ["pay.legal"] })).ended, none);
      const keeping = await stops(desk, { session: { key: "default", id: "s3" } }, { approvals: "keep" });
      assert.deepEqual(keeping.ended, none, "it had no votes");
      assert.deepEqual((await stops(desk, { tools: ["pay.send"] })).ended, { approvals: 2, votes: 0, grants: 1 });
      assert.deepEqual((await stops(desk, "all")).ended, none);
    },
    defect: { within: "stopEvent", find: "ends.length", put: "0" },
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
      const narrow = JSON.stringify({ scope: { session: { key: "default", id: "run" } }, why });
      assert.ok(
        (await statuses("/admin/stop", { method: "POST", body: narrow })).includes(429),
        "a narrow stop counts",
      );
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
      await assertInForce(desk);
    },
    defect: { within: "stoppedCall", find: '"enforce"', put: '"observe"' },
  },
  {
    rule: "C24: a stop cancels the approvals in its scope, and frees what they hold",
    run: async (desk) => {
      const id = await approved(desk);
      const reserved = { ...large, tool_input: { amount: 1400, to: "anna" }, session_id: "s2" };
      assert.equal(await verdictOf(desk, reserved), "BLOCK", "1,200 of 2,500 are held");
      await stops(desk, "all");
      assert.equal((await desk.as("anna", `/approvals/${id}`)).json.status, "cancelled");
      assert.equal(await verdictOf(desk, naming(id)), "BLOCK");
      await lifts(desk, "all");
      assert.equal(await verdictOf(desk, naming(id)), "BLOCK", "an approval from before the stop cannot be used");
      assert.equal(await verdictOf(desk, reserved), "ESCALATE");
      await assertInForce(desk);
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
      const { ended } = await stops(desk, { tools: ["pay.send"] }, { approvals: "keep" });
      assert.deepEqual(ended, { approvals: 0, votes: 1, grants: 0 });
      const { json } = await desk.as("anna", `/approvals/${id}`);
      assert.deepEqual([json.status, json.has, json.use_by], ["pending", 0, null]);
      assert.equal(await verdictOf(desk, naming(id)), "BLOCK");
      await lifts(desk, { tools: ["pay.send"] });
      assert.equal(await verdictOf(desk, naming(id)), "ESCALATE", "the vote from before does not count");
      assert.equal((await desk.decides("anna", id, "approve")).json.status, "approved");
      assert.equal(await verdictOf(desk, naming(id)), "ALLOW");
      await assertInForce(desk);
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
      within: "stoppedCall",
      find: '{ answered: "BLOCK", mode: "enforce", how: "stopped", outcome: { asked } }',
      put: '{ answered: "BLOCK", mode: "enforce", how: undefined, outcome: { asked } }',
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
    await assertInForce(again);
  };
  test("R17: a resume after a restore blocks every call until an administrator lifts the stop", (t) => resumed(t));
  control("positive control: a gate that answers checks right after a resume is noticed", async (t) => {
    const defect = { within: "stopActOf", find: "if (lost === undefined) return undefined;", put: "return undefined;" };
    await assert.rejects(resumed(t, [defect]), /'ALLOW'|'ESCALATE'|is unknown/);
  });
});

/** Faults of a gate that does not obey stops, and what `verify` says of the rows that it writes. */
const unlawful: readonly { readonly fault: string; readonly defect: Mutation; readonly says: RegExp }[] = [
  {
    fault: "lets a call pass that a stop covers",
    defect: answeredAsReached,
    says: /stops before it(.|\n)*BLOCK, because row \d+ stopped it(.|\n)*ALLOW/,
  },
  {
    fault: "blocks a call that no stop covers, by a name that the stop does not have",
    defect: {
      within: "stopFor",
      find: "possibleName(possible.scope, call, context as StopContext)",
      put: 'call.tool === "pay.legal" ? "pay.legal" : undefined',
    },
    says: /stops before it(.|\n)*a call that no stop covers(.|\n)*stopped it/,
  },
  {
    fault: "names a row that set no stop",
    defect: { within: "stoppedCall", find: "stop.row", put: "1" },
    says: /stops before it/,
  },
  {
    fault: "leaves an approval open that the stop covers",
    defect: { within: "stoppedApprovals", first: "return { ends: [], reopens: [] };" },
    says: /a stop of exactly the approvals in its scope/,
  },
];

/** Runs calls of a stopped tool, of another one and of a session, and returns what `verify` says of the ledger. */
async function verified(t: TestContext, defects: readonly Mutation[]): Promise<string> {
  const desk = await startDesk(t, { defects });
  await desk.asks(large);
  await desk.operates("/admin/stop", { scope: { tools: ["pay.send"] }, why });
  for (const call of [small, { ...small, tool_name: "pay.legal" }]) await desk.asks(call);
  await desk.stop();
  const { code, stdout, stderr } = await command(["verify", join(desk.folder, "data")]);
  assert.equal(code, defects.length === 0 ? 0 : 1, stdout + stderr);
  return stdout + stderr;
}

suite("verification of stops", { concurrency: 2 }, () => {
  test("the rows of a gate that obeys a stop are verified", async (t) => {
    await verified(t, []);
  });
  for (const { fault, defect, says } of unlawful)
    control(`positive control: verify notices a gate that ${fault}`, async (t) => {
      assert.match(await verified(t, [defect]), says);
    });
});
