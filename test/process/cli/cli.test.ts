/**
 * Goal: the command line says what it does, what is wrong and how to mend it. Method: the program is run; help texts are
 * compared with files in test/process/cli/golden (written anew where UPDATE_GOLDEN is set), failures with their one sentence.
 */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test, type TestContext } from "node:test";
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

const golden = join(root, "test", "process", "cli", "golden");

const keys = ["keys", "keys create", "keys list", "keys rotate", "keys revoke"];
for (const command of [
  "",
  "serve",
  "check",
  "analyze",
  "verify",
  "replay",
  "report",
  ...keys,
  "reload",
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
  const name = command === "" ? "svc-gate" : command.replace(" ", "-");
  test(`the help of ${name} equals its golden file`, async (t) => {
    const { code, stdout, stderr } = await finish(t, [...command.split(" ").filter(Boolean), "--help"]);
    assert.deepEqual([code, stderr], [0, ""]);
    const file = join(golden, `${name}.golden`);
    if (process.env["UPDATE_GOLDEN"] !== undefined) {
      mkdirSync(golden, { recursive: true });
      writeFileSync(file, stdout);
    }
    assert.equal(stdout, readFileSync(file, "utf8"));
  });
}

test("svc-gate version prints the version of the package", async (t) => {
  const { version } = JSON.parse(readFileSync(join(root, "packages", "svc-gate", "package.json"), "utf8"));
  assert.deepEqual(await finish(t, ["version"]), { code: 0, stdout: `${version}\n`, stderr: "" });
});

const misused: readonly (readonly [readonly string[], RegExp])[] = [
  [["serv"], /unknown command 'serv'[\s\S]*Did you mean serve\?/],
  [["chek"], /unknown command 'chek'[\s\S]*Did you mean check\?/],
  [["serve", "--prot", "1"], /unknown option '--prot'[\s\S]*Did you mean --port\?/],
  [["serve", "--port"], /option '--port <number>' argument missing/],
  [["serve", "here"], /too many arguments/],
  [["check", "--jsn"], /unknown option '--jsn'[\s\S]*Did you mean --json\?/],
  [["check", "a", "b"], /too many arguments/],
  [["prove", "7", "--tenant", "a"], /unknown option '--tenant'\n\(svc-gate prove --help says what it takes\)/],
];

test("svc-gate refuses a wrong command or option and suggests the nearest one", async (t) => {
  for (const [args, message] of misused) {
    const { code, stdout, stderr } = await finish(t, args);
    assert.equal(code, 2, args.join(" "));
    assert.equal(stdout, "");
    assert.match(stderr, message);
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
  assert.match(checked.stdout, /^mandate\.yaml: no errors; 1 contract\n[\s\S]*mail\.send +3 /);
  const second = await finish(t, ["init"], { cwd: folder });
  assert.equal(second.code, 2);
  assert.match(second.stderr, /mandate\.yaml is already there: nothing was overwritten/);
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
  const { code, stderr } = await finish(t, ["init", folder]);
  assert.equal(code, 2);
  assert.match(stderr, /starter\.yaml is already there: nothing was overwritten/);
  assert.equal(readFileSync(join(folder, "contracts", "starter.yaml"), "utf8"), "mine\n");
  assert.ok(!existsSync(join(folder, "mandate.yaml")), "half of it was written");
});

const broken = desk
  .replace("counters.visits >= limits.visits", "counters.visit >= limits.visitors")
  .replace("verdict: BLOCK, final", "verdict: DENY, final");

test("init explains in one sentence that it cannot make the folder", async (t) => {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, "file"), "");
  const { code, stderr } = await finish(t, ["init", join(folder, "file", "below")]);
  assert.equal(code, 2);
  assert.match(stderr, /^\S+ cannot be written \(ENOTDIR\): name a folder that this user may write\n$/);
});

test("check reports every error of a contract with its place, as text and as JSON", async (t) => {
  const folder = temporaryFolder(t);
  writeContracts(folder, { contracts: { "desk.yaml": broken } });
  const people = await finish(t, ["check"], { cwd: folder });
  assert.deepEqual([people.code, people.stdout], [2, ""]);
  assert.match(people.stderr, /visit[\s\S]*visitors[\s\S]*[0-9]+ errors\b/);
  const programs = await finish(t, ["check", "mandate.yaml", "--json"], { cwd: folder });
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
  const alone = await finish(t, ["check", "contracts/desk.yaml"], { cwd: folder });
  assert.equal(alone.code, 2);
});

