/**
 * Goal: only their owner can use the files of a data folder, whatever the folder's mode and the umask are. Method: a
 * gate with a tenant serves from a folder of mode 755. It answers calls, makes a key, and is backed up, restored and
 * exported; then the test reads each file's mode.
 */
import assert from "node:assert/strict";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join, relative } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { engine, makeSample } from "../support/ledger-fixture.ts";
import { finish, spawnGate, temporaryFolder } from "../support/gate.ts";
import { openLedger } from "../../packages/gate/src/ledger/mod.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

function filesIn(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(folder, join(parentPath, name)))
    .toSorted();
}

/** Returns each file below a folder that other users may use, with its mode. */
function openFiles(folder: string): readonly string[] {
  return filesIn(folder)
    .filter((file) => modeOf(join(folder, file)) !== "600")
    .map((file) => `${file} ${modeOf(join(folder, file))}`);
}

/** Sets the umask of child processes until the test ends. */
function setUmask(t: TestContext, umask: number): void {
  const before = process.umask(umask);
  t.after(() => process.umask(before));
}

const contract =
  "contract: c\ntools: { note.add: { input: { type: object, additionalProperties: true }, otherwise: ALLOW } }\n";
const ofLedger = [
  "checkpoint",
  "head.pin",
  "ledger.db",
  "ledger.db-shm",
  "ledger.db-wal",
  "owner.lock",
  "owner.lock-journal",
  "signing.key",
];

suite("the files of a data folder", { tags: ["attack-11"], skip: process.platform === "win32" }, () => {
  for (const umask of [0o022, 0o000]) {
    test(
      `only the owner can use each file in a folder of mode 755 under umask ${umask.toString(8)}`,
      { tags: ["attack-11"] },
      async (t) => {
        const folder = temporaryFolder(t);
        setUmask(t, umask);
        const data = join(folder, "data");
        mkdirSync(data);
        chmodSync(data, 0o755);
        writeFileSync(join(folder, "mandate.yaml"), "mandate: m\ncontracts: [c.yaml]\n");
        writeFileSync(join(folder, "c.yaml"), contract);
        writeFileSync(join(folder, "tenants.yaml"), "tenants:\n  acme: { mandate: mandate.yaml }\n");
        const run = { cwd: folder, env: { SVC_DATA_DIR: data, SVC_TENANTS: join(folder, "tenants.yaml") } };
        const gate = await spawnGate(t, [], run);
        const done = async (...args: string[]): Promise<string> => {
          const { code, stdout, stderr } = await finish(t, args, run);
          assert.equal(code, 0, stderr);
          return stdout.trim();
        };
        const assertAnswered = async (path: string, key: string): Promise<void> => {
          const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
          const body = JSON.stringify({ tool_name: "note.add", tool_input: {} });
          assert.equal((await fetch(gate.address + path, { method: "POST", headers, body })).status, 200);
        };
        await assertAnswered("/check", readFileSync(join(data, "first-key"), "utf8").trim());
        await assertAnswered("/t/acme/check", await done("keys", "create", "agent", "--tenant", "acme", "--quiet"));
        // Pin and checkpoint follow soon.
        const trailing = [data, join(data, "tenants", "acme")].flatMap((of) => [
          join(of, "head.pin"),
          join(of, "checkpoint"),
        ]);
        while (!trailing.every((file) => existsSync(file))) await wait(50);
        await done("backup", join(folder, "backup"), "--with-signing-key");
        const ofRoot = [...ofLedger, "first-key", "keys.json", "operator.json"];
        const expected = [...ofRoot, ...ofLedger.map((name) => join("tenants", "acme", name))].toSorted();
        assert.deepEqual([filesIn(data), openFiles(data)], [expected, []]);
        assert.deepEqual([modeOf(join(data, "tenants")), modeOf(join(data, "tenants", "acme"))], ["700", "700"]);
        const [warning = ""] = gate
          .stderr()
          .split("\n")
          .filter((line) => line.startsWith('{"level":40,'));
        says("a folder that others can open", (JSON.parse(warning) as { readonly msg: string }).msg);
        gate.kill("SIGTERM");
        assert.equal(await gate.exit, 0);
        assert.deepEqual([openFiles(data), modeOf(data)], [[], "755"], "after the stop; the folder is its operator's");
        await done("export", join(folder, "export"));
        assert.deepEqual(openFiles(join(folder, "backup")), []);
        chmodSync(join(folder, "backup", "ledger.db"), 0o644);
        await done("restore", join(folder, "backup"), "--data-dir", join(folder, "restored"));
        assert.deepEqual(openFiles(join(folder, "restored")), []);
        assert.deepEqual(openFiles(join(folder, "export")), []);
        assert.deepEqual(
          openFiles(join(folder, "backup")),
          ["ledger.db 644"],
          "positive control: an open file is seen",
        );
      },
    );
  }

  test(
    "the next start sets mode 600 on its files that others could open, but not on other files",
    { tags: ["attack-11"] },
    async (t) => {
      const folder = temporaryFolder(t);
      await makeSample(folder);
      const others = ["mandate.yaml", "notes.txt", "checkpoint.txt"];
      for (const name of [...others, "first-key"]) writeFileSync(join(folder, name), "");
      symlinkSync(join(folder, "notes.txt"), join(folder, "keys.json"));
      const ours = ["ledger.db", "owner.lock", "head.pin", "checkpoint", "first-key"];
      for (const name of [...ours, ...others]) chmodSync(join(folder, name), 0o644);
      const ledger = await openLedger({ folder, engine });
      try {
        assert.deepEqual(
          openFiles(folder),
          others.toSorted().map((name) => `${name} 644`),
          "and nothing behind a link",
        );
        assert.deepEqual(ledger.warnings.length, 1);
        says("files that others could open", ledger.warnings[0] ?? "");
      } finally {
        await ledger.close();
      }
      const again = await openLedger({ folder, engine });
      assert.deepEqual(again.warnings, [], "and nothing is said of a folder that is in order");
      await again.close();
    },
  );
});
