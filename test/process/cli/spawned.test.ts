/**
 * Goal: each command works as a program of its own, because most tests call it in their own process. Method: one row
 * for each command of the program runs it in a process. The row says the exit code, which stream gets the text, and
 * the text's start. A command without a row fails.
 */
import assert from "node:assert/strict";
import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { programFor } from "../../../packages/svc-gate/src/main.ts";
import type { Command } from "../../../packages/gate/src/cli/mod.ts";
import { large, small, startDesk, type Desk } from "../../support/approvals.ts";
import { command } from "../../support/command.ts";
import { finish, key, root, spawnGate, temporaryFolder, writeContracts } from "../../support/gate.ts";

/** What a command gets, and how it ends. */
interface Row {
  /** The words after the command's name. */
  readonly words?: readonly string[];
  readonly input?: string;
  /** 0 by default. */
  readonly code?: number;
  /** Standard output; it is empty by default. */
  readonly stdout?: RegExp;
  /** Standard error; it is empty by default. */
  readonly stderr?: RegExp;
}

interface Setup {
  readonly desk: Desk;
  /** A contract, and a call under it. */
  readonly contract: string;
  readonly call: string;
  /** The row of a call that ran. */
  readonly receipt: string;
  /** Approvals that wait: one to cancel, one to deny, and others. */
  readonly waiting: readonly string[];
  /** An approval that a person may make a grant from. */
  readonly own: (name: string) => string;
}

