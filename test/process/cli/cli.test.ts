/**
 * Goal: the command line reports results and errors, and says how to fix each error. Method: the program runs; help
 * texts are compared with files in test/process/cli/golden (UPDATE_GOLDEN rewrites them), and failures with their one
 * sentence.
 */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { command } from "../../support/command.ts";
import {
  ask,
  check,
  desk,
  finish,
  key,
  root,
  spawnGate,
  startGate,
  temporaryFolder,
  writeContracts,
} from "../../support/gate.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const lineOf = (text: string, at: number): string => text.split("\n")[at] ?? "";

const golden = join(root, "test", "process", "cli", "golden");

const keys = ["keys", "keys create", "keys list", "keys rotate", "keys revoke"];
for (const words of [
  "",
  "serve",
  "check",
  "analyze",
  "verify",
  "replay",
  "report",
  ...keys,
  "reload",
  "stop",
  "erase",
  "prove",
  "keygen",
  "export",
  "backup",
  "restore",
  "resume",
  "migrate",
  "init",
  "version",
]) {
  const name = words === "" ? "svc-gate" : words.replace(" ", "-");
  test(`the help of ${name} equals its golden file`, async () => {
    const { code, stdout, stderr } = await command([...words.split(" ").filter(Boolean), "--help"]);
    assert.deepEqual([code, stderr], [0, ""]);
    const file = join(golden, `${name}.golden`);
    if (process.env["UPDATE_GOLDEN"] !== undefined) {
      mkdirSync(golden, { recursive: true });
      writeFileSync(file, stdout);
    }
    assert.equal(stdout, readFileSync(file, "utf8"));
  });
}

test("svc-gate version prints the version of the package", async () => {
  const { version } = JSON.parse(readFileSync(join(root, "packages", "svc-gate", "package.json"), "utf8"));
  assert.deepEqual(await command(["version"]), { code: 0, stdout: `${version}\n`, stderr: "" });
});

const misused: readonly (readonly [readonly string[], string])[] = [
  [["serv"], "unknown-command-serv"],
  [["chek"], "unknown-command-chek"],
  [["serve", "--prot", "1"], "unknown-option-prot"],
  [["serve", "--port"], "port-without-number"],
  [["serve", "here"], "serve-with-argument"],
  [["check", "--jsn"], "unknown-option-jsn"],
  [["check", "a", "b"], "check-with-two-arguments"],
  [["prove", "7", "--tenant", "a"], "unknown-option-tenant"],
];

test("svc-gate refuses a wrong command or option and suggests the nearest one", async () => {
  for (const [args, name] of misused) {
    const { code, stdout, stderr } = await command(args);
    assert.equal(code, 2, args.join(" "));
    assert.equal(stdout, "");
    says(name, stderr);
  }
});

test("init writes a mandate and a contract that compile and serve, and never overwrites them", async (t) => {
  const folder = temporaryFolder(t);
  const written = await finish(t, ["init"], { cwd: folder });
  assert.deepEqual([written.code, written.stderr], [0, ""]);
  const files = ["mandate.yaml", "contracts/starter.yaml"];
  const texts = files.map((file) => readFileSync(join(folder, file), "utf8"));
  const checked = await finish(t, ["check"], { cwd: folder });
  assert.deepEqual([checked.code, checked.stderr], [0, ""]);
  says("starter-without-errors", lineOf(checked.stdout, 0));
  assert.match(checked.stdout, /mail\.send +3 /);
  const second = await finish(t, ["init"], { cwd: folder });
  assert.equal(second.code, 2);
  says("mandate-is-there", second.stderr);
  assert.deepEqual(
    files.map((file) => readFileSync(join(folder, file), "utf8")),
    texts,
  );
  const gate = await spawnGate(t, ["--mode", "enforce"], { cwd: folder, env: { SVC_API_KEY: key } });
  const mail = (to: readonly string[]): object => ({
    tool_name: "mail.send",
    tool_input: { to, subject: "s", body: "b" },
    session_id: "s",
  });
  const verdicts = [];
  for (const to of [["a@example.com"], ["a@example.org"], Array.from({ length: 6 }, () => "a@example.com")]) {
    verdicts.push((await check(gate, mail(to))).json.verdict);
  }
  assert.deepEqual(verdicts, ["ALLOW", "ESCALATE", "BLOCK"]);
});

