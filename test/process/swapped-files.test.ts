/**
 * Goal: `svc-gate verify` and the next start report a swapped or removed file of a data folder. Method: a gate serves a
 * folder and stops; one file is changed; `verify` and the next start run. An untouched folder is the control.
 */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { makeSigningKey, writeSigningKeys } from "../../packages/gate/src/ledger/signing/mod.ts";
import { command } from "../support/command.ts";
import { control } from "../support/controls/control.ts";
import { desk, finish, spawnGate, temporaryFolder, writeContracts } from "../support/gate.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

interface Site {
  readonly cwd: string;
  readonly data: string;
  /** The first key of the first start. */
  readonly key: string;
}

interface Started {
  /** The banner's warnings, without their label. */
  readonly warnings: readonly string[];
  /** The status of a check with each of the keys. */
  readonly answers: readonly number[];
}

async function statusOf(address: string, key: string): Promise<number> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const body = JSON.stringify({ tool_name: "note.add", tool_input: {} });
  return (await fetch(`${address}/check`, { method: "POST", headers, body })).status;
}

/** Starts a gate, makes a check with each of the keys, and stops it. */
async function live(t: TestContext, cwd: string, keys: readonly string[], env = {}): Promise<Started> {
  const gate = await spawnGate(t, [], { cwd, env: { SVC_DATA_DIR: join(cwd, "data"), ...env } });
  const answers: number[] = [];
  for (const key of keys) answers.push(await statusOf(gate.address, key));
  // Pin and checkpoint follow soon; the stop brings them up to the last row.
  const trailing = ["head.pin", "checkpoint"].map((name) => join(cwd, "data", name));
  while (!trailing.every((file) => existsSync(file))) await wait(50);
  gate.kill("SIGTERM");
  assert.equal(await gate.exit, 0);
  const warnings = [...gate.stdout().matchAll(/^ *warning +(.+)$/gm)].map(([, warning = ""]) => warning);
  return { warnings, answers };
}

async function served(t: TestContext): Promise<Site> {
  const cwd = temporaryFolder(t);
  writeContracts(cwd, { contracts: { "desk.yaml": desk } });
  await live(t, cwd, []);
  const data = join(cwd, "data");
  const key = readFileSync(join(data, "first-key"), "utf8").trim();
  assert.deepEqual((await live(t, cwd, [key])).answers, [200]);
  return { cwd, data, key };
}

const verify = ({ data }: Site, ...options: string[]): ReturnType<typeof command> =>
  command(["verify", data, ...options]);

/** Compares the warnings of a start with the sentences of this name. */
function warns(name: string, { warnings }: Started): void {
  assert.ok(warnings.length > 0);
  says(name, warnings.join("\n"));
}

const other = "another-key-0123456789";

function swapKey({ data }: Site): void {
  const file = join(data, "keys.json");
  const digest = hash("sha256", other, "hex");
  writeFileSync(file, readFileSync(file, "utf8").replace(/[0-9a-f]{64}/, digest));
}

suite("swapped files in the data folder", { tags: ["attack-14"], concurrency: 2 }, () => {
  control(
    "positive control: verify and a start report nothing about an untouched folder",
    { tags: ["attack-14"] },
    async (t) => {
      const site = await served(t);
      const { code, stdout } = await verify(site);
      assert.equal(code, 0);
      says("verify: untouched", stdout);
      const json = JSON.parse((await verify(site, "--json")).stdout);
      assert.deepEqual([json.ok, json.changed, json.warnings], [true, undefined, undefined]);
      assert.deepEqual((await live(t, site.cwd, [site.key])).warnings, []);
    },
  );

  test(
    "a changed keys.json fails verify, and a start records it as a row and warns",
    { tags: ["attack-14"] },
    async (t) => {
      const site = await served(t);
      swapKey(site);
      const found = await verify(site);
      assert.equal(found.code, 1);
      says("verify: changed keys.json", found.stderr);
      const json = JSON.parse((await verify(site, "--json")).stdout);
      assert.deepEqual([json.ok, json.changed.length], [false, 1]);
      const started = await live(t, site.cwd, [site.key, other]);
      warns("start: another key in keys.json", started);
      assert.deepEqual(started.answers, [401, 200]);
      assert.equal((await verify(site)).code, 0, "a row says so now");
      const rows = (await command(["export", "-", "--format", "jsonl", "--data-dir", site.data])).stdout;
      assert.match(rows, /"act": ?"first-key\.change"/);
      assert.ok(
        !rows.includes(hash("sha256", other, "hex")),
        "the row holds no digest that a guess can be held against",
      );
      const again = await live(t, site.cwd, []);
      assert.deepEqual(again.warnings, started.warnings.slice(0, 1), "the gate warns once about the change");
    },
  );

  test(
    "verify reports a removed keys.json, and the next start records the new key as a row",
    { tags: ["attack-14"] },
    async (t) => {
      const site = await served(t);
      rmSync(join(site.data, "keys.json"));
      says("verify: removed keys.json", (await verify(site)).stderr);
      warns("start: a new key in keys.json", await live(t, site.cwd, []));
    },
  );

  test(
    "a start with another SVC_API_KEY is a row, and a start with the same key is not",
    { tags: ["attack-14"] },
    async (t) => {
      const site = await served(t);
      const before = await live(t, site.cwd, [], { SVC_API_KEY: site.key });
      assert.deepEqual(before.warnings, [], "the same key, named elsewhere");
      assert.equal((await verify(site)).code, 0);
      const started = await live(t, site.cwd, [], { SVC_API_KEY: other });
      warns("start: another SVC_API_KEY", started);
      const again = await live(t, site.cwd, [], { SVC_API_KEY: other });
      assert.deepEqual(again.warnings, started.warnings.slice(0, 1));
      assert.equal((await verify(site)).code, 0, "keys.json does not count while SVC_API_KEY is set");
    },
  );

  test("verify and the next start warn about a removed checkpoint", { tags: ["attack-14"] }, async (t) => {
    const site = await served(t);
    rmSync(join(site.data, "checkpoint"));
    const { code, stdout } = await verify(site);
    assert.equal(code, 0, "a restored backup has none either");
    says("verify: removed checkpoint", stdout);
    warns("start: removed checkpoint", await live(t, site.cwd, []));
    const json = JSON.parse((await verify(site, "--json")).stdout);
    assert.equal(json.warnings, undefined, "the gate has written it again");
  });

  test("a swapped signing.key fails verify and stops the next start", { tags: ["attack-14"] }, async (t) => {
    const site = await served(t);
    await writeSigningKeys(join(site.data, "signing.key"), { current: makeSigningKey(), before: undefined });
    rmSync(join(site.data, "checkpoint"));
    const { code, stderr } = await verify(site);
    assert.equal(code, 1);
    says("verify: swapped signing.key", stderr);
    const refused = await finish(t, ["serve", "--port", "0", "--data-dir", site.data], { cwd: site.cwd });
    assert.equal(refused.code, 1);
    says("start: swapped signing.key", refused.stderr.trimEnd());
  });
});