/** The rows in the order in which they run: a gate serves the folder through all of them. */
function rowsOf({ desk, contract, call, receipt, waiting, own }: Setup): Readonly<Record<string, Row>> {
  const [first = "", second = "", third = ""] = waiting;
  const data = join(desk.folder, "data");
  const anna = ["--key-file", own("anna.key")];
  const backup = own("backup");
  const why = ["--reason", "a test"];
  return {
    version: { stdout: /^\d+\.\d+\.\d+\n$/ },
    init: { words: [own("new")], stdout: /^wrote .*mandate\.yaml\n/ },
    check: { words: [contract], stdout: /^.*pay\.yaml: no errors; 1 contract\n/ },
    test: { words: [own("tests")], code: 1, stdout: /✖ too little\n[^]*0 of 1 case passed, 1 call in 1 file\n$/ },
    explain: { words: ["-", "--contract", contract], input: call, stdout: /^ESCALATE {2}pay\.large: / },
    fmt: { words: ["-"], input: "contract:   c\ntools: {}\n", stdout: /^contract: c\ntools: \{\}\n$/ },
    analyze: { words: [contract], code: 1, stdout: /\n\d+ warnings and \d+ notes? in 1 contract, 2 tools\n$/ },
    commands: {
      words: ["git status", "--contract", join(root, "contracts", "packs", "git.yaml")],
      stdout: /^pack: ALLOW: the commands read\n\n {2}git status\n {4}ALLOW\n/,
    },
    schema: { words: ["contract"], stdout: /^\{\n/ },
    "import-tools": { words: ["-"], input: '[{"name":"a","parameters":{"type":"object"}}]', stdout: /\n {2}a:\n/ },
    lsp: {},
    diff: { words: [contract, contract, "--no-text"], stdout: /2 tools: 2 equivalent\n$/ },
    replay: { words: [data], stdout: /^4 receipts decided again/ },
    report: { words: [data], stdout: /^4 receipts, / },
    prove: { words: [receipt, data, "--out", "-"], stdout: /^c2sp\.org\/tlog-proof/ },
    keygen: { stdout: /signing\.key is there\n/ },
    verify: { words: [data], stdout: /^ok: \d+ rows/ },
    export: { words: ["-", "--format", "jsonl"], stdout: /^\{"seq":1,[^]*\}\n$/ },
    backup: { words: [backup], stdout: /^backed up to / },
    restore: { words: [backup, "--data-dir", own("restored")], stdout: /^restored \d+ rows/ },
    resume: { words: why, code: 2, stderr: /^svc-gate: add --after-restore / },
    migrate: { code: 2, stderr: /^svc-gate: no database is named/ },
    "keys create": { words: ["ci", "--quiet"], stdout: /^svcg_\w+\n$/ },
    "keys list": { stdout: /\nci +active / },
    "keys rotate": { words: ["ci"], stdout: /^rotated the key ci/ },
    "keys update": { words: ["anna-laptop", "--groups", "finance,legal"], stdout: /^anna, .*legal/ },
    "keys revoke": { words: ["ci"], stdout: /^revoked the key ci/ },
    "persons add": { words: ["dora"], stdout: /^dora is a person/ },
    "persons list": { stdout: /\nanna +anna-laptop +finance,legal\n[^]*\ndora +- +-\n$/ },
    reload: { stdout: /^nothing has changed: / },
    erase: { words: [receipt, "--part", "input", ...why], stdout: /^erased \d+ parts? of 1 receipt/ },
    "notify list": { stdout: /^no endpoint gets the events/ },
    "notify replay": { words: ["--from", "x"], code: 2, stderr: /^svc-gate: --from must be/ },
    "approvals list": { words: anna, stdout: new RegExp(first) },
    "approvals show": { words: [first, ...anna], stdout: new RegExp(first) },
    "approvals watch": { words: anna, code: 2, stderr: /needs a terminal/ },
    "grants create": { words: [first, "--preview", ...anna], code: 2, stderr: /has no `grants`/ },
    "grants list": { words: anna, stdout: /^no grant is in force\n$/ },
    "grants approve": {
      words: ["grt_1", ...anna],
      code: 2,
      stderr: /^svc-gate: no grant in force has the id grt_1\n$/,
    },
    "grants revoke": { words: ["grt_1", ...anna], code: 2, stderr: /^svc-gate: no grant in force has this id\n$/ },
    "approvals approve": { words: [first, ...anna], stdout: /^apr_\S+ is approved \(row \d+ records it\)\n$/ },
    "approvals deny": { words: [second, "--comment", "no", ...anna], stdout: /^apr_\S+ is denied / },
    "approvals cancel": { words: [third, ...anna], stdout: /^apr_\S+ is cancelled\n$/ },
    stop: { words: ["--why", "a test"], stdout: /^stopped every call; row \d+ records it\n1 approval is cancelled\n$/ },
    hook: {
      words: ["--agent", "claude-code"],
      input: "{",
      code: 2,
      stderr: /^Svc: .*; without a verdict the action is blocked\.\n$/,
    },
    mcp: { code: 2, stderr: /^svc-gate mcp: give a command after --/ },
    doctor: { words: ["--agent", "nobody"], code: 2, stderr: /^svc-gate: --agent must be one of / },
  };
}

async function newSetup(t: TestContext): Promise<Setup> {
  const desk = await startDesk(t);
  const { seq } = (await desk.asks(small)).receipt;
  const waiting: string[] = [];
  for (const to of ["anna", "bob", "cleo"])
    waiting.push(
      (await desk.asks({ ...large, tool_input: { amount: 1200, to }, platform_state: { wallet: to } })).approval.id,
    );
  const own = (name: string): string => join(desk.folder, name);
  writeFileSync(own("anna.key"), desk.keys["anna"] ?? "");
  mkdirSync(own("tests"));
  const contract = own("contracts/pay.yaml");
  const cases = `contract: ../contracts/pay.yaml\ncases:\n  - { case: too little, tool: pay.send, input: {}, expect: ALLOW }\n`;
  writeFileSync(join(own("tests"), "pay.test.yaml"), cases);
  return { desk, contract, call: JSON.stringify(large), receipt: String(seq), waiting, own };
}

/** Commands that print the same when they run again: a call in the process of the test must print it too. */
const repeatable: readonly string[] = [
  "version",
  "check",
  "test",
  "fmt",
  "analyze",
  "schema",
  "import-tools",
  "lsp",
  "replay",
  "report",
  "keygen",
  "verify",
  "export",
  "resume",
  "migrate",
  "persons list",
  "approvals show",
  "grants create",
  "grants list",
];

/** The names of the commands that run: those without commands of their own. */
function leavesOf(commands: readonly Command[], path: readonly string[] = []): readonly string[] {
  return commands.flatMap((each) => {
    const own = [...path, each.name()];
    return each.commands.length === 0 ? [own.join(" ")] : leavesOf(each.commands, own);
  });
}

function rowless(program: Command, rows: object): readonly string[] {
  return leavesOf(program.commands).filter((name) => !(name in rows));
}

suite("each command as a program of its own", () => {
  test("every command of the program has a row, and ends with its exit code and its text", async (t) => {
    const setup = await newSetup(t);
    const rows = rowsOf(setup);
    const program = await programFor(["--help"]);
    assert.deepEqual(rowless(program, rows), ["serve"], "serve has a test of its own");
    program.command("keep").command("all");
    assert.deepEqual(rowless(program, rows), ["serve", "keep all"], "control: a new command needs a row");
    const env = { SVC_DATA_DIR: join(setup.desk.folder, "data") };
    for (const [name, { words = [], input = "", code = 0, stdout = /^$/, stderr = /^$/ }] of Object.entries(rows))
      await t.test(`svc-gate ${name} ends as its row says`, async (own) => {
        const args = [...name.split(" "), ...words];
        const ended = await finish(own, args, { cwd: setup.desk.folder, env, input });
        assert.equal(ended.code, code, `${ended.stdout}${ended.stderr}`);
        assert.match(ended.stdout, stdout);
        assert.match(ended.stderr, stderr);
        if (repeatable.includes(name)) assert.deepEqual(await command(args, { env, input }), ended);
      });
  });

  test("commands read and write only what main was given, so a call in a test's process is the same", () => {
    const entry = "packages/svc-gate/src/main.ts";
    // It starts the program again, which has no other name.
    const starter = "packages/workbench/src/commands/import-tools/agent-command.ts";
    const files = globSync(["packages/{svc-gate,records,workbench}/src/**/*.ts", "packages/gate/src/cli/**/*.ts"], {
      cwd: root,
    });
    const reading = /\bprocess\.(?:argv|cwd|env|exit|exitCode|on|once|stderr|stdin|stdout)\b/;
    const found = files.filter((file) => reading.test(readFileSync(join(root, file), "utf8")));
    assert.deepEqual(found.map((file) => file.replaceAll("\\", "/")).toSorted(), [entry, starter]);
  });

  for (const signal of ["SIGINT", "SIGTERM"] as const)
    test(`svc-gate serve prints where it listens, and ends with exit code 0 on ${signal}`, async (t) => {
      const folder = temporaryFolder(t);
      writeContracts(folder, {});
      const gate = await spawnGate(t, ["--log", "silent"], { cwd: folder, env: { SVC_API_KEY: key } });
      gate.kill(signal);
      assert.equal(await gate.exit, 0, gate.stderr());
      assert.match(gate.stdout(), /^svc-gate listens on [^]*\nstopped: every request is answered and recorded\n$/);
      assert.equal(gate.stderr(), "");
    });
});
