/**
 * Goal: gates that share a ledger count the uses of a grant together, and hear its end. Method: two gates as processes on
 * the run's PostgreSQL. Positive control: a gate that does not read the uses of the other gate.
 */
import assert from "node:assert/strict";
import { after, suite, test } from "node:test";
import { large, payments, type Desk } from "../support/approvals.ts";
import { control } from "../support/controls/control.ts";
import { sharedPostgres, type Databases } from "../support/databases.ts";
import { twoDesks } from "../support/two-desks.ts";

const contract = payments
  .replace(
    "approval: { by: [finance] }",
    "approval: { by: [finance], grants: { at_most: 1h, uses: 6, pin: [input.to] } }",
  )
  .replace("> 2500", "> 250000");

const server = await sharedPostgres({ after });

if (typeof server === "string")
  test("PostgreSQL is available to the tests of grants", { skip: server }, () => undefined);
else grants(server);

const paying = (amount: number): object => ({ ...large, tool_input: { amount, to: "anna" } });

async function granted(desk: Desk): Promise<string> {
  const { approval, receipt } = await desk.asks(large);
  const amounts = { "input.amount": 100_000 };
  const { json, status, text } = await desk.as("anna", "/grants", {
    approval: approval.id,
    hash: receipt.hash,
    amounts,
  });
  assert.equal(status, 201, text);
  return json.id;
}

/** Asks both gates in turns and at once; returns how many calls the grant let through. */
async function used([one, other]: readonly [Desk, Desk]): Promise<number> {
  await granted(one);
  const inTurn = [await one.asks(paying(1001)), await other.asks(paying(1002)), await one.asks(paying(1003))];
  const atOnce = await Promise.all(
    [1004, 1005, 1006, 1007, 1008, 1009].map((n) => (n % 2 === 0 ? one : other).asks(paying(n))),
  );
  return [...inTurn, ...atOnce].filter(({ verdict }) => verdict === "ALLOW").length;
}

function grants(there: Databases): void {
  suite("grants at two gates", () => {
    test("a grant of six uses lets six calls through at both gates together", async (t) => {
      assert.equal(await used(await twoDesks(t, await there.create(), { contract })), 6);
    });

    control("positive control: gates that do not read each other's uses let more calls through", async (t) => {
      const defects = [{ within: "StopsAndGrants.follow", find: "first !== undefined", put: "false" }];
      const count = await used(await twoDesks(t, await there.create(), { contract, defects }));
      assert.ok(count > 6, `${count} calls`);
    });

    test("a grant that one gate revoked covers no call at the other", async (t) => {
      const [one, other] = await twoDesks(t, await there.create(), { contract });
      const id = await granted(one);
      assert.equal((await other.asks(paying(1100))).verdict, "ALLOW");
      assert.equal((await one.as("bob", `/grants/${id}/revoke`, {})).status, 200);
      assert.equal((await other.asks(paying(1100))).verdict, "ESCALATE");
    });
  });
}
