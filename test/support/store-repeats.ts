import assert from "node:assert/strict";
import { test } from "node:test";
import type { StoredRepeat } from "../../packages/core/src/record/entry/repeat.ts";
import { repeatsDeletedMax } from "../../packages/gate/src/ledger/store/store.ts";
import { limits } from "../../packages/core/src/wire/mod.ts";
import { sha256, temporaryFolder } from "./ledger-fixture.ts";
import type { Engine } from "./store-suite.ts";

/** Tests the promises of a storage engine about recorded answers. */
export function storeRepeats(name: string, { open }: Pick<Engine, "open">): void {
  test(`${name}: a commit deletes recorded answers that are too old for a repeat, the oldest first, and only so many`, async (t) => {
    const store = await open(temporaryFolder(t));
    t.after(() => store.close());
    const repeat = (at: number): StoredRepeat => ({ id: sha256(`repeat ${at}`), at, record: "r" });
    const times = Array.from({ length: 1100 }, (_, at) => at);
    const keep = async (seq: number, repeats: readonly StoredRepeat[]): Promise<readonly number[]> => {
      const row = { seq, leaf: `leaf ${seq}`, evidence: "e", session: null, tool: "t", verdict: "ALLOW" };
      await (await store.begin()).commit([row], [], { repeats });
      const transaction = await store.begin();
      const ids = [...times, ...repeats.map(({ at }) => at)].map((at) => repeat(at).id);
      const found = await transaction.tables.where("repeats", "id", ids);
      await transaction.abort();
      return [...new Set(found.map(({ at }) => at))].toSorted((a, b) => a - b);
    };
    assert.deepEqual(await keep(1, times.map(repeat)), times);
    const last = limits.repeatWithinMs + 1090;
    assert.deepEqual(await keep(2, [repeat(last)]), [...times.slice(repeatsDeletedMax), last]);
    assert.deepEqual(await keep(3, [repeat(last + 1)]), [...times.slice(1091), last + 1]);
  });
}
