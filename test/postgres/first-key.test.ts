/**
 * Goal: a database gets its first key from `svc-gate migrate --first-key`, in a file that only its owner can read, and
 * nowhere else. Method: the program on the run's PostgreSQL, with a new database for each case. A key is good if a
 * gate on that database, without SVC_API_KEY, answers a check with it.
 */
import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, suite, test, type TestContext } from "node:test";
import { makeKey } from "../../packages/gate/src/server/keys/token.ts";
import { sentencesOf } from "../support/sentences.ts";
import { command } from "../support/command.ts";
import { empty, sharedPostgres, type Databases } from "../support/databases.ts";
import { check, key as configuredKey, spawnGate, temporaryFolder } from "../support/gate.ts";

const says = sentencesOf(import.meta.filename);

const server = await sharedPostgres({ after });

if (typeof server === "string") test("PostgreSQL: the first key", { skip: server }, () => undefined);
else suite("svc-gate migrate --first-key", { tags: ["first-use-3"] }, () => cases(server));

interface Setup {
  readonly folder: string;
  readonly file: string;
  /** The URL for the role that owns the database and is not a superuser. */
  readonly env: Readonly<Record<string, string>>;
}

async function newSetup(t: TestContext, there: Databases): Promise<Setup> {
  const { name, url, run } = await there.create(empty);
  await run(`CREATE ROLE ${name} LOGIN PASSWORD 'secret'`);
  await run(`ALTER DATABASE ${name} OWNER TO ${name}`);
  const folder = temporaryFolder(t);
  const env = { SVC_DATABASE_URL: url({ user: name, password: "secret" }), SVC_DATA_DIR: folder, SVC_LOG: "silent" };
  return { folder, file: join(folder, "first-key"), env };
}

interface Run {
  readonly code: number | string;
  readonly said: string;
}

/** Runs the command; no run may print a key. */
async function migrate({ file, env }: Setup, more: Readonly<Record<string, string>> = {}): Promise<Run> {
  const { code, stdout, stderr } = await command(["migrate", "--first-key", file], { env: { ...env, ...more } });
  assert.deepEqual(keysIn(stdout + stderr), []);
  return { code, said: stdout + stderr };
}

function keysIn(text: string): readonly string[] {
  return text.match(/svcg_[0-9A-Za-z]+/g) ?? [];
}

/** Returns the answer of a gate without SVC_API_KEY to a check with each key. */
async function statusesOf(t: TestContext, { folder, env }: Setup, ...keys: readonly string[]): Promise<number[]> {
  const gate = await spawnGate(t, [], { cwd: folder, env });
  const statuses: number[] = [];
  for (const each of keys) {
    const answer = await check(gate, { tool_name: "a", tool_input: {} }, { authorization: `Bearer ${each}` });
    statuses.push(answer.status);
  }
  gate.kill("SIGTERM");
  assert.equal(await gate.exit, 0, gate.stderr());
  return statuses;
}

const lastLine = (text: string): string => text.trimEnd().split("\n").at(-1) ?? "";

const textIn = (file: string): string => readFileSync(file, "utf8").trim();

