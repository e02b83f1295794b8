/**
 * Goal: a lost disk loses no more rows than it must, and the loss is always reported. Method: the drill with real
 * processes: load, a backup during the load, more load, then the data folder is destroyed. The test reads each
 * command's answer, the gate's decisions, and the results of verify and replay. The clock is moved before the gate
 * starts. A restore that does not ask the pin must be noticed. UPDATE_GOLDEN=1 rewrites the sentences.
 */
import assert from "node:assert/strict";
import { hash as digestOf } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test, type TestContext } from "node:test";
import { control } from "../support/controls/control.ts";
import type { Mutation } from "../support/mutation/mutate.ts";
import { mutatedEnvironment, preload } from "../support/mutation/sources.ts";
import { command } from "../support/command.ts";
import {
  check,
  finish,
  key,
  spawnGate,
  temporaryFolder,
  writeContracts,
  type ProcessOptions,
  type Spawned,
} from "../support/gate.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const contract = `contract: purse
platform: { type: object, required: [wallet], properties: { wallet: { type: string } } }
tools:
  pay:
    input: { type: object, additionalProperties: false, required: [amount], properties: { amount: { type: number, minimum: 0 } } }
    requires: [{ when: platform.present, reason: no wallet }]
    otherwise: ALLOW
  look: { input: { type: object, additionalProperties: true }, otherwise: ALLOW }
counters:
  spent: { of: [pay], per: platform.wallet, sum: input.amount, counting: released, within: 24h }
  looks: { of: [look], per: session }
rules:
  - { rule: budget, on: [pay], when: counters.spent + input.amount > 100, verdict: BLOCK, reason: "{counters.spent} is spent" }
  - { rule: often, on: [look], when: counters.looks >= 3, verdict: BLOCK, reason: "{counters.looks} looks" }
