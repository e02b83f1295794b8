import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { findCitus } from "../test/postgres/distributed/cluster.ts";

// `npm run distributed`: tests the ledger on a distributed engine. It is not a part of `npm test`, because few machines
// have one; the last line is `N passed, N failed, N skipped`. `npm run distributed -- measure` prints the figures for
// bench/scale.
const root = join(import.meta.dirname, "..");
const citus = findCitus();
if ("missing" in citus) {
  console.log(`skipped: ${citus.missing}`);
  console.log(
    "Install PostgreSQL with the Citus extension, or say where its initdb is: SVC_CITUS_BIN=/srv/postgresql/bin",
  );
  console.log("0 passed, 0 failed, 1 skipped");
} else {
  console.log(`PostgreSQL with Citus in ${citus.binaries}`);
  const args =
    process.argv[2] === "measure"
      ? ["test/postgres/distributed/measure.ts"]
      : ["tools/test.ts", "test/postgres/distributed/citus.ts"];
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: "inherit" });
  process.exitCode = status ?? 1;
}