function cases(there: Databases): void {
  test("the key is in a file of mode 0600, opens /check, and is never printed or recorded", async (t) => {
    const setup = await newSetup(t, there);
    const { code, said } = await migrate(setup);
    assert.equal(code, 0, said);
    says("the first key is written", lastLine(said));
    if (process.platform !== "win32") assert.equal(statSync(setup.file).mode & 0o777, 0o600);
    const key = textIn(setup.file);
    assert.deepEqual(keysIn(`${key}\n`), [key], "positive control: a printed key would be found");
    assert.deepEqual(await statusesOf(t, setup, key, makeKey()), [200, 401]);
    const exported = await command(["export", "-", "--database", "--format", "jsonl"], { env: setup.env });
    assert.match(exported.stdout, /"tool":"a"/, exported.stderr);
    assert.deepEqual(keysIn(exported.stdout), []);
  });

  test("the row of the first key does not decide the contract and mode in force", async (t) => {
    const setup = await newSetup(t, there);
    await migrate(setup);
    writeFileSync(
      join(setup.folder, "mandate.yaml"),
      "contract: only\ntools:\n  a: { input: { type: object, additionalProperties: true }, otherwise: BLOCK }\n",
    );
    const gate = await spawnGate(t, [], { cwd: setup.folder, env: { ...setup.env, SVC_MODE: "enforce" } });
    const headers = { authorization: `Bearer ${textIn(setup.file)}` };
    const { json } = await check(gate, { tool_name: "a", tool_input: {} }, headers);
    assert.deepEqual([json.verdict, json.mode], ["BLOCK", "enforce"]);
    assert.doesNotMatch(json.reason, /no contract/);
    gate.kill("SIGTERM");
    await gate.exit;
  });

  test("a second run changes nothing, for the same file and for another one", async (t) => {
    const setup = await newSetup(t, there);
    await migrate(setup);
    const before = textIn(setup.file);
    const again = await migrate(setup);
    assert.deepEqual([again.code, textIn(setup.file)], [0, before]);
    says("there is a key already", lastLine(again.said));
    const elsewhere = { ...setup, file: join(setup.folder, "another") };
    assert.equal((await migrate(elsewhere)).code, 0);
    assert.ok(!existsSync(elsewhere.file));
  });

  test("if SVC_API_KEY is set, it is the first key and no file is written", async (t) => {
    const setup = await newSetup(t, there);
    const { code, said } = await migrate(setup, { SVC_API_KEY: configuredKey });
    assert.equal(code, 0, said);
    says("the configured key is the first", lastLine(said));
    assert.ok(!existsSync(setup.file) && !existsSync(join(setup.folder, "signing.key")));
    assert.equal((await migrate(setup, { SVC_API_KEY: "" })).code, 0, "an empty variable is none");
    assert.deepEqual(await statusesOf(t, setup, textIn(setup.file)), [200]);
  });

  for (const [title, names] of [
    ["one file", ["first-key", "first-key", "first-key"]],
    ["files of their own", ["one", "two", "three"]],
  ] as const)
    test(`runs that start together with ${title} make one key`, async (t) => {
      const setup = await newSetup(t, there);
      const setups = names.map((name) => ({ ...setup, file: join(setup.folder, name) }));
      const runs = await Promise.all(setups.map((each) => migrate(each)));
      for (const { code, said } of runs) assert.equal(code, 0, said);
      assert.equal(runs.filter(({ said }) => said.includes("row 1 of the ledger")).length, 1);
      const files = [...new Set(setups.map(({ file }) => file))].filter((file) => existsSync(file));
      assert.equal(files.length, 1, "the others left no file");
      assert.deepEqual(await statusesOf(t, setup, textIn(files[0] ?? "")), [200]);
    });

  test("the next run finishes a run that was interrupted between the file and the row", async (t) => {
    const setup = await newSetup(t, there);
    const left = makeKey();
    writeFileSync(setup.file, `${left}\n`, { mode: 0o600 });
    const { code, said } = await migrate(setup);
    assert.equal(code, 0, said);
    assert.equal(textIn(setup.file), left);
    assert.deepEqual(await statusesOf(t, setup, left), [200]);
  });

  test("a file with other content, or that others can read, is refused and not changed", async (t) => {
    const setup = await newSetup(t, there);
    for (const [text, mode, sentence] of [
      ["", 0o600, "a file without a key"],
      ["notes", 0o600, "a file without a key"],
      [makeKey(), 0o644, "a file that others can read"],
    ] as const) {
      if (mode !== 0o600 && process.platform === "win32") continue;
      writeFileSync(setup.file, text);
      chmodSync(setup.file, mode);
      const { code, said } = await migrate(setup);
      assert.equal(code, 2, said);
      says(sentence, lastLine(said));
      assert.equal(readFileSync(setup.file, "utf8"), text);
      assert.ok(!existsSync(join(setup.folder, "signing.key")), "a run that is refused leaves no signing key");
    }
    const nowhere = { ...setup, file: join(setup.folder, "nowhere", "first-key") };
    says("no such folder", lastLine((await migrate(nowhere)).said));
    mkdirSync(join(setup.folder, "nowhere"));
    assert.equal((await migrate(nowhere)).code, 0, "positive control: with the folder it can");
    assert.ok(existsSync(join(setup.folder, "signing.key")), "positive control: a run that is not refused makes one");
    assert.equal((await migrate(setup)).code, 0, "with a key in the database, that file does not matter");
  });

  test("if every key is revoked, the error names the command that makes another", async (t) => {
    const setup = await newSetup(t, there);
    await migrate(setup);
    const revoked = await command(["keys", "revoke", "first"], { env: setup.env });
    assert.equal(revoked.code, 0, revoked.stderr);
    const { code, said } = await migrate({ ...setup, file: join(setup.folder, "another") });
    assert.equal(code, 2);
    says("every key is revoked", lastLine(said));
  });
}
