/**
 * Goal: a gate does not start over files of the first key that it cannot read. Method: a folder with a first key, of which
 * one file is removed or becomes a folder.
 */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { loadFirstKey } from "../../../../../packages/gate/src/server/keys/keys.ts";
import { temporaryFolder } from "../../../../support/ledger-fixture.ts";

for (const name of ["first-key", "keys.json"])
  test(`a start fails if ${name} is there and cannot be read`, async (t) => {
    const folder = temporaryFolder(t);
    await loadFirstKey(folder, undefined);
    rmSync(join(folder, name));
    mkdirSync(join(folder, name));
    await assert.rejects(loadFirstKey(folder, undefined), { code: "EISDIR" });
  });

test("a start warns about a first-key with another key, but not about a missing one", async (t) => {
  const folder = temporaryFolder(t);
  const { digest } = await loadFirstKey(folder, undefined);
  const file = join(folder, "first-key");
  const key = readFileSync(file, "utf8");
  assert.equal((await loadFirstKey(folder, undefined)).warning, undefined);
  rmSync(file);
  const { warning, digest: kept } = await loadFirstKey(folder, undefined);
  assert.deepEqual([warning, kept], [undefined, digest]);
  writeFileSync(file, key.toUpperCase());
  assert.match((await loadFirstKey(folder, undefined)).warning ?? "", /is refused with 401/);
});
