import { basename } from "node:path";
import { openPostgres } from "../../packages/gate/src/ledger/store/postgres/postgres.ts";
import { shareTurns } from "./store-suite.ts";

// A process that makes argv[3] transactions on the shared ledger of argv[2], and ends.
const database = await openPostgres({ url: process.env["SVC_DATABASE_URL"] ?? "" });
const store = await database.open({ ledger: basename(process.argv[2] ?? ""), log: undefined });
await shareTurns(store, Number(process.argv[3]));
await database.close();
