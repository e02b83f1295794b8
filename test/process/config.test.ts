/**
 * Goal: every setting is read from its variable and its flag, and each mistake is reported at once. Method: the table
 * of settings drives the cases, so that a new setting without a case is reported; the other tests start the process.
 * UPDATE_GOLDEN=1 rewrites the sentences.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { readConfig, settings, type Config } from "../../packages/gate/src/server/start/config.ts";
import { command } from "../support/command.ts";
import {
  ask,
  check,
  desk,
  finish,
  key,
  spawnGate,
  startGate,
  temporaryFolder,
  writeContracts,
} from "../support/gate.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

/** Returns the one line in which a process says why it ended. */
function sentenceIn(stderr: string): string {
  const [line, ...others] = stderr.split("\n").filter((each) => each.startsWith("svc-gate: "));
  assert.ok(line !== undefined && others.length === 0, stderr);
  return line;
}

/** Returns the warnings that a gate prints at its start. */
function warningsIn(stdout: string): readonly string[] {
  return [...stdout.matchAll(/^ *warning +(.+)$/gm)].map(([, warning = ""]) => warning);
}

interface Case {
  readonly field: keyof Config;
  readonly value: string;
  readonly read: unknown;
  readonly fallback: unknown;
  readonly bad: readonly string[];
}

const cases: Readonly<Record<string, Case>> = {
  SVC_MODE: {
    field: "mode",
    value: "assist",
    read: "assist",
    fallback: undefined,
    bad: ["", "Enforce", "block", "enforce "],
  },
  SVC_API_KEY: {
    field: "apiKey",
    value: key,
    read: key,
    fallback: undefined,
    bad: ["", "a key with spaces", "clé-de-la-porte-1"],
  },
  SVC_HOST: { field: "host", value: "127.0.0.2", read: "127.0.0.2", fallback: "127.0.0.1", bad: [] },
  SVC_PORT: { field: "port", value: "0", read: 0, fallback: 8787, bad: ["65536", "-1", "http", "80.5", "0x50", " 80"] },
  SVC_BASE_PATH: {
    field: "basePath",
    value: "/t/a",
    read: "/t/a",
    fallback: "",
    bad: ["t", "/t//a", "/t/:a", "/t?x", "/*"],
  },
  SVC_TLS_CERT: { field: "tlsCert", value: "c.pem", read: "c.pem", fallback: undefined, bad: ["alone.pem"] },
  SVC_TLS_KEY: { field: "tlsKey", value: "k.pem", read: "k.pem", fallback: undefined, bad: ["alone.pem"] },
  SVC_MANDATE: { field: "mandate", value: "m.yaml", read: "m.yaml", fallback: undefined, bad: [] },
  SVC_TENANTS: { field: "tenants", value: "t.yaml", read: "t.yaml", fallback: undefined, bad: [] },
  SVC_TENANTS_OPEN: { field: "tenantsOpen", value: "8", read: 8, fallback: undefined, bad: ["0", "many", "-1"] },
  SVC_RATE: {
    field: "rate",
    value: "200/s burst 400",
    read: { perSecond: 200, burst: 400 },
    fallback: undefined,
    bad: ["fast", "200", "0/s"],
  },
  SVC_CONNECTIONS: { field: "connections", value: "10", read: 10, fallback: 5000, bad: ["0", "ten"] },
  SVC_QUEUE_MS: { field: "queueMs", value: "250", read: 250, fallback: 1000, bad: ["0", "-1", "soon"] },
  SVC_RETENTION_DAYS: {
    field: "retentionDays",
    value: "30",
    read: 30,
    fallback: undefined,
    bad: ["0", "-1", "1.5", "month", "30d"],
  },
  SVC_OIDC: { field: "oidc", value: "oidc.json", read: "oidc.json", fallback: undefined, bad: [] },
  SVC_NOTIFY: { field: "notify", value: "notify.json", read: "notify.json", fallback: undefined, bad: [] },
  SVC_CONSOLE: { field: "console", value: "off", read: "off", fallback: undefined, bad: ["yes", "ON", "true"] },
  SVC_CONSOLE_SECRET: {
    field: "consoleSecret",
    value: "s".repeat(32),
    read: "s".repeat(32),
    fallback: undefined,
    bad: ["short", "s".repeat(31)],
  },
  SVC_PUBLIC_URL: {
    field: "publicUrl",
    value: "https://gate.example/",
    read: "https://gate.example",
    fallback: undefined,
    bad: ["gate.example", "ftp://gate.example", "https://u:p@gate.example", "https://gate.example/?q=1"],
  },
  SVC_RELOAD_TESTS: { field: "reloadTests", value: "tests", read: "tests", fallback: undefined, bad: [] },
  SVC_DATABASE_URL: {
    field: "databaseUrl",
    value: "postgres://db/gate",
    read: "postgres://db/gate",
    fallback: undefined,
    bad: [],
  },
  SVC_DATABASE_POOL: { field: "databasePool", value: "4", read: 4, fallback: 10, bad: ["0", "1", "x"] },
  SVC_DATA_DIR: { field: "dataDir", value: "elsewhere", read: "elsewhere", fallback: "./data", bad: [] },
  SVC_LEDGER_NAME: { field: "ledgerName", value: "acme", read: "acme", fallback: undefined, bad: [] },
  SVC_PIN: { field: "pin", value: "/pins/head", read: "/pins/head", fallback: undefined, bad: [] },
  SVC_SIGNING_KEY: { field: "signingKey", value: "k.pem", read: "k.pem", fallback: undefined, bad: [] },
  SVC_WITNESS_POLICY: { field: "witnessPolicy", value: "w.txt", read: "w.txt", fallback: undefined, bad: [] },
  SVC_SINKS: {
    field: "sinks",
    value: "file:/anchors/gate",
    read: "file:/anchors/gate",
    fallback: undefined,
    bad: ["anchors", "https://example.org/heads", "git:/srv/repository", "file:here"],
  },
  SVC_SEEN: { field: "seen", value: "/seen/gate", read: "/seen/gate", fallback: undefined, bad: [] },
  SVC_ANCHOR_EVERY: { field: "anchorEvery", value: "1", read: 1, fallback: 100, bad: ["0", "often"] },
  SVC_REFUSED_INPUT_MAX: {
    field: "refusedInputMax",
    value: "1KiB",
    read: 1024,
    fallback: 16_384,
    bad: ["-1", "1.5 KiB", "16 kb", "99999999999", "many"],
  },
  SVC_REFUSED_INPUT_PER_DAY: {
    field: "refusedInputPerDay",
    value: "1 GiB",
    read: 1_073_741_824,
    fallback: 67_108_864,
    bad: ["64 MB", " ", "01"],
  },
  SVC_OPS_PORT: { field: "opsPort", value: "0", read: 0, fallback: undefined, bad: ["65536", "ops"] },
  SVC_OPS_HOST: { field: "opsHost", value: "::1", read: "::1", fallback: "127.0.0.1", bad: [] },
  SVC_LOG: { field: "log", value: "warn", read: "warn", fallback: "info", bad: ["loud", "WARN"] },
  SVC_ACCEPT: { field: "accept", value: "clock", read: ["clock"], fallback: [], bad: ["everything", "clock,rows"] },
};

