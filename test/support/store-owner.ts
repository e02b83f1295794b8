import { openSqlite } from "../../packages/gate/src/ledger/store/sqlite/sqlite.ts";

// A process that owns the ledger in argv[2] until it is killed. It prints `open`, or the error and ends.
try {
  const store = await openSqlite({ folder: process.argv[2] ?? "", log: undefined, mustExist: false });
  const transaction = await store.begin();
  await transaction.commit([{ seq: 1, leaf: "leaf 1", evidence: "e", session: null, tool: "t", verdict: "ALLOW" }], []);
  console.log("open");
  setTimeout(() => process.exit(1), 30_000);
} catch (error) {
  console.log((error as Error).message);
}
