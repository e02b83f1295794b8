/**
 * Goal: gates that share a ledger take each outcome once, and count alike. Method: two gates as processes on the run's
 * PostgreSQL. Positive control: a gate that does not read what outcomes took back.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, suite, test, type TestContext } from "node:test";
import { readSharedLedger } from "../../packages/gate/src/ledger/in-database.ts";
import { startDesk } from "../support/approvals.ts";
import { command } from "../support/command.ts";
import { control } from "../support/controls/control.ts";
import { ask, temporaryFolder } from "../support/gate.ts";
import type { Mutation } from "../support/mutation/mutate.ts";
import { settled, tillOf, type Till } from "../support/outcomes.ts";
import { sharedPostgres, type Databases, type TestDatabase } from "../support/databases.ts";

const server = await sharedPostgres({ after });

if (typeof server === "string")
  test("PostgreSQL is available to the tests of outcomes", { skip: server }, () => undefined);
else outcomes(server);

interface Tills {
  readonly one: Till;
  readonly other: Till;
  readonly url: string;
}

/** Starts two gates on one database. */
async function twoTills(t: TestContext, { gateUrl, url }: TestDatabase, defects?: readonly Mutation[]): Promise<Tills> {
  const env = {
    SVC_DATABASE_URL: gateUrl,
    SVC_SIGNING_KEY: join(temporaryFolder(t), "signing.key"),
  };
  const options = { env, contract: settled, ...(defects !== undefined && { defects }) };
  const desk = await startDesk(t, options);
  const one = await tillOf(desk);
  return { one, other: await tillOf(await startDesk(t, { ...options, peer: desk }), one.books), url: url() };
}

/** An outcome at one gate counts at the other. */
async function settles({ one, other }: Tills): Promise<void> {
  const [paid, raised] = [await one.pays(400), await one.pays(100)];
  assert.equal((await other.reports("books", paid, "failed")).status, 200);
  assert.equal((await other.reports("asker", raised, "done", { amount: 120 })).status, 200);
  const values = { spent: 120, gross: 500, paid: 0, finished: 1 };
  assert.deepEqual(await one.values(), values);
  assert.deepEqual(await other.values(), values);
}

function outcomes(there: Databases): void {
  suite("PostgreSQL: outcomes at two gates", () => {
    test("[issue 17] an outcome that one gate records counts at both, and the ledger verifies", async (t) => {
      const tills = await twoTills(t, await there.create());
      await settles(tills);
      const { one, other } = tills;
      const { json } = await ask(other, "/ledger/verify");
      assert.equal(json.ok, true, JSON.stringify(json));
      const missing = await one.pays(7);
      const listed = await ask(other, "/receipts?outcome=missing");
      assert.deepEqual(
        listed.json.receipts.map(({ seq }: { readonly seq: number }) => seq),
        [missing.receipt.seq],
      );
      const done = await ask(other, "/receipts?outcome=done");
      assert.deepEqual(done.json.receipts[0].outcome.status, "done");
      const deep = await command(["verify", "--deep", "--database"], { env: { SVC_DATABASE_URL: tills.url } });
      assert.equal(deep.code, 0, `${deep.stdout}${deep.stderr}`);
    });

    control("positive control: gates that do not read what was taken back are noticed", async (t) => {
      const defects = [
        { within: "PostgresTransaction.values", find: "this.#parts.head.withdrawals > 0", put: "false" },
      ];
      await assert.rejects(async () => settles(await twoTills(t, await there.create(), defects)));
    });

    test("of several claims at the same time one is recorded, and of several settlements the last one counts", async (t) => {
      let done = 0;
      const { one, other, url } = await twoTills(t, await there.create());
      const ledger = await readSharedLedger({ url, ledger: "root" });
      t.after(() => ledger.close());
      for (let round = 0; round < 10; round += 1) {
        const paid = await one.pays(10);
        const statuses = ["done", "failed", "done", "failed", "failed", "done"];
        const answers = await Promise.all(
          statuses.map((status, n) => (n % 2 === 0 ? one : other).reports("asker", paid, status)),
        );
        const taken = answers.filter(({ status }) => status === 200);
        const rows = new Set(taken.map(({ json }) => json.outcome.seq));
        assert.equal(rows.size, 1, JSON.stringify(answers.map(({ json }) => json)));
        assert.equal(taken.length, 3);
        assert.ok(answers.every(({ status }) => status === 200 || status === 409));
        const settledAt = await Promise.all(
          statuses.map((status, n) => (n % 2 === 0 ? one : other).reports("books", paid, status)),
        );
        assert.ok(settledAt.every(({ status }) => status === 200));
        const last = (await ask(other, `/receipts/${paid.receipt.seq}`)).json.outcome.status;
        done += last === "done" ? 1 : 0;
      }
      assert.deepEqual(await one.values(), { spent: 10 * done, gross: 100, paid: 10 * done, finished: done });
      assert.equal((await ask(other, "/ledger/verify")).json.ok, true);
    });
  });
}