/** The other setting of a pair that must be set together. */
const pair: Readonly<Record<string, Record<string, string>>> = {
  SVC_TLS_CERT: { SVC_TLS_KEY: "k.pem" },
  SVC_TLS_KEY: { SVC_TLS_CERT: "c.pem" },
};

test("every setting comes from its variable or its flag, and the flag wins", () => {
  assert.deepEqual(
    settings.map(({ variable }) => variable).toSorted(),
    Object.keys(cases).toSorted(),
    "a setting without a case",
  );
  for (const { variable, flag } of settings) {
    const { field, value, read, fallback } = cases[variable] as Case;
    const others = pair[variable] ?? {};
    const fieldOf = (environment: Record<string, string>, flags: Record<string, string>): unknown => {
      const configured = readConfig({ ...others, ...environment }, flags);
      assert.ok(configured.ok, variable);
      return configured.value.config[field];
    };
    assert.deepEqual(fieldOf({ [variable]: value }, {}), read, variable);
    if (variable === "SVC_CONSOLE_SECRET") continue; // It may not be an argument.
    assert.deepEqual(fieldOf({}, { [flag]: value }), read, `--${flag}`);
    assert.deepEqual(fieldOf({ [variable]: "unused" }, { [flag]: value }), read, `--${flag} over ${variable}`);
    if (pair[variable] === undefined) assert.deepEqual(fieldOf({}, {}), fallback, `${variable} by default`);
  }
});