test("check --json lists tools and counters, and check explains an unreadable file in one sentence", async (t) => {
  const folder = temporaryFolder(t);
  writeContracts(folder, { contracts: { "desk.yaml": desk } });
  const { code, stdout } = await finish(t, ["check", "--json"], { cwd: folder });
  assert.equal(code, 0);
  const { ok, contracts, tools, counters } = JSON.parse(stdout);
  assert.deepEqual([ok, contracts, counters], [true, ["desk"], ["desk.visits"]]);
  assert.equal(tools.length, 9);
  const unreadable: readonly (readonly [string, RegExp])[] = [
    ["lost.yaml", /^svc-gate: lost\.yaml cannot be read: there is no such file\n$/],
    ["contracts", /^svc-gate: contracts cannot be read: it is a folder\n$/],
    ["latin.yaml", /^svc-gate: latin\.yaml cannot be read: it is not UTF-8\n$/],
  ];
  writeFileSync(join(folder, "latin.yaml"), Buffer.from("contract: caf\u00e9\n", "latin1"));
  for (const [file, message] of unreadable) {
    const refused = await finish(t, ["check", file], { cwd: folder });
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, message);
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
    assert.ok(!existsSync(join(folder, "data")), "a ledger was begun");
  },
);

test("serve prints its address, mode, contract, ledger and verifier key", async (t) => {
  const folder = temporaryFolder(t);
  writeContracts(folder, { contracts: { "desk.yaml": desk } });
  const gate = await spawnGate(t, ["--ledger-name", "acme/test"], { cwd: folder, env: { SVC_API_KEY: key } });
  const etag = (await ask(gate, "/rules")).headers.get("etag")?.replaceAll('"', "");
  const { stdout: known } = await finish(t, ["keygen"], { cwd: folder });
  const [, verifier = "none"] = /verifier key {2}(acme\/test\+\S+)/.exec(known) ?? [];
  const lines = [
    `svc-gate listens on http://127.0.0.1:${gate.port}`,
    "  mode      observe: verdicts are recorded and nothing is enforced",
    `  contract  sha256:${etag} (desk)`,
    "  ledger    acme/test, 0 rows",
    `  signed    by ${verifier}`,
  ];
  assert.equal(gate.stdout(), `${lines.join("\n")}\n`);
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
  const starts: readonly (readonly [readonly string[], RegExp])[] = [
    [["--port", port], new RegExp(`^svc-gate: port ${port} on 127\\.0\\.0\\.1 is in use: `)],
    [["--port", "0", "--host", "192.0.2.1"], /^svc-gate: 192\.0\.2\.1 is not an address of this machine: /m],
    [["--port", "0", "--data-dir", "file"], /^svc-gate: the data folder file cannot be/m],
    [["--port", "0", "--data-dir", "file/below"], /^svc-gate: the data folder file\/below cannot be/m],
    [["--port", "0", "--data-dir", "owned"], /^svc-gate: another gate is serving the ledger in owned; /m],
    [["--port", "0", "--ledger-name", "x".repeat(101)], /^svc-gate: the ledger's name must be 1 to 100 bytes/m],
  ];
  for (const [args, message] of starts) {
    const { code, stdout, stderr } = await start(...args);
    assert.deepEqual([code, stdout], [1, ""], args.join(" "));
    assert.match(stderr, message);
    assert.ok(!stderr.includes("    at "), stderr);
  }
  taken.close();
});

test(
  "serve explains in one sentence that it cannot write its data folder",
  { skip: existsSync("/proc/self") ? false : "there is no folder here that nobody can write" },
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
  const served = await finish(t, ["verify"], { cwd: folder });
  assert.equal(served.code, 0, served.stderr);
  assert.match(served.stdout, /^ok: 3 rows, chain and evidence verified\n/);
  gate.kill("SIGTERM");
  assert.equal(await gate.exit, 0);
  const unpinned = await finish(t, ["verify", "--pin", "nowhere/head.pin"], { cwd: folder });
  assert.deepEqual([unpinned.code, unpinned.stdout], [2, ""]);
  assert.match(unpinned.stderr, /the head pin nowhere\/head\.pin is not there to hold them against/);
  const pinned = await finish(t, ["verify", "--pin", "data/head.pin"], { cwd: folder });
  assert.match(pinned.stdout, /^ok: 3 rows[^]*anchored through row 3 by the head pin/, "positive control");
  await mistakePaths(t, folder);
  const database = new DatabaseSync(join(folder, "data", "ledger.db"));
  database.exec("UPDATE receipts SET tool = 'other' WHERE seq = 2");
  database.close();
  const changed = await finish(t, ["verify"], { cwd: folder });
  assert.equal(changed.code, 1);
  assert.match(changed.stderr, /^BROKEN at row 2 of 3: /);
  const programs = await finish(t, ["verify", "--json"], { cwd: folder });
  assert.equal(JSON.parse(programs.stdout).first_broken.seq, 2);
  const none = await finish(t, ["verify", join(folder, "contracts")]);
  assert.equal(none.code, 2);
  assert.match(none.stderr, /^svc-gate: there is no ledger in /);
});

