import { basename } from "node:path";
import { openPostgres } from "../../packages/svc-gate/src/ledger/store/postgres/postgres.ts";
import { shareTurns } from "./store-suite.ts";

// A process that takes its turns on the ledger of argv[2], as many as argv[3] says, and ends.
const database = await openPostgres({ url: process.env["SVC_DATABASE_URL"] ?? "" });
const store = await database.open({ ledger: basename(process.argv[2] ?? ""), log: undefined });
await shareTurns(store, Number(process.argv[3]));
await database.close();
