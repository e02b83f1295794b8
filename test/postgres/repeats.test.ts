/**
 * Goal: an exact repeat of a check gets one recorded answer, whichever gate of a shared ledger is asked. Method: each rule
 * is a scenario with two gates as processes on the run's PostgreSQL. Positive control: the same scenario fails with
 * two gates that have a planted defect. REPEAT_ROUNDS sets how often both gates are asked at the same time.
 */
import assert from "node:assert/strict";
import { after, suite, test } from "node:test";
import { small, approved, large, naming, type Desk } from "../support/approvals.ts";
import { control } from "../support/controls/control.ts";
import { ask, check, type Answer } from "../support/gate.ts";
import type { Mutation } from "../support/mutation/mutate.ts";
import { sharedPostgres, type Databases } from "../support/databases.ts";
import { assertRefused, assertRepeats, drawn } from "../support/repeats.ts";
import { twoDesks } from "../support/two-desks.ts";

const rounds = Number(process.env["REPEAT_ROUNDS"] ?? 30);
const server = await sharedPostgres({ after });
const blocked = { ...large, tool_input: { amount: 9999, to: "x" } };

interface SharedScenario {
  readonly rule: string;
  readonly run: (one: Desk, other: Desk) => Promise<void>;
  readonly defect: Mutation;
}

/** Sends several calls at the same time, in turns to the two gates. */
function askBoth(desks: readonly [Desk, Desk], calls: readonly object[]): Promise<readonly Answer[]> {
  return Promise.all(calls.map((call, index) => check(desks[index % 2 === 0 ? 0 : 1], call)));
}

/** Returns the only answer that is not a repeat, and asserts that all others repeat it. */
function assertOneAnswer(answers: readonly Answer[]): Answer {
  const [first = assert.fail("nobody got the answer first"), ...more] = answers.filter(
    ({ json }) => json.repeated === undefined,
  );
  assert.deepEqual(more, []);
  for (const each of answers) if (each !== first) assertRepeats(first, each);
  return first;
}

const scenarios: readonly SharedScenario[] = [
  {
    rule: "[issue 16] a gate repeats the answer that another gate recorded, and adds no row",
    run: async (one, other) => {
      for (const each of [small, large, blocked, { tool_name: "x", tool_input: {} }]) {
        const call = { ...each, call_id: drawn() };
        const first = await check(one, call);
        const rows = await one.rows();
        assertRepeats(first, await check(other, call));
        assertRepeats(first, await check(one, call));
        assert.equal(await other.rows(), rows);
      }
    },
    // A gate that repeats its own answers only.
    defect: { within: "repeatId", find: "[key, callId]", put: "[key, callId, process.pid]" },
  },
  {
    rule: "[issue 16] two gates that are asked at the same time record one row and one answer",
    run: async (one, other) => {
      for (let round = 0; round < rounds; round += 1) {
        const rows = await one.rows();
        const call = { ...(round % 2 === 0 ? small : large), session_id: `s${round}`, call_id: drawn() };
        const first = assertOneAnswer(
          await askBoth(
            [one, other],
            Array.from({ length: 6 }, () => call),
          ),
        );
        assert.equal(await other.rows(), rows + 1, `round ${round}`);
        for (const desk of [one, other]) assertRepeats(first, await check(desk, call));
      }
    },
    defect: { within: "entriesIn", first: 'if (table === "repeats") return [];' },
  },
  {
    rule: "C18: a call_id that one gate has answered is refused for another body at the other gate",
    run: async (one, other) => {
      const call = { ...large, call_id: drawn() };
      const first = await check(one, call);
      const rows = await one.rows();
      const changes = [
        { tool_input: { amount: 1201, to: "anna" } },
        { session_id: "s2" },
        { platform_state: { wallet: "v" } },
      ];
      for (const change of changes) await assertRefused(other, { ...call, ...change }, /another body/);
      assert.equal(await one.rows(), rows);
      assertRepeats(first, await check(other, call));
      for (let round = 0; round < rounds; round += 1) {
        const call_id = drawn();
        const bodies = [1, 2, 3, 4].map((amount) => ({ ...small, tool_input: { amount, to: "x" }, call_id }));
        const statuses = (await askBoth([one, other], bodies)).map(({ status }) => status);
        assert.deepEqual(
          statuses.toSorted((a, b) => a - b),
          [200, 409, 409, 409],
          `round ${round}`,
        );
      }
      assert.equal(await one.rows(), rows + rounds);
    },
    defect: { within: "repetitionsOf", find: "answer.bodyDigest === check.bodyDigest", put: "true" },
  },
  {
    rule: "[issue 16] an ALLOW that one gate recorded ends at the other with a cancel, a reload, a mode or a revoked key",
    run: async (one, other) => {
      const allowed = async (): Promise<object> => {
        const call = { ...small, session_id: drawn(), call_id: drawn() };
        assertRepeats(await check(other, call), await check(one, call));
        return call;
      };
      const { approval } = await one.asks({ ...large, session_id: "s9" });
      const byCancel = await allowed();
      assert.equal((await one.as("anna", `/approvals/${approval.id}/cancel`, {})).status, 200);
      await assertRefused(other, byCancel, /act approval.cancel followed/);
      const byMode = await allowed();
      assert.equal((await one.operates("/admin/reload", { mode: "assist" })).status, 200);
      await assertRefused(other, byMode, /act reload followed/);
      const byKey = await allowed();
      await one.operates("/admin/keys", { name: "spare", scopes: ["check"] });
      assert.equal((await check(other, byKey)).json.repeated, true, "a new key ends nothing");
      assert.equal((await one.operates("/admin/keys/spare/revoke", {})).status, 200);
      await assertRefused(other, byKey, /act keys.revoke followed/);
    },
    defect: { within: "endOfAllow", find: "transaction.store.changed > row", put: "false" },
  },
  {
    rule: "C21: a gate repeats the answer to the check that used an approval at another gate, once for all",
    run: async (one, other) => {
      for (let round = 0; round < 5; round += 1) {
        const parked = { ...large, session_id: `u${round}`, platform_state: { wallet: `u${round}` } };
        const id = await approved(one, parked);
        const call = { ...naming(id, parked), call_id: drawn() };
        const first = assertOneAnswer(
          await askBoth(
            [one, other],
            Array.from({ length: 4 }, () => call),
          ),
        );
        assert.deepEqual([first.json.verdict, first.json.approval.status], ["ALLOW", "used"]);
        assert.equal((await other.asks(naming(id, parked))).verdict, "BLOCK", "another check cannot use it");
      }
    },
    defect: {
      within: "recordAnswer",
      find: "check.approval === undefined ? null : JSON.stringify(check.approval)",
      put: "null",
    },
  },
];

function repeats(there: Databases): void {
  suite("PostgreSQL: exact repeats at two gates", () => {
    for (const { rule, run, defect } of scenarios) {
      test(rule, async (t) => {
        const [one, other] = await twoDesks(t, await there.create());
        await run(one, other);
        assert.equal((await ask(other, "/ledger/verify")).json.ok, true);
      });
      control(`positive control: a defect is noticed by "${rule}"`, async (t) => {
        const [one, other] = await twoDesks(t, await there.create(), { defects: [defect] });
        await assert.rejects(() => run(one, other));
      });
    }
  });
}

if (typeof server === "string")
  test("PostgreSQL is available to the tests of repeats", { skip: server }, () => undefined);
else repeats(server);