test(
  "a bad value is an error that names its variable, and the gate reports all at once",
  { tags: ["mode.other-value-refused", "mode.new-gate-observes"] },
  () => {
    for (const [variable, { bad }] of Object.entries(cases)) {
      for (const value of bad) {
        const configured = readConfig({ [variable]: value }, {});
        assert.ok(!configured.ok, `${variable}=${value} was taken`);
        assert.equal(configured.problem.length, 1);
        assert.match(configured.problem[0] ?? "", new RegExp(variable));
      }
    }
    const all = readConfig(
      { SVC_MODE: "enforced", SVC_PORT: "x", SVC_LOG: "x", SVC_API_KEY: "", SVC_TLS_KEY: "k", SVC_BASE_PATH: "x" },
      {},
    );
    assert.ok(!all.ok);
    assert.equal(all.problem.length, 6);
    says("mode-with-a-slip", all.problem[0] ?? "");
  },
);

const warned: readonly (readonly [Record<string, string>, string])[] = [
  [{ SVC_MODES: "enforce" }, "setting-with-a-slip"],
  [{ SVC_TLS_CRET: "x" }, "another-setting-with-a-slip"],
  [{ SVC_ENTIRELY_OTHER_THING: "x" }, "unknown-setting"],
  [{ SVC_API_KEY: "short" }, "short-key"],
  [{ SVC_HOST: "0.0.0.0" }, "no-tls-on-every-address"],
  [{ SVC_HOST: "::" }, "no-tls-on-every-address-of-version-6"],
  [{ SVC_HOST: "10.0.0.1" }, "no-tls-on-one-address"],
];

test("the gate warns about settings that work but look wrong", () => {
  for (const [environment, name] of warned) {
    const configured = readConfig(environment, {});
    assert.ok(configured.ok);
    assert.equal(configured.value.warnings.length, 1, JSON.stringify(environment));
    says(name, configured.value.warnings[0] ?? "");
  }
  const quiet = [
    { SVC_HOST: "127.9.9.9" },
    { SVC_HOST: "::1" },
    { SVC_HOST: "localhost" },
    { SVC_HOST: "0.0.0.0", SVC_TLS_CERT: "c", SVC_TLS_KEY: "k" },
    { svc_mode: "x", SVCMODE: "x" },
  ];
  for (const environment of quiet) {
    const configured = readConfig(environment, {});
    assert.ok(configured.ok && configured.value.warnings.length === 0, JSON.stringify(environment));
  }
});

test(
  "the process reads its environment variables and logs a warning about an unknown one",
  { tags: ["service.names", "mode.switched-by-environment"] },
  async (t) => {
    const folder = temporaryFolder(t);
    writeContracts(folder, { contracts: { "desk.yaml": desk } });
    const gate = await spawnGate(t, [], { cwd: folder, env: { SVC_MODE: "enforce", SVC_API_KEY: key, SVC_MODD: "x" } });
    assert.deepEqual((await ask(gate, "/health")).json, { status: "ok", mode: "enforce" });
    assert.match(gate.stderr(), /"level":40.*\bSVC_MODD\b.*\bSVC_MODE\?/);
    assert.ok(existsSync(join(folder, "data", "ledger.db")));
    assert.equal(statSync(join(folder, "data")).mode & 0o777, 0o700);
  },
);

test("the API key appears in no log, answer or file, even at log level trace", async (t) => {
  const folder = temporaryFolder(t);
  writeContracts(folder, { contracts: { "desk.yaml": desk } });
  const gate = await spawnGate(t, ["--log", "trace"], { cwd: folder, env: { SVC_API_KEY: key } });
  const wrong = "wrong-key-of-somebody";
  const answers = [
    await check(gate, { tool_name: "note.add", tool_input: {} }),
    await check(gate, "{"),
    await ask(gate, "/nowhere"),
    await ask(gate, "/receipts?key=1"),
    await ask(gate, "/%zz"),
    await ask(gate, "/rules", { headers: { authorization: `Bearer ${wrong}` } }),
    await ask(gate, "/rules", { headers: { authorization: wrong } }),
    await ask(gate, "/receipts"),
    await ask(gate, "/ledger/verify"),
  ];
  gate.kill("SIGTERM");
  assert.equal(await gate.exit, 0);
  assert.match(gate.stderr(), /"code":"unauthorized"/);
  const files = ["ledger.db", "head.pin"].map((file) => readFileSync(join(folder, "data", file), "latin1"));
  for (const text of [
    gate.stdout(),
    gate.stderr(),
    ...files,
    ...answers.map((answer) => answer.text + JSON.stringify([...answer.headers])),
  ]) {
    assert.ok(!text.includes(key) && !text.includes(wrong));
  }
});

