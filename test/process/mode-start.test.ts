/**
 * Goal: no start weakens the mode by accident [first-use 2, 4, 5], and a failed start leaves nothing behind [first-use
 * 16]. Method: gates run as processes on one data folder; the test reads their banners and receipts.
 */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, test, type TestContext } from "node:test";
import {
  ask,
  desk,
  key,
  runCommand,
  spawnGate,
  temporaryFolder,
  writeContracts,
  type Spawned,
} from "../support/gate.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

interface Setup {
  readonly folder: string;
  readonly mandate: string;
}

function newSetup(t: TestContext): Setup {
  const folder = temporaryFolder(t);
  return { folder, mandate: writeContracts(folder, { contracts: { "desk.yaml": desk } }) };
}

type Settings = Readonly<Record<string, string>>;

function start(t: TestContext, setup: Setup, settings: Settings = {}, args: readonly string[] = []): Promise<Spawned> {
  const env = { SVC_API_KEY: key, SVC_MANDATE: setup.mandate, SVC_DATA_DIR: join(setup.folder, "data"), ...settings };
  return spawnGate(t, args, { cwd: setup.folder, env });
}

/** Serves once; returns the banner, the health answer and the change rows. */
async function serveOnce(
  t: TestContext,
  setup: Setup,
  settings?: Settings,
  args?: readonly string[],
): Promise<{ readonly banner: string; readonly mode: string; readonly changes: readonly unknown[] }> {
  const gate = await start(t, setup, settings, args);
  const { mode } = (await ask(gate, "/health")).json;
  // the same words as in the alert about a softened mode
  const rows = (await ask(gate, "/receipts?act=reload")).json.receipts ?? [];
  gate.kill("SIGTERM");
  await gate.exit;
  const changes = rows.map(({ reason }: Record<string, unknown>) => reason);
  return { banner: gate.stdout(), mode, changes };
}

function lineWith(text: string, sign: RegExp): string {
  return (
    text
      .split("\n")
      .find((line) => sign.test(line))
      ?.trim() ?? text
  );
}

suite("the mode at a start", () => {
  test(
    "a start without SVC_MODE keeps the stored mode, and a new ledger observes without a row",
    { tags: ["first-use-5", "mode.new-gate-observes"] },
    async (t) => {
      const setup = newSetup(t);
      const first = await serveOnce(t, setup);
      assert.deepEqual([first.mode, first.changes], ["observe", []]);
      const enforced = await serveOnce(t, setup, { SVC_MODE: "enforce" });
      assert.equal(enforced.mode, "enforce");
      says("the banner of a mode that SVC_MODE changed", lineWith(enforced.banner, /\brow 1\b/));
      const later = await serveOnce(t, setup);
      assert.equal(later.mode, "enforce");
      assert.doesNotMatch(later.banner, /changed/);
    },
  );

  test("the gate keeps the mode of a first start that wrote no row", { tags: ["first-use-5"] }, async (t) => {
    const setup = newSetup(t);
    const first = await serveOnce(t, setup, { SVC_MODE: "enforce" });
    assert.deepEqual([first.mode, first.changes], ["enforce", []]);
    assert.equal((await serveOnce(t, setup)).mode, "enforce");
  });

  test("the mode is stored beside the rows only until there is a row", { tags: ["first-use-5"] }, async (t) => {
    const setup = newSetup(t);
    const described = (): readonly unknown[] => {
      const file = new DatabaseSync(join(setup.folder, "data", "ledger.db"), { readOnly: true });
      const names = file.prepare("SELECT name FROM meta ORDER BY name").all();
      file.close();
      return names.map(({ name }) => name);
    };
    const before = ["check", "counter_secret", "first_key", "layout", "log", "signer"];
    await serveOnce(t, setup, { SVC_MODE: "assist" });
    assert.deepEqual(described(), [...before, "mode"].toSorted(), "positive control: without rows it must lie there");
    await serveOnce(t, setup, { SVC_MODE: "enforce" });
    assert.deepEqual(described(), before);
    assert.equal((await serveOnce(t, setup)).mode, "enforce");
    assert.deepEqual(described(), before, "nor does a plain start bring it back");
  });

  test(
    "a start that weakens the mode records a row, and the banner names the setting",
    { tags: ["first-use-4"] },
    async (t) => {
      const setup = newSetup(t);
      await serveOnce(t, setup, { SVC_MODE: "enforce" });
      const softened = await serveOnce(t, setup, {}, ["--mode", "observe"]);
      assert.equal(softened.mode, "observe");
      says("the banner of a mode that --mode changed", lineWith(softened.banner, /\brow 1\b/));
      says("the warning of a weaker mode", lineWith(softened.banner, /^ {2}warning {3}(?!.*\brow 1\b).*--mode/));
      assert.equal(softened.changes.length, 1);
      says("the row of a weaker mode", String(softened.changes[0]));
      const again = await serveOnce(t, setup, { SVC_MODE: "observe" });
      assert.equal(again.changes.length, 1, "setting the same mode again is not a change");
    },
  );

  test("the banner repeats every warning of the start", { tags: ["first-use-25"] }, async (t) => {
    const setup = newSetup(t);
    const { banner } = await serveOnce(t, setup, { SVC_API_KEY: "short", SVC_LOG: "silent", SVC_PROT: "1" });
    says("the warning of a short key", lineWith(banner, /^ {2}warning {3}SVC_API_KEY/));
    assert.match(banner, /^ {2}warning {3}SVC_PROT is set/m);
    assert.doesNotMatch((await serveOnce(t, newSetup(t))).banner, /warning/);
  });
});

