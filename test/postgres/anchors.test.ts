/**
 * Goal: gates that share a ledger share its anchors, and a start reports a database that was rolled back. Method: two
 * gates on one database, called in turn, with one witness for both; then an older copy of the database.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, suite, test } from "node:test";
import { policyText, TestWitness, until } from "../support/anchor-kit.ts";
import { ask, check, desk, startGate, temporaryFolder, type Running } from "../support/gate.ts";
import { sharedPostgres, type Databases } from "../support/databases.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const server = await sharedPostgres({ after });
const keyFile = join(temporaryFolder({ after }), "signing.key");
const call = { tool_name: "note.add", tool_input: {} };

if (typeof server === "string")
  test("PostgreSQL: gates on one ledger share its anchors", { skip: server }, () => undefined);
else suite("anchors of a ledger in PostgreSQL", () => anchored(server));

function anchored(there: Databases): void {
  test("all gates share the anchors, which detect a database restored from an older copy", async (t) => {
    const folder = temporaryFolder(t);
    const witness = await new TestWitness("a").start(t);
    writeFileSync(join(folder, "policy"), policyText([witness], 1));
    const start = (url: string): Promise<Running> =>
      startGate(t, {
        contracts: { "desk.yaml": desk },
        flags: {
          "database-url": url,
          "signing-key": keyFile,
          "witness-policy": join(folder, "policy"),
          "anchor-every": "1",
          "ledger-name": "example.org/shared",
        },
      });
    const database = await there.create();
    const url = database.url();
    const gates = [await start(url), await start(url)] as const;
    witness.trusted.set("example.org/shared", gates[0].ledger.verifiers);
    await check(gates[0], call);
    await until(() => gates[0].gate.anchors?.cosigned !== undefined);
    await Promise.all(gates.map((gate) => gate.stop()));
    const before = await there.create(database.name);
    const replicas = [await start(url), await start(url)] as const;
    for (let more = 0; more < 20; more += 1) for (const replica of replicas) await check(replica, call);
    const rows = replicas[1].ledger.head.seq;
    assert.ok(rows > 40);
    await until(() => witness.seen.get("example.org/shared")?.size === rows);
    for (const replica of replicas) {
      const { json } = await ask(replica, "/ledger/verify");
      assert.equal(json.ok, true);
      assert.ok(json.anchors.length > 0);
      assert.ok(replica.gate.anchors?.readings.every(({ isDiverged }) => !isDiverged));
    }
    await assert.rejects(start(before.url()), (error) => {
      assert.ok(error instanceof Error);
      assert.match(error.message, new RegExp(`\\b\\d\\b.*\\bw1\\b.*\\b${rows}\\b`));
      // The number of rows differs from run to run.
      says("the ledger ends before the witness", error.message.replaceAll(/\b\d+\b/g, "ROW"));
      return true;
    });
  });
}
