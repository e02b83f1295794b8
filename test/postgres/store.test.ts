/**
 * Goal: the engine that gates share keeps every engine's promises. Method: the suite of all engines on the run's
 * server, whose binaries come from npm.
 */
import assert from "node:assert/strict";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import { openPostgres } from "../../packages/gate/src/ledger/store/postgres/postgres.ts";
import type { Database } from "../../packages/gate/src/ledger/store/store.ts";
import { addDecimals } from "../../packages/core/src/wire/mod.ts";
import { sha256 } from "../support/ledger-fixture.ts";
import { openDatabase, type TestDatabase } from "../support/databases.ts";
import { commit, storedRow, storeSuite } from "../support/store-suite.ts";

const server = await openDatabase({ after });

if (typeof server === "string")
  test("PostgreSQL is available to the tests of the store", { skip: server }, () => undefined);
else storesOn(server);

function storesOn(there: TestDatabase): void {
  let database: Database;
  before(async () => {
    database = await openPostgres({ url: there.url(), mayMigrate: true });
  });
  after(() => database.close());

  storeSuite("PostgreSQL", {
    kind: "shared",
    open: (folder) => database.open({ ledger: basename(folder), log: undefined }),
    sharer: join(import.meta.dirname, "..", "support", "store-sharer.ts"),
    env: () => ({ SVC_DATABASE_URL: there.url() }),
    intrude: async (folder) => {
      await there.run(
        `INSERT INTO svc_gate.receipts (ledger, seq, tool, verdict, leaf, evidence)
           VALUES ('${basename(folder)}', 2, 't', 'ALLOW', 'x', 'y')`,
      );
    },
    intruded: /duplicate key/,
  });

  test("PostgreSQL: sums are exact beyond the range of numbers and have the shortest form", async () => {
    const store = await database.open({ ledger: "exact", log: undefined });
    const [counter, key] = [sha256("c"), sha256("k")];
    await store.keepCounter({ digest: counter, definition: "c", through: null, unknownThrough: -1 }, []);
    const amounts = ["9".repeat(40), `0.${"0".repeat(39)}1`, "1.50", `1${"0".repeat(400)}`, "0", "0.1"];
    for (const [at, amount] of amounts.entries())
      await commit(store, [storedRow(at + 1)], [{ seq: at + 1, at: at + 1, counter, key, amount }]);
    const transaction = await store.begin();
    const values = await transaction.values([-1, 1, 2, 3, 5].map((moment) => ({ counter, key, after: moment })));
    await transaction.abort();
    const large = `1${"0".repeat(400)}`;
    const sum = (from: number): string => amounts.slice(from).reduce(addDecimals, "0");
    assert.deepEqual(values, [sum(0), sum(1), sum(2), `${large}.1`, "0.1"]);
  });
}
