/**
 * Goal: the console is only where keys cannot be read on the way, and its secrets are in no log and in no open file.
 * Method: a table of settings, and a process that writes its most detailed log. UPDATE_GOLDEN=1 rewrites the sentences.
 */
import assert from "node:assert/strict";
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readConfig } from "../../packages/gate/src/server/start/config.ts";
import { noConsole } from "../../packages/gate/src/server/start/console-settings.ts";
import { sendPlain, signIn, trySignIn } from "../support/console.ts";
import { ask, desk, key, spawnGate, temporaryFolder, writeContracts, type Spawned } from "../support/gate.ts";
import { eventually } from "../support/patience.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const database = { SVC_DATABASE_URL: "postgres://db/gate" };
const secret = { SVC_CONSOLE_SECRET: "s".repeat(32) };
const everywhere = { SVC_HOST: "0.0.0.0" };
const on = { SVC_CONSOLE: "on" };

/** Settings, and whether the gate then serves the console; a name stands for the sentence of a refusal. */
const starts: readonly (readonly [environment: Record<string, string>, serves: boolean | string])[] = [
  [{}, true],
  [{ SVC_CONSOLE: "off" }, false],
  [{ SVC_HOST: "::1" }, true],
  [{ SVC_HOST: "localhost" }, true],
  [everywhere, false],
  [{ ...everywhere, SVC_PUBLIC_URL: "https://gate.example" }, false],
  [{ ...everywhere, ...on }, "on-without-tls"],
  [{ ...everywhere, ...on, SVC_PUBLIC_URL: "http://gate.example" }, "on-under-plain-http"],
  [{ ...on, SVC_PUBLIC_URL: "http://gate.example" }, "on-under-plain-http"],
  [{ ...on, SVC_PUBLIC_URL: "http://localhost:9000" }, true],
  [{ ...everywhere, ...on, SVC_PUBLIC_URL: "https://gate.example" }, true],
  [database, false],
  [{ ...database, ...secret }, true],
  [{ ...database, ...on }, "on-with-a-database"],
  [{ ...database, ...on, ...secret }, true],
  [{ ...on, SVC_CONSOLE_SECRET: "guessed" }, "short-secret"],
];

test("the gate serves the console on loopback, and elsewhere only if asked and over https", () => {
  for (const [environment, serves] of starts) {
    const configured = readConfig(environment, {});
    const shown = JSON.stringify(environment);
    if (typeof serves === "boolean") {
      assert.ok(configured.ok, shown);
      assert.equal(noConsole(configured.value.config) === undefined, serves, shown);
    } else {
      assert.ok(!configured.ok, shown);
      says(serves, configured.problem.join("\n"));
    }
  }
  const asFlag = readConfig({}, { "console-secret": "s".repeat(32) });
  assert.ok(!asFlag.ok);
  says("secret-as-an-argument", asFlag.problem.join("\n"));
});

test("a gate without the console has none of its paths", async (t) => {
  const folder = temporaryFolder(t);
  writeContracts(folder, { contracts: { "desk.yaml": desk } });
  const gate = await spawnGate(t, [], { cwd: folder, env: { SVC_API_KEY: key, SVC_CONSOLE: "off" } });
  assert.doesNotMatch(gate.stdout(), /console/);
  for (const path of ["/console", "/console/session", "/console/api/receipts", "/console/assets/0/x.js"])
    assert.equal((await ask(gate, path)).status, 404, path);
  assert.equal((await trySignIn(gate, key)).status, 401);
});

/** The code that a gate shows to the first person who signs in. Its output can arrive after its answer. */
function shownCode(gate: Pick<Spawned, "stdout">): Promise<string> {
  return eventually("a code is shown", () => /sign in to the console: (\S+)\s/.exec(gate.stdout())?.[1]);
}

test("keys, cookies and secrets of sessions are in no log, and the secret is in a private file", async (t) => {
  const folder = temporaryFolder(t);
  writeContracts(folder, { contracts: { "desk.yaml": desk } });
  const gate = await spawnGate(t, ["--log", "trace"], { cwd: folder, env: { SVC_API_KEY: key } });
  assert.match(gate.stdout(), /^ {2}console {3}http:\/\/127\.0\.0\.1:\d+\/console$/m);
  const wrong = "wrong-key-of-somebody";
  await trySignIn(gate, wrong);
  await trySignIn(gate, key);
  const code = await shownCode(gate);
  const page = await signIn(gate, key, { code });
  await page("/api/receipts");
  await page("/api/receipts?limit=0");
  await page("/session", { headers: { "x-svc-session": "another" } });
  await page("/session/end", { body: {} });
  const file = join(folder, "data", "console.secret");
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const sealed = readFileSync(file);
  assert.equal(sealed.length, 32);
  gate.kill("SIGTERM");
  assert.equal(await gate.exit, 0);
  const ledger = readFileSync(join(folder, "data", "ledger.db"), "latin1");
  for (const text of [gate.stderr(), ledger])
    for (const hidden of [key, wrong, code, page.secret, page.cookie.split("=")[1] ?? "", sealed.toString("latin1")])
      assert.ok(!text.includes(hidden));
  assert.match(gate.stderr(), /"code":"unauthorized"/);
});

test("a damaged secret seals no session, and a new one ends the old sessions", async (t) => {
  const folder = temporaryFolder(t);
  writeContracts(folder, { contracts: { "desk.yaml": desk } });
  const run = { cwd: folder, env: { SVC_API_KEY: key } };
  const file = join(folder, "data", "console.secret");
  const serve = async (): Promise<{
    address: string;
    stdout: () => string;
    stderr: () => string;
    stop: () => Promise<unknown>;
  }> => {
    const gate = await spawnGate(t, [], run);
    return { ...gate, stop: () => (gate.kill("SIGTERM"), gate.exit) };
  };
  const first = await serve();
  await trySignIn(first, key);
  const code = await shownCode(first);
  const page = await signIn(first, key, { code });
  await first.stop();
  writeFileSync(file, "");
  const second = await serve();
  const own = (address: string): Record<string, string> => ({
    host: new URL(address).host,
    cookie: page.cookie.replace(/^svc-\d+/, `svc-${new URL(address).port}`),
    "x-svc-session": page.secret,
    "x-svc-console": "1",
  });
  const refused = await sendPlain(second, "/console/session", { headers: own(second.address) });
  assert.equal(refused.json.code, "ledger-unavailable", refused.text);
  await second.stop();
  says("damaged-secret", /"message":"([^"]+)"/.exec(second.stderr())?.[1] ?? second.stderr(), { FOLDER: folder });
  rmSync(file);
  const third = await serve();
  assert.equal((await sendPlain(third, "/console/session", { headers: own(third.address) })).status, 401);
});
