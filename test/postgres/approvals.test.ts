/**
 * Goal: gates that share a ledger park a call once, hear every decision, and let the decided call through once. Method:
 * two gates as processes on the test's own PostgreSQL. Positive control: a gate that does not close what was used.
 * REDEEM_ROUNDS sets how often both gates are asked for one approval at the same time.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, suite, test } from "node:test";
import { readSharedLedger } from "../../packages/gate/src/ledger/in-database.ts";
import { ledgerTables } from "../../packages/gate/src/ledger/mod.ts";
import { approvalMetrics, approved, large, naming, payments, slowBatches, type Desk } from "../support/approvals.ts";
import { control } from "../support/controls/control.ts";
import { ask } from "../support/gate.ts";
import { databasesOn, type Databases } from "../support/databases.ts";
import { startPostgres, type PostgresServer } from "../support/postgres-server.ts";
import { twoDesks } from "../support/two-desks.ts";

const rounds = Number(process.env["REDEEM_ROUNDS"] ?? 20);
const server = await startPostgres({ after }, { max_connections: 80 });

if (typeof server === "string")
  test("PostgreSQL is available to the tests of approvals", { skip: server }, () => undefined);
else approvals(server, await databasesOn(server));

/** Asks both gates for one approval at the same time, in each round with another call. Returns the ALLOWs of each round. */
async function redeem([one, other]: readonly [Desk, Desk], times: number): Promise<readonly number[]> {
  const allowed: number[] = [];
  for (let round = 0; round < times; round += 1) {
    const call = { ...large, session_id: `s${round}`, platform_state: { wallet: `w${round}` } };
    const id = await approved(one, call);
    const sent = Array.from({ length: 6 }, (_, n) => (n % 2 === 0 ? one : other).asks(naming(id, call)));
    const answers = await Promise.all(sent);
    allowed.push(answers.filter(({ verdict }) => verdict === "ALLOW").length);
  }
  return allowed;
}

/** Contracts whose approvals expire while a test waits. */
const soon = payments.replace("use_within: 5m", "decide_within: 8s, use_within: 5m");

/** Returns how often the database was asked for expired approvals during the work. */
async function lookups(there: PostgresServer, work: () => Promise<void>): Promise<number> {
  const [from, to] = [randomUUID(), randomUUID()];
  await there.run("ALTER SYSTEM SET log_statement TO 'all'");
  await there.run("SELECT pg_reload_conf()");
  while (!there.log().includes(from)) await there.run(`SELECT '${from}'`);
  await work();
  while (!there.log().includes(to)) await there.run(`SELECT '${to}'`);
  await there.run("ALTER SYSTEM RESET log_statement");
  await there.run("SELECT pg_reload_conf()");
  const log = there.log();
  assert.ok(log.includes(from), "the log has all statements of the work");
  return log.slice(log.indexOf(from), log.indexOf(to)).split("execute dueApprovals").length - 1;
}

/** Lets an approval of one gate expire, and asserts that the other gate ends it. Gates look for it only then. */
async function expiry(there: PostgresServer, [one, other]: readonly [Desk, Desk]): Promise<void> {
  const small = { ...large, tool_input: { amount: 5, to: "anna" } };
  const reserved = { ...large, tool_input: { amount: 1400, to: "x" } };
  const { approval } = await one.asks(large);
  const before = await lookups(there, async () => {
    for (const desk of [one, other]) await desk.asks(small);
    assert.equal((await other.asks(reserved)).verdict, "BLOCK", "1,200 of 2,500 are held");
  });
  assert.equal(before, 0);
  await new Promise((resolve) => setTimeout(resolve, approval.decide_by - Date.now() + 50));
  const rows = await one.rows();
  const then = await lookups(there, async () => {
    assert.equal((await other.asks(reserved)).verdict, "ESCALATE", "nothing is held any more");
    assert.equal(await one.rows(), rows + 2, "one row says that the approval expired");
    for (const desk of [one, other]) await desk.asks(small);
  });
  assert.equal(then, 1);
  assert.equal((await one.as("anna", `/approvals/${approval.id}`)).json.status, "expired");
}