test("init writes nothing if the contract exists, even without a mandate", async (t) => {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, "contracts"));
  writeFileSync(join(folder, "contracts", "starter.yaml"), "mine\n");
  const { code, stderr } = await command(["init", folder]);
  assert.equal(code, 2);
  says("contract-is-there", stderr);
  assert.equal(readFileSync(join(folder, "contracts", "starter.yaml"), "utf8"), "mine\n");
  assert.ok(!existsSync(join(folder, "mandate.yaml")), "half of it was written");
});

const broken = desk
  .replace("counters.visits >= limits.visits", "counters.visit >= limits.visitors")
  .replace("verdict: BLOCK, final", "verdict: DENY, final");

test("init explains in one sentence that it cannot make the folder", async (t) => {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, "file"), "");
  const { code, stderr } = await command(["init", join(folder, "file", "below")]);
  assert.equal(code, 2);
  says("folder-below-a-file", stderr);
});

test("check reports every error of a contract with its position, as text and as JSON", async (t) => {
  const folder = temporaryFolder(t);
  writeContracts(folder, { contracts: { "desk.yaml": broken } });
  const people = await finish(t, ["check"], { cwd: folder });
  assert.deepEqual([people.code, people.stdout], [2, ""]);
  assert.match(people.stderr, /visit[\s\S]*visitors[\s\S]*[0-9]+ errors\b/);
  const programs = await command(["check", join(folder, "mandate.yaml"), "--json"]);
  assert.equal(programs.code, 2);
  const { ok, errors } = JSON.parse(programs.stdout);
  assert.equal(ok, false);
  assert.ok(errors.length >= 3, JSON.stringify(errors));
  for (const error of errors) {
    assert.deepEqual(Object.keys(error), [
      "severity",
      "code",
      "message",
      "hint",
      "file",
      "line",
      "column",
      "endLine",
      "endColumn",
    ]);
    assert.ok(error.line > 1 && error.column >= 1 && error.endLine >= error.line, JSON.stringify(error));
  }
  const alone = await command(["check", join(folder, "contracts", "desk.yaml")]);
  assert.equal(alone.code, 2);
});

test("check --json lists tools and counters, and check explains an unreadable file in one sentence", async (t) => {
  const folder = temporaryFolder(t);
  writeContracts(folder, { contracts: { "desk.yaml": desk } });
  const { code, stdout } = await command(["check", join(folder, "mandate.yaml"), "--json"]);
  assert.equal(code, 0);
  const { ok, contracts, tools, counters } = JSON.parse(stdout);
  assert.deepEqual([ok, contracts, counters], [true, ["desk"], ["desk.visits"]]);
  assert.equal(tools.length, 9);
  writeFileSync(join(folder, "latin.yaml"), Buffer.from("contract: caf\u00e9\n", "latin1"));
  for (const file of ["lost.yaml", "contracts", "latin.yaml"]) {
    const refused = await command(["check", join(folder, file)], { folder });
    assert.equal(refused.code, 2);
    says(`${file}-cannot-be-read`, refused.stderr);
  }
});

test(
  "serve refuses a contract that does not compile and prints every error",
  { tags: ["contract.compiled"] },
  async (t) => {
    const folder = temporaryFolder(t);
    writeContracts(folder, { contracts: { "desk.yaml": broken } });
    const { code, stdout, stderr } = await finish(t, ["serve", "--port", "0"], { cwd: folder });
    assert.deepEqual([code, stdout], [2, ""]);
    assert.match(stderr, /visit[\s\S]*visitors[\s\S]*[0-9]+ errors\b/);
    assert.ok(!existsSync(join(folder, "data")), "a ledger was started");
  },
);

