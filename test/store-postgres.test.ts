/**
 * Goal: the engine that gates share keeps what every engine promises. Method: the suite of all engines on a server of
 * the test's own, whose binaries come from npm.
 */
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import { openPostgres, type Database } from "../src/ledger/stores/postgres.ts";
import { startPostgres, type PostgresServer } from "./postgres-server.ts";
import { storeSuite } from "./store-suite.ts";

const server = await startPostgres({ after });

if (typeof server === "string") test("PostgreSQL", { skip: server }, () => undefined);
else storesOn(server);

function storesOn(there: PostgresServer): void {
  let database: Database;
  before(async () => {
    database = await openPostgres({ url: there.url(), mayMigrate: true });
  });
  after(() => database.close());

  storeSuite("PostgreSQL", {
    kind: "shared",
    open: (place) => database.open({ ledger: basename(place), log: undefined }),
    sharer: join(import.meta.dirname, "store-sharer.ts"),
    env: () => ({ SVC_DATABASE_URL: there.url() }),
    intrude: async (place) => {
      await there.run(
        `INSERT INTO svc_gate.receipts (ledger, seq, tool, verdict, leaf, evidence)
           VALUES ('${basename(place)}', 2, 't', 'ALLOW', 'x', 'y')`,
      );
    },
    intruded: /duplicate key/,
  });
}
