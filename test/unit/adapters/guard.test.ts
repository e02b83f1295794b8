/**
 * Goal: the guard lets a call run only on a verdict that says so, and settings that it cannot use are errors. Method: a stub of
 * the gate's client gives verdicts and answers that are none. Positive controls: the broken guards of
 * test/process/hosts/mutants.test.ts.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { gateName, guardOf, SvcGateRefusal, type GuardSettings } from "../../../adapters/guard.mjs";

const call = { name: "pay", input: { amount: 5 } };

/** A client that gives these verdicts one after another, and keeps each request. */
function clientWith(...verdicts: readonly object[]): any {
  const waiting = [...verdicts];
  const requests: unknown[][] = [];
  const outcomes: unknown[] = [];
  return {
    asked: requests,
    outcomes,
    check: async (...args: unknown[]) => {
      requests.push(args);
      return verdictOf(waiting.shift() ?? {});
    },
    settle: async (...args: unknown[]) => {
      requests.push(args);
      return verdictOf(waiting.shift() ?? {});
    },
    outcome: async (_: unknown, status: string) => {
      outcomes.push(status);
      return null;
    },
  };
}

function verdictOf(members: any): object {
  const found = {
    verdict: "ALLOW",
    reason: "Svc: fine",
    mode: "enforce",
    unreached: false,
    approval: null,
    ...members,
  };
  return {
    receipt: { seq: 1 },
    allowed: found.verdict === "ALLOW",
    escalated: found.verdict === "ESCALATE",
    ...found,
  };
}

const quiet = { log: () => undefined };