/** A path that was mistyped is one sentence that names it, and never the exit code of a broken ledger. */
async function mistakePaths(t: TestContext, cwd: string): Promise<void> {
  const { stdout: known } = await finish(t, ["keygen"], { cwd });
  const vkey = /verifier key {2}(\S+)/.exec(known)?.[1] ?? assert.fail(known);
  writeFileSync(join(cwd, "taken"), "");
  const mistakes: readonly (readonly [readonly string[], RegExp])[] = [
    [["verify", "no.tlog-proof", "--key", vkey], /^svc-gate: no\.tlog-proof cannot be used: there is no such file\n$/],
    [["verify", "taken", "--key", vkey], /^svc-gate: taken is a file: name a data folder, the folder of an export, or/],
    [
      ["verify", "--key", vkey],
      /^svc-gate: --key belongs to an export or a proof, and \.\/data is neither: a data folder/,
    ],
    [
      ["verify", "data", "--witness", vkey],
      /^svc-gate: --witness belongs to an export or a proof, and data is neither/,
    ],
    [
      ["verify", "a.tlog-proof", "--chain"],
      /^svc-gate: --chain belongs to a data folder or an export, and a\.tlog-proof is a/,
    ],
    [
      ["verify", "a.tlog-proof", "--pin", "x"],
      /^svc-gate: --pin belongs to a data folder, and a\.tlog-proof is a proof\n$/,
    ],
    [
      ["verify", "--database", "x", "data"],
      /^svc-gate: --database names a ledger in SVC_DATABASE_URL, in place of data: /,
    ],
    [
      ["verify", "--database", "--chain"],
      /^svc-gate: --chain belongs to a data folder or an export, and this is a ledger in/,
    ],
    [["prove", "1", "--out", "nowhere/1"], /^svc-gate: nowhere\/1 cannot be written: there is no such folder\n$/],
    [
      ["export", "taken"],
      /^svc-gate: the folder taken cannot be made \(EEXIST\): name a new one, or one with an export\n$/,
    ],
  ];
  for (const [args, says] of mistakes) {
    const { code, stdout, stderr } = await finish(t, args, { cwd });
    assert.deepEqual([code, stdout], [2, ""], args.join(" "));
    assert.match(stderr, says);
  }
}

test("keygen makes a key before the ledger exists and refuses a folder with other files", async (t) => {
  const folder = temporaryFolder(t);
  const data = join(folder, "data");
  const made = await finish(t, ["keygen"], { cwd: folder });
  assert.equal(made.code, 0, made.stderr);
  assert.match(made.stdout, /^made data.signing\.key\n {2}no ledger is in \.\/data yet: the key is for the one that/);
  assert.match((await finish(t, ["keygen"], { cwd: folder })).stdout, /^data.signing\.key is there\n/);
  writeContracts(folder, { contracts: { "desk.yaml": desk } });
  const refused = await finish(t, ["keygen", "--data-dir", "."], { cwd: folder });
  assert.deepEqual([refused.code, refused.stdout], [2, ""]);
  assert.match(
    refused.stderr,
    /\. is no data folder: it holds contracts, and no ledger\. Name the gate's with --data-dir/,
  );
  assert.equal(existsSync(join(folder, "signing.key")), false);
  const named = await finish(t, ["keygen", "--data-dir", ".", "--signing-key", "own.key"], { cwd: folder });
  assert.equal(named.code, 0, named.stderr);
  await (await startGate(t, { folder })).stop();
  const used = (await finish(t, ["keygen"], { cwd: folder })).stdout;
  assert.match(used, /^data.signing\.key is there\n {2}verifier key/);
  for (const args of [
    ["verify"],
    ["verify", data],
    ["verify", "--data-dir", data],
    ["verify", data, "--data-dir", "none"],
  ])
    assert.equal((await finish(t, args, { cwd: folder })).code, 0, args.join(" "));
  for (const command of ["verify", "report", "replay"]) {
    const { code, stderr } = await finish(t, [command, "--data-dir", "none"], { cwd: folder });
    assert.deepEqual([code, stderr], [2, "svc-gate: there is no ledger in none\n"], command);
    const env = { SVC_DATABASE_URL: "postgresql://nobody@127.0.0.1:1/none" };
    const hinted = await finish(t, [command, "--data-dir", "none"], { cwd: folder, env });
    assert.match(hinted.stderr, /in none; add --database to read the one in SVC_DATABASE_URL\n$/, command);
  }
});
