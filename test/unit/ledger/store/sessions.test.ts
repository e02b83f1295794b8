/**
 * Goal: a search for a session finds the same rows in every block of the index. Method: sessions of several blocks are
 * read with random bounds and limits, and compared with a list that is filtered. Positive control: rows of one block
 * alone are not all rows.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { blockBits } from "../../../../packages/gate/src/ledger/store/sqlite/schema.ts";
import { openLedger, type Ledger } from "../../../../packages/gate/src/ledger/mod.ts";
import { contracts, engine, entry, sha256, temporaryFolder } from "../../../support/ledger-fixture.ts";
import { Chance } from "../../../support/model/chance.ts";

const block = 2 ** blockBits;
const rows = 3 * block - 1;
const names: readonly (string | null)[] = ["often", "often", "often", "rare", "é", null];

async function filled(folder: string, chance: Chance): Promise<readonly (string | null)[]> {
  const sessions: (string | null)[] = [];
  const ledger = await openLedger({ folder, engine });
  await ledger.keepContract(contracts[0]);
  while (sessions.length < rows) {
    const transaction = await ledger.begin();
    for (let left = Math.min(512, rows - sessions.length); left > 0; left -= 1) {
      const session = sessions.length % block > 7 ? chance.pick(names) : "edge";
      transaction.append(entry({ sessionId: session, contract: sha256(contracts[0]) }), []);
      sessions.push(session);
    }
    await transaction.commit();
  }
  await ledger.close();
  return sessions;
}

async function found(ledger: Ledger, query: Parameters<Ledger["rows"]["receipts"]>[0]): Promise<readonly number[]> {
  const seqs: number[] = [];
  for await (const slice of ledger.rows.receipts(query)) seqs.push(...slice.map(({ seq }) => seq));
  return seqs;
}

test("a search for a session finds its rows in every block of the index", async (t) => {
  const folder = temporaryFolder(t);
  const chance = new Chance(20_261_123);
  const sessions = await filled(folder, chance);
  const ledger = await openLedger({ folder, engine });
  t.after(() => ledger.close());
  const bounds = [1, 2, block - 1, block, block + 1, 2 * block, 2 * block + 1, rows, rows + 1, rows + 9];
  for (const session of ["often", "rare", "é", "edge", "none"]) {
    for (let round = 0; round < 12; round += 1) {
      const before = chance.often(0.5) ? chance.pick(bounds) : chance.whole(1, rows + 1);
      const limit = chance.pick([1, 3, 100, 1000]);
      const expected = sessions
        .map((each, at) => ({ each, seq: at + 1 }))
        .filter(({ each, seq }) => each === session && seq < before)
        .map(({ seq }) => seq)
        .toReversed()
        .slice(0, limit);
      assert.deepEqual(await found(ledger, { before, limit, session }), expected, `${session}, ${before}, ${limit}`);
    }
  }
  const edges = await found(ledger, { before: rows + 1, limit: 1000, session: "edge" });
  assert.deepEqual(
    new Set(edges.map((seq) => (seq - 1) >> blockBits)).size,
    3,
    "positive control: three blocks have it",
  );
});