test("serve prints its address, mode, contract, ledger and verifier key", async (t) => {
  const folder = temporaryFolder(t);
  writeContracts(folder, { contracts: { "desk.yaml": desk } });
  const gate = await spawnGate(t, ["--ledger-name", "acme/test"], { cwd: folder, env: { SVC_API_KEY: key } });
  const etag = (await ask(gate, "/rules")).headers.get("etag")?.replaceAll('"', "");
  const { stdout: known } = await command(["keygen"], { folder });
  const [, verifier = "none"] = /verifier key {2}(acme\/test\+\S+)/.exec(known) ?? [];
  const banner = gate.stdout();
  assert.ok(banner.includes(` http://127.0.0.1:${gate.port}\n`), banner);
  assert.ok(banner.includes(`sha256:${etag} (desk)`) && banner.includes(` ${verifier}\n`), banner);
  says("banner", banner, { ETAG: String(etag), VERIFIER: verifier });
});

test("serve ends with exit code 1 and one sentence if it cannot start", async (t) => {
  const folder = temporaryFolder(t);
  writeContracts(folder, { contracts: { "desk.yaml": desk } });
  const env = { SVC_API_KEY: key };
  const start = (...args: string[]): ReturnType<typeof finish> => finish(t, ["serve", ...args], { cwd: folder, env });
  const taken = createServer();
  const port = await new Promise<string>((resolve) => {
    taken.listen(0, "127.0.0.1", () => resolve(String((taken.address() as { port: number }).port)));
  });
  writeFileSync(join(folder, "file"), "");
  await startGate(t, { folder, flags: { "data-dir": join(folder, "owned") } });
  const starts: readonly (readonly [readonly string[], string])[] = [
    [["--port", port], "port-in-use"],
    [["--port", "0", "--host", "192.0.2.1"], "address-of-another-machine"],
    [["--port", "0", "--data-dir", "file"], "data-folder-is-a-file"],
    [["--port", "0", "--data-dir", "file/below"], "data-folder-below-a-file"],
    [["--port", "0", "--data-dir", "owned"], "another-gate-serves"],
    [["--port", "0", "--ledger-name", "x".repeat(101)], "ledger-name-too-long"],
  ];
  for (const [args, name] of starts) {
    const { code, stdout, stderr } = await start(...args);
    assert.deepEqual([code, stdout], [1, ""], args.join(" "));
    says(name, stderr.split("\n").find((line) => line.startsWith("svc-gate: ")) ?? "", {
      [`port PORT`]: `port ${port}`,
    });
    assert.ok(!stderr.includes("    at "), stderr);
  }
  taken.close();
});

test(
  "serve explains in one sentence that it cannot write its data folder",
  { skip: existsSync("/proc/self") ? false : "every folder here can be written" },
  async (t) => {
    const folder = temporaryFolder(t);
    writeContracts(folder, { contracts: { "desk.yaml": desk } });
    const { code, stderr } = await finish(t, ["serve", "--port", "0", "--data-dir", "/proc/self"], {
      cwd: folder,
      env: { SVC_API_KEY: key },
    });
    assert.equal(code, 1);
    assert.match(stderr, /^svc-gate: .*\/proc\/self.*$/m);
    assert.ok(!stderr.includes("    at "), stderr);
  },
);

test("verify says whether a ledger is whole and where it breaks, also while a gate serves it", async (t) => {
  const folder = temporaryFolder(t);
  writeContracts(folder, { contracts: { "desk.yaml": desk } });
  const gate = await spawnGate(t, [], { cwd: folder, env: { SVC_API_KEY: key } });
  for (let n = 0; n < 3; n += 1) await check(gate, { tool_name: "note.add", tool_input: { n } });
  const served = await command(["verify"], { folder });
  assert.equal(served.code, 0, served.stderr);
  says("whole-ledger", lineOf(served.stdout, 0));
  gate.kill("SIGTERM");
  assert.equal(await gate.exit, 0);
  const unpinned = await command(["verify", "--pin", join(folder, "nowhere", "head.pin")], { folder });
  assert.deepEqual([unpinned.code, unpinned.stdout], [2, ""]);
  says("pin-is-not-there", unpinned.stderr);
  const pinned = await command(["verify", "--pin", join(folder, "data", "head.pin")], { folder });
  says("whole-ledger-by-head-pin", lineOf(pinned.stdout, 0));
  says("anchored-by-head-pin", pinned.stdout.split("\n").find((line) => line.includes("head pin")) ?? "");
  await mistakePaths(folder);
  const database = new DatabaseSync(join(folder, "data", "ledger.db"));
  database.exec("UPDATE receipts SET tool = 'other' WHERE seq = 2");
  database.close();
  const changed = await command(["verify"], { folder });
  assert.equal(changed.code, 1);
  assert.match(changed.stderr, /^BROKEN at row 2 of 3: /);
  const programs = await command(["verify", "--json"], { folder });
  assert.equal(JSON.parse(programs.stdout).first_broken.seq, 2);
  const none = await command(["verify", join(folder, "contracts")]);
  assert.equal(none.code, 2);
  says("no-ledger-in-contracts", none.stderr);
});