`;

const pay = (amount: number): object => ({ tool_name: "pay", tool_input: { amount }, platform_state: { wallet: "w" } });
const look = { tool_name: "look", tool_input: {}, session_id: "s" };
const dayMs = 86_400_000;

/** The folders of a gate in the drill: its pin is on another disk than its data. */
interface Site {
  readonly t: TestContext;
  readonly folder: string;
  readonly data: string;
  readonly pin: string;
  readonly env: Readonly<Record<string, string>>;
}

function siteOf(t: TestContext): Site {
  const folder = temporaryFolder(t);
  const mandate = writeContracts(folder, { contracts: { "purse.yaml": contract } });
  const [data, other] = [join(folder, "data"), join(folder, "other")];
  mkdirSync(other);
  const pin = join(other, "head.pin");
  const env = {
    SVC_API_KEY: key,
    SVC_DATA_DIR: data,
    SVC_PIN: pin,
    SVC_MANDATE: mandate,
    SVC_MODE: "enforce",
    SVC_LOG: "silent",
  };
  return { t, folder, data, pin, env };
}

/** Starts the gate, with its clock ahead of the machine's. */
async function serve({ t, env, folder }: Site, aheadMs = 0): Promise<Spawned> {
  const clock = join(folder, "clock.mjs");
  writeFileSync(clock, "const { now } = Date;\nDate.now = () => now() + Number(process.env.AHEAD_MS);\n");
  return spawnGate(t, [], { env: { ...env, AHEAD_MS: String(aheadMs) }, preload: [clock] });
}

async function stop(gate: Spawned): Promise<void> {
  gate.kill("SIGTERM");
  assert.equal(await gate.exit, 0);
}

function run({ env }: Site, ...args: readonly string[]): ReturnType<typeof command> {
  return command(args, { env });
}

async function done(site: Site, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(site, ...args);
  assert.deepEqual([code, stderr], [0, ""], args.join(" "));
  return stdout;
}

/** Resumes after a restore, and lifts the stop of every call that the resume sets: two rows. */
async function resumeAndLift(site: Site, ...args: readonly string[]): Promise<string> {
  const said = await done(site, "resume", "--after-restore", ...args);
  await done(site, "stop", "--lift");
  return said;
}

/** Returns the error of a refused command. */
async function refused(site: Site, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(site, ...args);
  assert.deepEqual([code, stdout], [2, ""], args.join(" "));
  return stderr.trimEnd();
}

/** Returns the one line that contains this text. */
function lineWith(part: string, text: string): string {
  const [line, ...others] = text.split("\n").filter((each) => each.includes(part));
  assert.ok(line !== undefined && others.length === 0, text);
  return line;
}

/** Replaces the row numbers that differ in every run by names. Any other number stays, so that a change is noticed. */
function withNamed(text: string, rows: Readonly<Record<string, number>>): string {
  const names = new Map(Object.entries(rows).map(([name, row]) => [String(row), name]));
  return text.replaceAll(/(?<![\w:.-])\d+(?![\w-]|[:.]\d)/g, (number) => names.get(number) ?? number);
}

interface Answer {
  readonly verdict: string;
  readonly reason: string;
  readonly receipt: { readonly seq: number; readonly hash: string };
}

async function ask(gate: Spawned, body: object): Promise<Answer> {
  const { status, json } = await check(gate, body);
  assert.equal(status, 200);
  return json as Answer;
}

/** Makes calls without a pause until told to end. */
function load(gate: Spawned): { end(): Promise<number> } {
  const state = { isEnding: false, calls: 0 };
  const client = async (at: number): Promise<void> => {
    for (; !state.isEnding; state.calls += 1) await ask(gate, { ...look, session_id: `load-${at}` });
  };
  const clients = Promise.all(Array.from({ length: 8 }, (_, at) => client(at)));
  return {
    end: async () => {
      state.isEnding = true;
      await clients;
      return state.calls;
    },
  };
}

interface Lost {
  readonly backup: string;
  /** The last row of the backup, and the last row that was answered. */
  readonly kept: number;
  readonly last: number;
  readonly answers: readonly Answer[];
}

/** Makes load, a backup during it and more load; then removes the data folder. */
async function lose(site: Site): Promise<Lost> {
  const gate = await serve(site);
  const answers = [await ask(gate, pay(30)), await ask(gate, look)];
  const running = load(gate);
  while (answers.length < 20) answers.push(await ask(gate, { ...look, session_id: "before" }));
  const backup = join(site.folder, "backup");
  const said = await done(site, "backup", backup, "--with-signing-key", "--json");
  assert.ok((await running.end()) > 0, "no call was answered beside the backup");
  const kept: number = JSON.parse(said).ledgers[0].rows;
  answers.push(await ask(gate, pay(50)), await ask(gate, look));
  await stop(gate);
  rmSync(site.data, { recursive: true });
  const last = answers.at(-1)?.receipt.seq ?? 0;
  assert.ok(kept >= 20 && kept < last - 1);
  return { backup, kept, last, answers };
}

/** Returns two answers that name the same sequence number but belong to different rows. */
function forks(answers: readonly Answer[]): readonly number[] {
  const hashes = new Map<number, string>();
  return answers.flatMap(({ receipt: { seq, hash } }) => {
    const other = hashes.get(seq) ?? hash;
    hashes.set(seq, hash);
    return other === hash ? [] : [seq];
  });
}

test("resume records the rows lost since the backup, and sums stay unknown until their window passes", async (t) => {
  const site = siteOf(t);
  const { backup, kept, last } = await lose(site);
  const started = await run(site, "serve", "--port", "0");
  assert.equal(started.code, 1);
  says("serve-without-its-ledger", started.stderr.trimEnd());
  const rows = { KEPT: kept, "KEPT+1": kept + 1, LAST: last };
  const pinBefore = readFileSync(site.pin, "utf8");
  says("restore-of-a-backup-behind-the-pin", withNamed(await refused(site, "restore", backup), rows));
  assert.ok(!existsSync(join(site.data, "ledger.db")));
  assert.equal(readFileSync(site.pin, "utf8"), pinBefore);

  const said = await done(site, "resume", "--after-restore", backup, "--reason", "the disk died", "--by", "Ada");
  const [recorded = ""] = said.split("\n");
  says("resume-after-a-loss", withNamed(recorded, rows));
  says("resume-stops-every-call", lineWith("stop --lift", said));
  assert.match(said, /\bpurse\.spent {2}\d{4}-\d\d-\d\dT/);
  says("lifetime-counter-after-a-loss", /^.*\bpurse\.looks\b.*$/m.exec(said)?.[0].trim() ?? "");
  const verified = JSON.parse(await done(site, "verify", "--json"));
  assert.deepEqual([verified.ok, verified.rows, verified.anchored.seq], [true, kept + 1, kept + 1]);
  says("resume-without-a-loss", withNamed(await refused(site, "resume", "--after-restore", "--reason", "again"), rows));

  await done(site, "stop", "--lift");
  let gate = await serve(site);
  const unknown = await ask(gate, pay(1));
  assert.equal(unknown.receipt.seq, kept + 3);
  assert.equal(unknown.verdict, "BLOCK");
  says("sum-not-known", unknown.reason);
  await stop(gate);
  gate = await serve(site, dayMs - 900_000);
  assert.equal((await ask(gate, pay(1))).reason, unknown.reason);
  await stop(gate);
  gate = await serve(site, dayMs + 60_000);
  assert.equal((await ask(gate, pay(60))).verdict, "ALLOW");
  assert.equal((await ask(gate, pay(41))).reason, "Svc: 60 is spent");
  says("lifetime-counter-not-known", (await ask(gate, look)).reason);
  await stop(gate);

  const row = (await done(site, "replay", "--json")).trim();
  assert.deepEqual(JSON.parse(row).disagreements, 0);
  assert.deepEqual(JSON.parse(row).skipped, []);
  assert.match(await done(site, "verify", "--deep"), /^ok: .*/);
  const { body, reason, by } = resumeRow(site, kept + 1);
  assert.deepEqual([body.lost, body.pin.seq, reason, by], [[kept + 1, last], last, "Svc: Ada: the disk died", "Ada"]);
});

function resumeRow({ data }: Site, seq: number): { body: any; reason: string; by: string; effects: any } {
  const database = new DatabaseSync(join(data, "ledger.db"), { readOnly: true });
  const row = database.prepare("SELECT leaf, evidence FROM receipts WHERE seq = ?").get(seq);
  database.close();
  const parts = String(row?.["evidence"])
    .split("~")
    .map((part) => JSON.parse(Buffer.from(part, "base64url").toString())[2]);
  const leaf = JSON.parse(String(row?.["leaf"]));
  assert.deepEqual([leaf.kind, leaf.act], ["change", "resume"]);
  return { body: parts[1], reason: parts[3], by: leaf.key, effects: parts[5] };
}

test("a lifetime counter stays unknown after a loss until an operator resets it", async (t) => {
  const site = siteOf(t);
  const { backup, kept } = await lose(site);
  const why = ["--reason", "nobody can say what was lost", "--by", "Ada"];
  const said = await resumeAndLift(site, backup, ...why, "--reset", "purse.spent");
  const [unknown = "", zeroed = ""] = said.trimEnd().split("\n").slice(-2);
  says("resume-names-what-stays-unknown", unknown);
  says("resume-names-what-it-resets", withNamed(zeroed, { "KEPT+1": kept + 1 }));
  const { body, effects } = resumeRow(site, kept + 1);
  assert.deepEqual(effects, []);
  assert.deepEqual([body.reset.length, body.reset[0][1], body.unknown.length], [1, "purse.spent", 1]);

  // 30 were spent before the backup and 50 after it; from the reset row on, neither counts.
  let gate = await serve(site);
  says("serve-after-a-reset", withNamed(lineWith("purse.spent", gate.stdout()), { "KEPT+1": kept + 1 }));
  assert.equal((await ask(gate, pay(99))).verdict, "ALLOW");
  assert.equal((await ask(gate, pay(2))).reason, "Svc: 99 is spent");
  assert.match((await ask(gate, look)).reason, /purse\.looks is unknown/);
  await stop(gate);
  const both = await refused(site, "resume", ...why, "--reset", "purse.looks", "--reset", "purse.spent");
  assert.match(both, /purse\.spent is known/);
  says("reset-of-no-counter", await refused(site, "resume", ...why, "--reset", "purse.look"));
  const later = await done(site, "resume", ...why, "--reset", "purse.looks");
  const [first = "", second = ""] = later.split("\n");
  says("later-reset", withNamed(first, { "KEPT+6": kept + 6 }));
  says("later-reset-names-the-counter", withNamed(second, { "KEPT+6": kept + 6 }));
  assert.match(await refused(site, "resume", ...why, "--reset", "purse.looks"), /purse\.looks is known/);
  gate = await serve(site);
  for (let call = 0; call < 3; call += 1) assert.equal((await ask(gate, look)).verdict, "ALLOW");
  assert.equal((await ask(gate, look)).reason, "Svc: 3 looks");
  assert.equal((await ask(gate, pay(2))).reason, "Svc: 99 is spent", "what another row has reset goes on");
  await stop(gate);

  assert.match(await done(site, "verify"), /^ok: /);
  const again = JSON.parse(await done(site, "replay", "--json"));
  assert.deepEqual([again.disagreements, again.skipped], [0, []]);
  assert.match(await done(site, "verify", "--deep"), /^ok: .*/);
  const out = join(site.folder, "export");
  await done(site, "export", out);
  assert.match(await done(site, "verify", out, "--deep"), /^ok: /);
  const report = JSON.parse(await done(site, "report", "--json"));
  assert.deepEqual(
    report.resets.map(({ seq, counters }: { seq: number; counters: readonly string[] }) => [seq, counters]),
    [
      [kept + 1, ["purse.spent"]],
      [kept + 6, ["purse.looks"]],
    ],
  );
  const reported = lineWith("purse.spent", await done(site, "report"));
  says("report-of-a-reset", withNamed(reported, { "KEPT+1": kept + 1 }));
  const explained = await done(site, "explain", "--receipt", String(kept + 10));
  const receipts = [7, 8, 9].map((after) => `receipt ${kept + after} (1)`).join(", ");
  assert.ok(explained.includes(` from ${receipts}\n`), explained);
});

/** Mutations that remove the reset from each reader, and the command whose output must then differ. */
const resetIgnored: readonly (readonly [mutation: Mutation, args: readonly string[]])[] = [
  [{ within: "resumeCounters", find: "resetThroughOf(leaf.at)", put: "-1" }, ["replay", "--json"]],
  [{ within: "resumeCounters", find: "resetThroughOf(leaf.at)", put: "-1" }, ["verify", "--deep"]],
];

control("positive control: a gate, replay or deep verification that ignores a reset is noticed", async (t) => {
  const site = siteOf(t);
  const { backup, kept: backedUp } = await lose(site);
  const reset = ["--reset", "purse.spent", "--reset", "purse.looks"];
  await resumeAndLift(site, backup, "--reason", "r", ...reset);
  let gate = await serve(site);
  assert.equal((await ask(gate, pay(99))).verdict, "ALLOW");
  await stop(gate);
  for (const [mutation, args] of resetIgnored) {
    assert.equal((await run(site, ...args)).code, 0, mutation.within);
    assert.equal((await finish(t, args, wrong(site, mutation))).code, 1, mutation.within);
  }
  const database = new DatabaseSync(join(site.data, "ledger.db"));
  const counters = database.prepare("SELECT * FROM counters").all();
  for (const { id, digest, through, unknown_through: unknownThrough, folded } of counters) {
    const kept = [id, digest, through, unknownThrough, -1, folded];
    const seal = digestOf("sha256", JSON.stringify(kept), "hex");
    database.prepare("UPDATE counters SET reset_through = -1, seal = ? WHERE id = ?").run(seal, Number(id));
  }
  database.close();
  const deep = await run(site, "verify", "--deep");
  const found = withNamed(lineWith("purse.spent", deep.stderr), { "KEPT+3": backedUp + 3 });
  says("deep-reset-at-another-moment", found);
  gate = await serve(site);
  assert.equal((await ask(gate, pay(1))).reason, "Svc: 129 is spent", "positive control: the gate reads the table");
  await stop(gate);
  assert.equal((await run(site, "replay", "--json")).code, 1);
});

test("restore accepts a complete backup, and the gate continues at the next row", async (t) => {
  const site = siteOf(t);
  let gate = await serve(site);
  const answers = [await ask(gate, pay(30)), await ask(gate, pay(1))];
  await stop(gate);
  const backup = join(site.folder, "deep", "backup");
  says("backup", lineWith("svc-gate/", await done(site, "backup", backup, "--with-signing-key")));
  says("backup-into-a-folder-that-is-there", await refused(site, "backup", backup));
  says("restore-over-a-ledger", await refused(site, "restore", backup));
  renameSync(site.data, join(site.folder, "old"));
  says("resume-where-nothing-is-lost", await refused(site, "resume", "--after-restore", backup, "--reason", "r"));
  says("restore-of-a-complete-backup", (await done(site, "restore", backup)).trimEnd());
  gate = await serve(site);
  answers.push(await ask(gate, pay(70)));
  assert.deepEqual(
    answers.map(({ receipt, verdict }) => [receipt.seq, verdict]),
    [1, 2, 3].map((seq) => [seq, seq === 3 ? "BLOCK" : "ALLOW"]),
  );
  await stop(gate);
});

test("after data and pin are lost, no gate starts until an operator runs resume", async (t) => {
  const site = siteOf(t);
  const gate = await serve(site);
  await ask(gate, pay(30));
  await stop(gate);
  const backup = join(site.folder, "backup");
  await done(site, "backup", backup, "--with-signing-key");
  for (const gone of [site.data, site.pin]) rmSync(gone, { recursive: true });
  const restored = await done(site, "restore", backup);
  says("restore-without-a-pin", lineWith(site.pin, restored));
  const started = await run(site, "serve", "--port", "0");
  assert.equal(started.code, 1);
  says("serve-without-its-pin", started.stderr.trimEnd());
  const said = await resumeAndLift(site, "--reason", "all is gone");
  const [recorded = ""] = said.split("\n");
  says("resume-without-a-pin", recorded);
  const again = await serve(site);
  assert.match((await ask(again, pay(1))).reason, /purse\.spent is unknown/);
  await stop(again);
});

test("a signing key from a variable appears in no message and in no restored file", async (t) => {
  const site = siteOf(t);
  await done(site, "keygen", "--data-dir", site.data);
  const text = readFileSync(join(site.data, "signing.key"), "utf8");
  const given = { ...site, env: { ...site.env, SVC_SIGNING_KEY: text } };
  const gate = await serve(given);
  await ask(gate, pay(30));
  await stop(gate);
  const [, secret = ""] = text.split("\n");
  const { stderr } = await run(given, "backup", join(site.folder, "with"), "--with-signing-key");
  says("backup-of-a-key-from-a-variable", stderr.trimEnd());
  assert.ok(!stderr.includes(secret));
  const backup = join(site.folder, "backup");
  says("backup-with-its-key", lineWith("signing.key", await done(site, "backup", backup, "--with-signing-key")));
  rmSync(site.data, { recursive: true });
  const restored = await command(["restore", backup], { env: given.env });
  assert.equal(restored.code, 0, restored.stderr);
  const made = readdirSync(site.folder, { recursive: true }).map(String);
  assert.ok(made.includes(join("backup", "signing.key")), "positive control: the backup has it");
  assert.ok(!made.includes(join("data", "signing.key")) && !made.some((path) => path.includes("BEGIN")), made.join());
});

test("restore refuses a backup in which a byte was changed", async (t) => {
  const site = siteOf(t);
  const gate = await serve(site);
  await ask(gate, pay(30));
  await stop(gate);
  const backup = join(site.folder, "backup");
  await done(site, "backup", backup, "--with-signing-key");
  rmSync(site.data, { recursive: true });
  const file = join(backup, "ledger.db");
  const whole = readFileSync(file);
  const paths = [
    [0, "header"],
    [whole.indexOf('"seq":1'), "leaf"],
    [whole.indexOf('"answered"'), "leaf"],
    [whole.indexOf("contract: purse"), "contract"],
  ] as const;
  for (const [path, of] of paths) {
    assert.ok(path >= 0);
    const flipped = Buffer.from(whole);
    flipped.writeUInt8(flipped.readUInt8(path + 3) ^ 1, path + 3);
    writeFileSync(file, flipped);
    says(`restore-of-a-backup-whose-${of}-was-changed`, await refused(site, "restore", backup));
  }
  writeFileSync(file, whole);
  const pin = join(backup, "head.pin");
  const pinned = readFileSync(pin, "utf8");
  writeFileSync(
    pin,
    pinned.replace(/"hash":"./, (text) => `${text.slice(0, -1)}${text.endsWith("0") ? "1" : "0"}`),
  );
  says("restore-of-a-backup-whose-pin-was-changed", await refused(site, "restore", backup));
  rmSync(pin);
  says("restore-of-a-backup-without-its-pin", await refused(site, "restore", backup));
  writeFileSync(pin, pinned);
  await done(site, "restore", backup);
});

/** Returns the arguments that start a command with a defect in its sources. */
function wrong({ env }: Site, mutation: Mutation): ProcessOptions {
  return { env: { ...env, ...mutatedEnvironment([mutation]) }, preload: [preload] };
}

control("positive control: a restore that ignores the head pin is noticed by forked answers", async (t) => {
  const site = siteOf(t);
  const { backup, answers } = await lose(site);
  assert.deepEqual(forks(answers), []);
  const blind: Mutation = { within: "divergenceOf", find: 'return "truncated";', put: "return undefined;" };
  const restored = await finish(t, ["restore", backup], wrong(site, blind));
  assert.equal(restored.code, 0, restored.stderr);
  const gate = await serve(site);
  const later = [];
  while ((later.at(-1)?.receipt.seq ?? 0) < (answers.at(-1)?.receipt.seq ?? 0)) later.push(await ask(gate, pay(1)));
  assert.ok(forks([...answers, ...later]).length > 0, "the fork was not noticed");
  assert.ok(later.some(({ verdict }) => verdict === "ALLOW"));
  await stop(gate);
});

control(
  "positive control: a resume that leaves counters known is noticed by replay and deep verification",
  async (t) => {
    const site = siteOf(t);
    const { backup } = await lose(site);
    const forgetful: Mutation = {
      within: "appendResume",
      find: "Math.max(unknownThrough, now)",
      put: "unknownThrough",
    };
    const args = ["resume", "--after-restore", backup, "--reason", "r"];
    const resumed = await finish(t, args, wrong(site, forgetful));
    assert.equal(resumed.code, 0, resumed.stderr);
    await done(site, "stop", "--lift");
    const gate = await serve(site);
    assert.equal((await ask(gate, pay(70))).verdict, "ALLOW", "30 before the backup, 50 after it, and 70 now");
    await stop(gate);
    for (const words of [
      ["replay", "--json"],
      ["verify", "--deep"],
    ])
      assert.equal((await run(site, ...words)).code, 1, words.join(" "));
  },
);
