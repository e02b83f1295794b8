/**
 * Goal: a file of a data folder that somebody swaps or removes is reported by `svc-gate verify` and at a start. Method: a gate
 * serves a folder and stops; one file is changed; `verify` and the next start look at it. An untouched folder is the control.
 */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { makeSigningKey, writeSigningKeys } from "../../packages/svc-gate/src/ledger/tree/mod.ts";
import { finish, spawnGate, temporaryFolder } from "../support/gate.ts";

interface Site {
  readonly cwd: string;
  readonly data: string;
  /** The first key of the first start. */
  readonly key: string;
}

interface Started {
  readonly banner: string;
  readonly log: string;
  /** The status of a check with each of the keys. */
  readonly answers: readonly number[];
}

async function statusOf(address: string, key: string): Promise<number> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const body = JSON.stringify({ tool_name: "note.add", tool_input: {} });
  return (await fetch(`${address}/check`, { method: "POST", headers, body })).status;
}

/** One life of a gate: it starts, is asked with each of the keys, and stops. */
async function live(t: TestContext, cwd: string, keys: readonly string[], env = {}): Promise<Started> {
  const gate = await spawnGate(t, [], { cwd, env: { SVC_DATA_DIR: join(cwd, "data"), ...env } });
  const answers: number[] = [];
  for (const key of keys) answers.push(await statusOf(gate.address, key));
  await wait(1200); // Pin and checkpoint follow within a second.
  gate.kill("SIGTERM");
  assert.equal(await gate.exit, 0);
  return { banner: gate.stdout(), log: gate.stderr(), answers };
}

async function served(t: TestContext): Promise<Site> {
  const cwd = temporaryFolder(t);
  await live(t, cwd, []);
  const data = join(cwd, "data");
  const key = readFileSync(join(data, "first-key"), "utf8").trim();
  assert.deepEqual((await live(t, cwd, [key])).answers, [200]);
  return { cwd, data, key };
}

const verify = (t: TestContext, { cwd, data }: Site, ...options: string[]): ReturnType<typeof finish> =>
  finish(t, ["verify", data, ...options], { cwd });

const other = "another-key-0123456789";

function swapKey({ data }: Site): void {
  const file = join(data, "keys.json");
  const digest = hash("sha256", other, "hex");
  writeFileSync(file, readFileSync(file, "utf8").replace(/[0-9a-f]{64}/, digest));
}

suite("swapped files in the data folder", { tags: ["attack-14"], concurrency: 2 }, () => {
  test(
    "positive control: verify and a start report nothing about an untouched folder",
    { tags: ["attack-14"] },
    async (t) => {
      const site = await served(t);
      const { code, stdout } = await verify(t, site);
      assert.equal(code, 0);
      assert.match(stdout, /^ok: 1 rows, chain and evidence verified\n/);
      assert.doesNotMatch(stdout, /changed|warning/);
      const json = JSON.parse((await verify(t, site, "--json")).stdout);
      assert.deepEqual([json.ok, json.changed, json.warnings], [true, undefined, undefined]);
      const { banner } = await live(t, site.cwd, [site.key]);
      assert.doesNotMatch(banner, /another one than at the last start|is not there/);
    },
  );

  test(
    "a changed keys.json fails verify, and a start records it as a row and warns",
    { tags: ["attack-14"] },
    async (t) => {
      const site = await served(t);
      swapKey(site);
      const found = await verify(t, site);
      assert.equal(found.code, 1);
      assert.match(
        found.stderr,
        /^CHANGED beside the ledger: 1 rows[^]*\n {2}changed {2}.+keys\.json holds another key `default`/,
      );
      assert.equal(JSON.parse((await verify(t, site, "--json")).stdout).ok, false);
      const { banner, answers } = await live(t, site.cwd, [site.key, other]);
      assert.match(
        banner,
        /warning +the key `default` is another one than at the last start \(from keys\.json\); row 2 records it/,
      );
      assert.deepEqual(answers, [401, 200]);
      assert.equal((await verify(t, site)).code, 0, "a row says so now");
      const rows = (await finish(t, ["export", "-", "--format", "jsonl", "--data-dir", site.data], { cwd: site.cwd }))
        .stdout;
      assert.match(rows, /"act": ?"first-key\.change"/);
      assert.ok(
        !rows.includes(hash("sha256", other, "hex")),
        "the row holds no digest that a guess can be held against",
      );
      assert.doesNotMatch((await live(t, site.cwd, [])).banner, /another one than/, "it is said once");
    },
  );

  test(
    "verify reports a removed keys.json, and the next start records the new key as a row",
    { tags: ["attack-14"] },
    async (t) => {
      const site = await served(t);
      rmSync(join(site.data, "keys.json"));
      assert.match((await verify(t, site)).stderr, /keys\.json is gone, so the next start makes another key `default`/);
      assert.match(
        (await live(t, site.cwd, [])).banner,
        /is another one than at the last start \(from keys\.json\); row 2 records it/,
      );
    },
  );

  test(
    "a start with another SVC_API_KEY is a row, and a start with the same key is not",
    { tags: ["attack-14"] },
    async (t) => {
      const site = await served(t);
      const before = await live(t, site.cwd, [], { SVC_API_KEY: site.key });
      assert.doesNotMatch(before.banner, /another one than/, "the same key, named elsewhere");
      assert.equal((await verify(t, site)).code, 0);
      const { banner } = await live(t, site.cwd, [other], { SVC_API_KEY: other });
      assert.match(banner, /is another one than at the last start \(from SVC_API_KEY\); row 2 records it/);
      const again = await live(t, site.cwd, [], { SVC_API_KEY: other });
      assert.doesNotMatch(again.banner, /another one than/);
      assert.equal((await verify(t, site)).code, 0, "keys.json does not count while SVC_API_KEY is set");
    },
  );

  test("verify and the next start warn about a removed checkpoint", { tags: ["attack-14"] }, async (t) => {
    const site = await served(t);
    rmSync(join(site.data, "checkpoint"));
    const { code, stdout } = await verify(t, site);
    assert.equal(code, 0, "a restored backup has none either");
    assert.match(stdout, /\n {2}warning {2}the signed checkpoint .+checkpoint is not there/);
    assert.match((await live(t, site.cwd, [])).banner, /warning +the signed checkpoint .+ is not there/);
    assert.doesNotMatch((await verify(t, site)).stdout, /warning/, "the gate has written it again");
  });

  test("a swapped signing.key fails verify and stops the next start", { tags: ["attack-14"] }, async (t) => {
    const site = await served(t);
    await writeSigningKeys(join(site.data, "signing.key"), { current: makeSigningKey(), before: undefined });
    rmSync(join(site.data, "checkpoint"));
    const { code, stderr } = await verify(t, site);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /\n {2}changed {2}.+signing\.key is not the key on record: it holds .+ signs the ledger's heads/,
    );
    const refused = await finish(t, ["serve", "--port", "0", "--data-dir", site.data], { cwd: site.cwd });
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /the ledger's heads are signed by the key/);
  });
});