test(
  "without a key the gate makes one in a private file and keeps its digest",
  { tags: ["auth.first-key"] },
  async (t) => {
    const folder = temporaryFolder(t);
    writeContracts(folder, { contracts: { "desk.yaml": desk } });
    const first = await spawnGate(t, [], { cwd: folder });
    const file = join(folder, "data", "first-key");
    assert.equal(statSync(file).mode & 0o777, 0o600);
    const made = readFileSync(file, "utf8").trim();
    assert.match(made, /^svcg_[A-Za-z0-9]{49}$/);
    assert.match(first.stdout(), /key +made, in .*first-key/);
    assert.ok(
      !`${first.stdout()}${first.stderr()}`.includes(made),
      "the key is shown although stdout is not a terminal",
    );
    const kept = join(folder, "data", "keys.json");
    assert.equal(statSync(kept).mode & 0o777, 0o600);
    const text = readFileSync(kept, "utf8");
    assert.ok(!text.includes(made));
    const authorization = `Bearer ${made}`;
    assert.equal((await ask(first, "/rules", { headers: { authorization } })).status, 200);
    assert.equal(
      (await ask(first, "/rules", { headers: { authorization: `Bearer ${JSON.parse(text).keys[0].digest}` } })).status,
      401,
    );
    first.kill("SIGTERM");
    await first.exit;
    rmSync(file);
    const second = await spawnGate(t, [], { cwd: folder });
    assert.ok(!existsSync(file), "a second key was made");
    assert.equal((await ask(second, "/rules", { headers: { authorization } })).status, 200);
    second.kill("SIGTERM");
    await second.exit;
    writeFileSync(kept, "{}");
    const damaged = await finish(t, ["serve", "--port", "0"], { cwd: folder });
    assert.equal(damaged.code, 1);
    says("file-of-keys-is-damaged", sentenceIn(damaged.stderr));
  },
);

test("a start does not show a new first key as valid if a row replaced it", { tags: ["first-use-11"] }, async (t) => {
  const folder = temporaryFolder(t);
  writeContracts(folder, { contracts: { "desk.yaml": desk } });
  const first = await spawnGate(t, [], { cwd: folder });
  const revoked = await command(["keys", "revoke", "default", "--data-dir", join(folder, "data")]);
  assert.equal(revoked.code, 0, revoked.stderr);
  first.kill("SIGTERM");
  await first.exit;
  for (const name of ["keys.json", "first-key"]) rmSync(join(folder, "data", name));
  const second = await spawnGate(t, [], { cwd: folder });
  assert.doesNotMatch(second.stdout(), /key +made/);
  says("new-first-key-is-refused", warningsIn(second.stdout()).join("\n"));
});

test("a start with another SVC_API_KEY says that the made key is refused", { tags: ["first-use-11"] }, async (t) => {
  const folder = temporaryFolder(t);
  writeContracts(folder, { contracts: { "desk.yaml": desk } });
  const start = async (
    env: Record<string, string>,
  ): Promise<{ readonly warnings: readonly string[]; readonly made: number }> => {
    const gate = await spawnGate(t, [], { cwd: folder, env });
    const authorization = `Bearer ${readFileSync(join(folder, "data", "first-key"), "utf8").trim()}`;
    const { status } = await ask(gate, "/rules", { headers: { authorization } });
    gate.kill("SIGTERM");
    await gate.exit;
    return { warnings: warningsIn(gate.stdout()), made: status };
  };
  const first = await start({});
  assert.equal(first.made, 200);
  const other = await start({ SVC_API_KEY: key });
  assert.equal(other.made, 401);
  const [refused = ""] = other.warnings;
  says("made-key-is-refused", refused);
  const same = await start({ SVC_API_KEY: readFileSync(join(folder, "data", "first-key"), "utf8").trim() });
  assert.equal(same.made, 200);
  for (const { warnings } of [first, same]) assert.ok(!warnings.includes(refused), "positive control");
});