/** Checks that a mistyped path is one sentence that names it, and never the exit code of a broken ledger. */
async function mistakePaths(folder: string): Promise<void> {
  const { stdout: known } = await command(["keygen"], { folder });
  const vkey = /verifier key {2}(\S+)/.exec(known)?.[1] ?? assert.fail(known);
  const taken = join(folder, "taken");
  writeFileSync(taken, "");
  const mistakes: readonly (readonly [readonly string[], string])[] = [
    [["verify", "no.tlog-proof", "--key", vkey], "no-such-proof"],
    [["verify", taken, "--key", vkey], "verify-a-file"],
    [["verify", "--key", vkey], "key-for-a-data-folder"],
    [["verify", join(folder, "data"), "--witness", vkey], "witness-for-a-data-folder"],
    [["verify", "a.tlog-proof", "--chain"], "chain-of-a-proof"],
    [["verify", "a.tlog-proof", "--pin", "x"], "pin-for-a-proof"],
    [["verify", "--database", "x", "data"], "database-and-folder"],
    [["verify", "--database", "--chain"], "chain-of-a-database"],
    [["prove", "1", "--out", join(folder, "nowhere", "1")], "proof-in-no-folder"],
    [["export", taken], "export-to-a-file"],
  ];
  for (const [args, name] of mistakes) {
    const { code, stdout, stderr } = await command(args, { folder });
    assert.deepEqual([code, stdout], [2, ""], args.join(" "));
    says(name, stderr);
  }
}

test("keygen makes a key before the ledger exists and refuses a folder with other files", async (t) => {
  const folder = temporaryFolder(t);
  const data = join(folder, "data");
  const made = await command(["keygen"], { folder });
  assert.equal(made.code, 0, made.stderr);
  assert.match(made.stdout, /^made data.signing\.key\n/);
  says("key-without-ledger", lineOf(made.stdout, 1));
  assert.match((await command(["keygen"], { folder })).stdout, /^data.signing\.key is there\n/);
  writeContracts(folder, { contracts: { "desk.yaml": desk } });
  const refused = await finish(t, ["keygen", "--data-dir", "."], { cwd: folder });
  assert.deepEqual([refused.code, refused.stdout], [2, ""]);
  says("no-data-folder", refused.stderr);
  assert.equal(existsSync(join(folder, "signing.key")), false);
  const named = await finish(t, ["keygen", "--data-dir", ".", "--signing-key", "own.key"], { cwd: folder });
  assert.equal(named.code, 0, named.stderr);
  await (await startGate(t, { folder })).stop();
  const used = (await command(["keygen"], { folder })).stdout;
  says("key-of-a-ledger", used);
  for (const args of [
    ["verify"],
    ["verify", data],
    ["verify", "--data-dir", data],
    ["verify", data, "--data-dir", join(folder, "none")],
  ])
    assert.equal((await command(args, { folder })).code, 0, args.join(" "));
  for (const name of ["verify", "report", "replay"]) {
    const args = [name, "--data-dir", join(folder, "none")];
    const { code, stderr } = await command(args, { folder });
    assert.equal(code, 2, name);
    says("no-ledger", stderr);
    const env = { SVC_DATABASE_URL: "postgresql://nobody@127.0.0.1:1/none" };
    const hinted = await command(args, { folder, env });
    says("no-ledger-with-database", hinted.stderr);
  }
});