suite("a start that fails", { tags: ["first-use-16"] }, () => {
  test("a start leaves no data folder if its port is in use", async (t) => {
    const setup = newSetup(t);
    const other = createServer().listen(0, "127.0.0.1");
    t.after(() => other.close());
    await once(other, "listening");
    const port = String((other.address() as { readonly port: number }).port);
    for (const variable of ["SVC_PORT", "SVC_OPS_PORT"]) {
      const failed = runCommand(t, ["serve"], { env: { ...failing(setup), SVC_PORT: "0", [variable]: port } });
      assert.equal(await failed.exit, 1);
      says(`the port of ${variable} is in use`, lineWith(failed.stderr(), /^svc-gate: /), { PORT: port });
      assert.equal(existsSync(join(setup.folder, "data")), false, variable);
    }
    await serveOnce(t, setup);
    assert.ok(readdirSync(join(setup.folder, "data")).includes("signing.key"), "positive control: a start makes it");
  });

  test("a start leaves no data folder if two listeners share a port or the key is unusable", async (t) => {
    const setup = newSetup(t);
    const free = createServer().listen(0, "127.0.0.1");
    await once(free, "listening");
    const port = String((free.address() as { readonly port: number }).port);
    free.close();
    await once(free, "close");
    const unusable = join(setup.folder, "unusable.key");
    writeFileSync(unusable, "no key", { mode: 0o600 });
    const wrongs: readonly (readonly [Settings, string])[] = [
      [{ SVC_PORT: port, SVC_OPS_PORT: port }, "two listeners share a port"],
      [{ SVC_PORT: "0", SVC_SIGNING_KEY: unusable }, "an unusable signing key"],
    ];
    for (const [wrong, sentence] of wrongs) {
      const failed = runCommand(t, ["serve"], { env: { ...failing(setup), ...wrong } });
      assert.equal(await failed.exit, 1);
      says(sentence, lineWith(failed.stderr(), /^svc-gate: /), { PORT: port });
      assert.equal(existsSync(join(setup.folder, "data")), false, sentence);
    }
    await serveOnce(t, setup, { SVC_OPS_PORT: "0" });
    assert.ok(readdirSync(join(setup.folder, "data")).includes("ledger.db"), "positive control: a start makes it");
  });

  test("a start leaves no ledger if keys.json is damaged", async (t) => {
    const setup = newSetup(t);
    const data = join(setup.folder, "data");
    mkdirSync(data, { mode: 0o700 });
    writeFileSync(join(data, "keys.json"), "{}", { mode: 0o600 });
    const { SVC_API_KEY: _none, ...env } = failing(setup);
    const failed = runCommand(t, ["serve"], { env: { ...env, SVC_PORT: "0" } });
    assert.equal(await failed.exit, 1);
    assert.match(failed.stderr(), /keys\.json is damaged/);
    assert.deepEqual(readdirSync(data), ["keys.json"]);
  });

  test("a failed start does not change the stored mode", async (t) => {
    const setup = newSetup(t);
    await serveOnce(t, setup, { SVC_MODE: "enforce" });
    const broken = join(setup.folder, "broken.yaml");
    writeFileSync(broken, "contract: [");
    // The ledger is already open when the write of the pin fails.
    for (const wrong of [{ SVC_MANDATE: broken }, { SVC_PIN: join(broken, "pin") }]) {
      const failed = runCommand(t, ["serve"], {
        env: { ...failing(setup), SVC_PORT: "0", SVC_MODE: "observe", ...wrong },
      });
      assert.notEqual(await failed.exit, 0);
    }
    const kept = await serveOnce(t, setup);
    assert.deepEqual([kept.mode, kept.changes], ["enforce", []]);
  });
});

function failing({ folder, mandate }: Setup): Settings {
  return { SVC_API_KEY: key, SVC_MANDATE: mandate, SVC_DATA_DIR: join(folder, "data") };
}