suite("the guard of the adapters", () => {
  test("a call runs on ALLOW, and is a permission only if the gate enforces", async () => {
    const cases: readonly (readonly [verdict: object, runs: boolean, grants: boolean])[] = [
      [{}, true, true],
      [{ mode: "assist" }, true, true],
      [{ mode: "observe" }, true, false],
      [{ unreached: true, mode: null, receipt: null }, true, false],
      [{ verdict: "BLOCK" }, false, false],
      [{ verdict: "ESCALATE" }, false, false],
      [{ verdict: "BLOCK", unreached: true, mode: null }, false, false],
    ];
    for (const [verdict, runs, grants] of cases) {
      const found = await guardOf({ gate: clientWith(verdict), ...quiet }).judge(call);
      assert.deepEqual([found.runs, found.grants], [runs, grants], JSON.stringify(verdict));
    }
  });

  test("fail-open lets nothing run in a framework with permissions, and the model reads no address", async () => {
    const verdict = { unreached: true, mode: null, receipt: null, reason: "Svc: the gate at http://secret.example" };
    const found = await guardOf({ gate: clientWith(verdict), ...quiet }, { grant: true }).judge(call);
    assert.deepEqual([found.runs, found.reason], [false, "Svc: the gate gave no verdict; the action is blocked."]);
  });

  test("an answer that is not a verdict, and a client that fails, refuse the call", async () => {
    const answers = [undefined, null, "ALLOW", true, {}, { verdict: "ALLOW" }, { verdict: "ALLOW", allowed: "yes" }];
    for (const answer of answers) {
      const gate: any = { check: async () => answer };
      const found = await guardOf({ gate, ...quiet }).judge(call);
      assert.deepEqual([found.runs, found.reason], [false, "Svc: the adapter itself failed; the action is blocked."]);
    }
    const clients: readonly any[] = [() => undefined, () => Promise.reject(new Error("no run"))];
    for (const gate of clients) assert.equal((await guardOf({ gate, ...quiet }).judge(call)).runs, false);
  });

  test("facts that fail refuse the call without a check", async () => {
    const gate = clientWith();
    const facts = (): object => {
      throw new Error("no database");
    };
    const found = await guardOf({ gate, facts, ...quiet }).judge(call);
    assert.match(found.reason, /the facts about this call could not be read/);
    assert.deepEqual([found.runs, gate.asked], [false, []]);
  });

  test("a run that is stopped while the gate is asked starts no tool", async () => {
    const started = async (stops: boolean): Promise<unknown> => {
      const stopper = new AbortController();
      const gate = clientWith();
      const facts = (): undefined => void (stops && stopper.abort());
      const options = { signal: stopper.signal };
      const guard = guardOf({ gate, facts, ...quiet });
      const ended = await guard.run(
        call,
        () => "ran",
        ({ reason }) => reason,
        options,
      );
      return [ended, gate.asked.length, gate.outcomes];
    };
    assert.deepEqual(await started(false), ["ran", 1, ["done"]], "positive control: the same call runs");
    const reason = "Svc: the run was stopped while the gate was asked; the action is blocked.";
    assert.deepEqual(await started(true), [reason, 1, []]);
  });

  test("an agent that serves several runs asks the client of the call's run", async () => {
    const runs: any = { a: clientWith(), b: clientWith({ verdict: "BLOCK" }) };
    const guard = guardOf({ gate: ({ context }) => runs[context.run], ...quiet });
    assert.equal((await guard.judge({ ...call, context: { run: "a" } })).runs, true);
    assert.equal((await guard.judge({ ...call, context: { run: "b" } })).runs, false);
  });

  test("an approved call is checked again with its approval, once", async () => {
    const gate = clientWith({ verdict: "ESCALATE", approval: { id: "a1", next: "check" } }, {});
    assert.equal((await guardOf({ gate, ...quiet }).judge(call)).runs, true);
    assert.deepEqual(
      gate.asked.map((args: unknown[]) => args[3]),
      [undefined, "a1"],
    );
    const waiting = clientWith({ verdict: "ESCALATE", approval: { id: "a1", next: "wait" } });
    const found = await guardOf({ gate: waiting, onEscalate: "park", ...quiet }, { ways: ["park"] }).judge(call);
    assert.deepEqual([found.runs, found.parks, found.approval, waiting.asked.length], [false, true, "a1", 1]);
  });

  test("the outcome says done after a result, unknown after an error, and nothing if the gate let no call through", async () => {
    const [refuse, fails] = [
      (): string => "refused",
      (): never => {
        throw new Error("broken");
      },
    ];
    const notLet = [{ unreached: true, mode: null, receipt: null }, { mode: "observe" }, { verdict: "BLOCK" }];
    const gate = clientWith({}, {}, ...notLet);
    const guard = guardOf({ gate, ...quiet });
    assert.equal(await guard.run(call, () => "paid", refuse), "paid");
    await assert.rejects(guard.run(call, fails, refuse), /broken/);
    assert.equal(await guard.run(call, () => "paid", refuse), "paid");
    assert.equal(await guard.run(call, () => "paid", refuse), "paid");
    assert.equal(await guard.run(call, () => "paid", refuse), "refused");
    await turn();
    assert.deepEqual(gate.outcomes, ["done", "unknown"]);
  });

  test("settings that cannot be used are errors that name them", () => {
    const wrong: readonly (readonly [settings: object, says: RegExp])[] = [
      [{}, /gate must be a SvcGate/],
      [{ gate: {} }, /gate must be a SvcGate/],
      [{ gate: clientWith(), facts: { a: 1 } }, /facts must be a function/],
      [{ gate: clientWith(), onEscalate: "ask" }, /onEscalate must be one of refuse, wait$/],
      [{ gate: clientWith(), onEscalate: "park" }, /onEscalate must be one of refuse, wait$/],
      [{ gate: clientWith(), onEscalated: "wait" }, /unknown setting onEscalated/],
      [{ gate: clientWith(), waitMs: "900000" }, /waitMs must be a number of milliseconds/],
      [{ gate: clientWith(), waitMs: Number.NaN }, /waitMs must be a number of milliseconds/],
      [{ gate: clientWith(), log: null }, /log must be a function/],
    ];
    for (const [settings, says] of wrong) assert.throws(() => guardOf(settings as GuardSettings), says);
    for (const grant of [null, 0, "false"] as never[])
      assert.throws(() => guardOf({ gate: clientWith() }, { grant }), /grant must be true or false/);
  });

  test("names of tools cannot be mistaken for each other", () => {
    assert.equal(gateName("pay"), "pay");
    assert.equal(gateName("kit.pay"), undefined);
    assert.equal(gateName(""), undefined);
    assert.equal(gateName("pay", "kit"), "kit.pay");
    assert.equal(gateName("pay", ""), undefined);
    assert.equal(gateName("b.c", "a"), "a.b%2Ec");
    assert.equal(gateName("c", "a.b"), "a%2Eb.c");
    assert.equal(gateName("b__c", "a"), "a.b%5F%5Fc");
  });

  test("a refusal that a tool throws has the sentence for the model and the approval", () => {
    const refusal = new SvcGateRefusal({ reason: "Svc: too much", approval: "a1" });
    assert.deepEqual([refusal.message, refusal.name, refusal.approval], ["Svc: too much", "SvcGateRefusal", "a1"]);
  });
});