function approvals(there: PostgresServer, databases: Databases): void {
  suite("PostgreSQL: approvals of two gates", () => {
    test("[issue 16] a call that two gates are asked for at the same time is let through once", async (t) => {
      const desks = await twoDesks(t, await databases.create());
      assert.deepEqual(new Set(await redeem(desks, rounds)), new Set([1]));
      assert.equal((await ask(desks[1], "/ledger/verify")).json.ok, true);
    });

    control("positive control: gates that do not close what was used let a call through again", async (t) => {
      const defects = [
        {
          within: "BatchApprovals.#close",
          find: "this.#approvals.set(approval.row, { ...approval, status });",
          put: "",
        },
        slowBatches,
      ];
      await assert.rejects(async () => {
        const desks = await twoDesks(t, await databases.create(), { defects });
        assert.deepEqual(new Set(await redeem(desks, 10)), new Set([1]));
      });
    });

    test("a gate looks for expired approvals only after the time of one is over, also of another gate's", async (t) => {
      await expiry(there, await twoDesks(t, await databases.create(), { contract: soon }));
    });

    for (const [index, put] of ["true", "this.#parts.nextEnd > at + 60_000"].entries())
      control(
        `positive control: a gate that looks for expired approvals ${index === 0 ? "never" : "too early"} is noticed`,
        async (t) => {
          const defect = { within: "PostgresTransaction.dueApprovals", find: "this.#parts.nextEnd > at", put };
          const desks = await twoDesks(t, await databases.create(), { contract: soon, defects: [defect] });
          await assert.rejects(() => expiry(there, desks));
        },
      );

    test("a call is parked once, whichever gate is asked, and its amount counts at both", async (t) => {
      const [one, other] = await twoDesks(t, await databases.create());
      const [first, second] = [await one.asks(large), await other.asks(large)];
      assert.deepEqual([second.approval.id, second.approval.new], [first.approval.id, false]);
      const more = { ...large, tool_input: { amount: 1301, to: "x" } };
      assert.equal((await other.asks(more)).verdict, "BLOCK", "1,200 of 2,500 are held");
    });

    test("R8: the amounts that parked calls reserve are the same at both gates, and end at both", async (t) => {
      const contract = payments.replace(
        "rules:\n",
        `rules:
  - rule: queue
    on: [pay.send]
    when: counters.spent.held > 1000
    verdict: BLOCK
    reason: "{counters.spent.held} wait"
`,
      );
      const [one, other] = await twoDesks(t, await databases.create(), { contract });
      const { approval } = await one.asks(large);
      const small = { ...large, tool_input: { amount: 5, to: "x" } };
      const blocked = await other.asks(small);
      assert.deepEqual([blocked.verdict, blocked.reason], ["BLOCK", "Svc: 1200 wait"]);
      assert.equal((await one.decides("anna", approval.id, "deny")).status, 200);
      assert.equal((await other.asks(small)).verdict, "ALLOW");
      assert.equal((await ask(other, "/ledger/verify")).json.ok, true);
    });

    test("each gate shows the calls that wait, and only the gate that recorded a decision counts it", async (t) => {
      const database = await databases.create();
      const [one, other] = await twoDesks(t, database);
      const { approval, receipt } = await one.asks(large);
      await one.asks({
        ...large,
        session_id: "s2",
        platform_state: { wallet: "v" },
        tool_input: { amount: 1100, to: "x" },
      });
      const shown = await approvalMetrics(other);
      assert.deepEqual([shown["approvals_waiting"], shown["approvals_late"]], [2, 0]);
      assert.equal((await one.decides("anna", approval.id, "approve")).status, 200);
      const later = await approvalMetrics(other);
      assert.deepEqual([later["approvals_waiting"], later["approvals_total approved"]], [1, 0]);
      const ledger = await readSharedLedger({
        url: database.url(),
        ledger: "root",
      });
      t.after(() => ledger.close());
      const reserved = (await ledgerTables.openApprovalsAt(ledger.tables, [receipt.seq, receipt.seq + 100])).map(
        ({ seq, reservations: amounts }) => {
          return [seq, amounts.map(({ amount }) => amount)];
        },
      );
      assert.deepEqual(reserved, [[receipt.seq, ["1200"]]]);
      const { at } = (await ask(one, `/receipts/${receipt.seq}`)).json;
      const shares = [0.4, 0.9, 2].map((share) => ledger.tables.countWaiting(Math.round(at + share * 3_600_000)));
      assert.deepEqual(await Promise.all(shares), [
        { calls: 1, late: 0 },
        { calls: 1, late: 1 },
        { calls: 0, late: 0 },
      ]);
    });

    test("a decision at one gate ends the wait at the other, and a person's groups are those of now", async (t) => {
      const [one, other] = await twoDesks(t, await databases.create());
      const { approval } = await one.asks(large);
      const waiting = ask(other, `/approvals/${approval.id}?wait=30`);
      await ask(other, `/approvals/${approval.id}?wait=1`); // when this ends, the one before it waits too
      assert.equal((await one.decides("anna", approval.id, "approve")).status, 200);
      const heard = (await waiting).json;
      assert.deepEqual([heard.status, heard.next], ["approved", "check"]);
      const groups = { groups: ["legal"] };
      assert.equal((await one.operates("/admin/keys/anna-laptop/update", groups)).status, 200);
      assert.equal((await other.asks(naming(approval.id))).verdict, "ESCALATE", "anna no longer speaks for finance");
    });

    test("a denial at one gate applies at the other, also after an erasure of another call", async (t) => {
      const [one, other] = await twoDesks(t, await databases.create());
      const { approval } = await one.asks(large);
      const parked = await one.asks({ ...large, session_id: "s2", tool_input: { amount: 1100, to: "x" } });
      assert.equal((await other.decides("anna", approval.id, "deny")).status, 200);
      assert.equal((await one.asks(large)).verdict, "BLOCK");
      const erase = { session_id: "s2", parts: ["input"], reason: "a person asked for it" };
      const erased = await one.operates("/admin/erase", erase);
      assert.deepEqual([erased.status, erased.json.rows], [200, 1], erased.text);
      assert.equal((await other.as("anna", `/approvals/${parked.approval.id}`)).status, 404);
      assert.equal((await other.asks(large)).verdict, "BLOCK");
      assert.equal((await ask(other, "/ledger/verify")).json.ok, true);
    });
  });
}