test("a start warns if keys.json and first-key belong to different keys", async (t) => {
  const folder = temporaryFolder(t);
  writeContracts(folder, { contracts: { "desk.yaml": desk } });
  const start = async (): Promise<readonly string[]> => {
    const gate = await spawnGate(t, [], { cwd: folder });
    gate.kill("SIGTERM");
    await gate.exit;
    return warningsIn(gate.stdout());
  };
  assert.deepEqual(await start(), [], "positive control");
  assert.deepEqual(await start(), [], "positive control");
  const file = join(folder, "data", "keys.json");
  writeFileSync(file, readFileSync(file, "utf8").replace(/[0-9a-f]{64}/, "0".repeat(64)));
  says("first-key-of-another-key", (await start())[0] ?? "");
});

test("without a mandate the gate logs that it routes no tool; a missing named mandate stops it", async (t) => {
  const folder = temporaryFolder(t);
  const gate = await spawnGate(t, ["--mode", "enforce"], { cwd: folder, env: { SVC_API_KEY: key } });
  const [first = ""] = gate.stderr().split("\n");
  assert.equal(JSON.parse(first).level, 40);
  says("mandate-is-not-here", JSON.parse(first).msg);
  assert.match(gate.stdout(), /contract +sha256:[0-9a-f]{64} \(none\b/);
  const { json } = await check(gate, { tool_name: "note.add", tool_input: {} });
  assert.deepEqual([json.verdict, json.rule], ["BLOCK", undefined]);
  says("no-contract-routes-the-tool", json.reason);
  const missing = await finish(t, ["serve", "--mandate", "lost.yaml"], { cwd: temporaryFolder(t) });
  assert.equal(missing.code, 2);
  says("mandate-is-not-there", missing.stderr.trimEnd());
});

function selfSigned(folder: string, name: string): { readonly cert: string; readonly key: string } | undefined {
  const [keyFile, cert] = [join(folder, `${name}.key`), join(folder, `${name}.pem`)];
  try {
    execFileSync(
      "openssl",
      [
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
        "-keyout",
        keyFile,
        "-out",
        cert,
      ],
      { stdio: "ignore" },
    );
    return { cert, key: keyFile };
  } catch {
    return undefined;
  }
}

test("the gate serves checks over TLS and explains a bad certificate pair in one sentence", async (t) => {
  const folder = temporaryFolder(t);
  const pairs = ["one", "two"].map((name) => selfSigned(folder, name));
  const [one, two] = pairs;
  if (one === undefined || two === undefined) {
    t.skip("openssl is not installed, so the test cannot make a certificate");
    return;
  }
  const gate = await startGate(t, { flags: { "tls-cert": one.cert, "tls-key": one.key } });
  assert.match(gate.address, /^https:/);
  assert.equal(await statusOverTls(t, gate.port, readFileSync(one.cert)), 200);
  const mismatch = await finish(t, ["serve", "--port", "0", "--tls-cert", one.cert, "--tls-key", two.key], {
    cwd: folder,
  });
  assert.equal(mismatch.code, 1);
  says("key-of-another-certificate", sentenceIn(mismatch.stderr));
  writeFileSync(join(folder, "no.pem"), "hello");
  const none = await finish(t, ["serve", "--port", "0", "--tls-cert", join(folder, "no.pem"), "--tls-key", two.key], {
    cwd: folder,
  });
  assert.match(sentenceIn(none.stderr), /\S+no\.pem\b.*\S+two\.key\b.*\bTLS\b.*\bPEM$/);
  const lost = await finish(t, ["serve", "--port", "0", "--tls-cert", "lost.pem", "--tls-key", two.key], {
    cwd: folder,
  });
  says("certificate-is-not-there", sentenceIn(lost.stderr));
  for (const { stderr } of [mismatch, none, lost]) assert.ok(!stderr.includes("    at "), stderr);
});

function statusOverTls(_t: TestContext, port: number, ca: Buffer): Promise<number | undefined> {
  const body = '{"tool_name":"note.add","tool_input":{}}';
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json", "content-length": body.length };
  return new Promise((resolve, reject) => {
    const options = {
      port,
      host: "127.0.0.1",
      servername: "localhost",
      checkServerIdentity: () => undefined,
      ca,
      path: "/check",
      method: "POST",
      headers,
      agent: false,
    };
    const outgoing = request(options, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}
