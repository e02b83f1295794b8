/**
 * Goal: the cron job of docs/guides/anchors.md collects checkpoints, and they let a start refuse a rolled-back ledger.
 * Method: the page's own commands run against gates of this test, with its addresses and paths filled in; their output
 * is compared with the page. The control names no file, and serves.
 */
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { appendFileSync, cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { promisify } from "node:util";
import { restoreCommand } from "../../packages/gate/src/cli/restore.ts";
import { command } from "../support/command.ts";
import {
  ask,
  check,
  desk,
  finish,
  root,
  spawnGate,
  startGate,
  temporaryFolder,
  type Running,
} from "../support/gate.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

function refusedAs(name: string): (error: Error) => boolean {
  return ({ message }) => {
    says(name, message);
    return true;
  };
}

const page = readFileSync(join(root, "docs", "guides", "anchors.md"), "utf8");
const contracts = { "desk.yaml": desk };
const call = { tool_name: "note.add", tool_input: {} };
const hasCurl = spawnSync("curl", ["--version"]).status === 0;

function block(name: string): string {
  const found = new RegExp(`<!-- anchors: ${name} -->\\n\`\`\`\\w+\\n([^]*?)\\n\`\`\`\\n`).exec(page)?.[1];
  assert.ok(found !== undefined, `docs/guides/anchors.md has no block "${name}"`);
  return found;
}

/** Returns the arguments of the command `svc-gate` in a block. */
function argumentsIn(name: string): readonly string[] {
  const line = block(name)
    .split("\n")
    .find((each) => each.startsWith("svc-gate "));
  return line?.split(" ").slice(1) ?? [];
}

/** Runs the command of the page's cron line. */
async function runJob(folder: string, address: string): Promise<void> {
  const job = / {2}watcher {2}(\(.*)$/.exec(block("job"))?.[1] ?? "exit 1";
  const here = job
    .replace("/etc/svc-gate/watcher", join(folder, "watcher"))
    .replace("https://gate.example.org", address)
    .replace("/srv/seen/gate", join(folder, "seen"));
  await promisify(execFile)("sh", ["-c", here]);
}

async function answered(gate: Running, count = 1): Promise<void> {
  for (let n = 0; n < count; n += 1) assert.equal((await check(gate, call)).status, 200);
}

/**
 * Makes a key's row and a call, then two more calls; runs the job after each. The folder has an older copy of its data.
 */
async function collected(t: TestContext): Promise<string> {
  const folder = temporaryFolder(t);
  const flags = { "ledger-name": "example.org/desk" };
  const first = await startGate(t, { folder, contracts, flags });
  const made = await command([...argumentsIn("key"), "--data-dir", join(folder, "data")]);
  assert.equal(made.code, 0, made.stderr);
  writeFileSync(join(folder, "watcher"), `Authorization: Bearer ${made.stdout}`);
  await answered(first);
  await runJob(folder, first.address);
  await first.stop();
  await runJob(folder, first.address); // no gate answers: nothing is collected, and nothing is lost
  cpSync(join(folder, "data"), join(folder, "older"), { recursive: true });
  const second = await startGate(t, { folder, contracts });
  await answered(second, 2);
  await runJob(folder, second.address);
  await second.stop();
  return folder;
}

function rollBack(folder: string): void {
  rmSync(join(folder, "data"), { recursive: true });
  cpSync(join(folder, "older"), join(folder, "data"), { recursive: true });
}

test(
  "with the cron job of docs/guides/anchors.md, a start and verify refuse a rolled-back ledger",
  {
    skip: hasCurl ? false : "curl is not installed",
  },
  async (t) => {
    const folder = await collected(t);
    const sizes = readFileSync(join(folder, "seen"), "utf8").match(/^[0-9]+$/gm);
    assert.deepEqual(sizes, ["2", "4"], "the job has collected both");
    const cwd = { cwd: folder };
    const whole = await finish(t, argumentsIn("verify"), cwd);
    assert.match(`${whole.code} ${whole.stdout}`, /^0 ok: 4 /);
    says("anchored-by-the-file", whole.stdout.split("\n").find((line) => line.includes("seen")) ?? "");
    rollBack(folder);
    const serving = [...argumentsIn("start"), "--port", "0", "--log", "silent"];
    const refused = await finish(t, serving, cwd);
    assert.deepEqual([refused.code, refused.stderr], [1, `${block("refusal")}\n`]);
    const broken = await finish(t, argumentsIn("verify"), cwd);
    assert.deepEqual([broken.code, broken.stderr], [1, `${block("broken")}\n`]);
    const bySetting = await command(["verify"], { folder, env: { SVC_SEEN: join(folder, "seen") } });
    assert.deepEqual([bySetting.code, bySetting.stderr], [1, `${block("broken")}\n`]);
    assert.equal((await command(["verify"], { folder })).code, 0, "control: nobody is asked");
    const blind = await spawnGate(t, ["--log", "silent"], cwd);
    blind.kill("SIGTERM");
    await blind.exit;
  },
);

test(
  "the gate starts again after svc-gate resume has read the collected checkpoints",
  {
    skip: hasCurl ? false : "curl is not installed",
  },
  async (t) => {
    const folder = await collected(t);
    rollBack(folder);
    const flags = { seen: join(folder, "seen") };
    await assert.rejects(startGate(t, { folder, contracts, flags }), refusedAs("checkpoint-through-row-4"));
    const seen = ["--seen", join(folder, "seen")];
    const resume = ["resume", "--after-restore", "--reason", "the disk is gone", ...seen];
    const { code, stderr, stdout } = await command(resume, { folder });
    assert.equal(code, 0, stderr);
    says("loss-of-rows-3-to-4", String(stdout.split("\n")[0]));
    const again = await startGate(t, { folder, contracts, flags });
    await answered(again, 2);
    await runJob(folder, again.address);
    await again.stop();
    assert.equal((await command(["verify", ...seen], { folder })).code, 0);
    rollBack(folder);
    await assert.rejects(startGate(t, { folder, contracts, flags }), refusedAs("checkpoint-through-row-5"));
  },
);

test("a start, verify and restore refuse a file without a checkpoint of the ledger", async (t) => {
  const folder = temporaryFolder(t);
  const gate = await startGate(t, { folder, contracts });
  await answered(gate);
  const own = (await ask(gate, "/checkpoint")).text;
  await gate.stop();
  const file = join(folder, "seen");
  writeFileSync(file, own.replaceAll(gate.ledger.name, "example.org/other"));
  const verified = await command(["verify", "--seen", file], { folder });
  assert.equal(verified.code, 2);
  assert.ok(verified.stderr.includes(gate.ledger.name), verified.stderr);
  says("no-checkpoint-for-verify", verified.stderr);
  await assert.rejects(
    startGate(t, { folder, contracts, flags: { seen: file } }),
    refusedAs("no-checkpoint-for-start"),
  );
  const backup = join(folder, "backup");
  assert.equal((await command(["backup", backup], { folder })).code, 0);
  const restoring = { dataDir: join(folder, "elsewhere"), seen: [file] };
  await assert.rejects(restoreCommand(backup, restoring), refusedAs("no-checkpoint-for-restore"));
  appendFileSync(file, `\n${own}`);
  says("row-1-is-there", String((await restoreCommand(backup, restoring)).text.split("\n").at(-1)));
  const exported = await command(["verify", "p.tlog-proof", "--seen", "seen"]);
  says("seen-for-a-proof", exported.stderr);
});

test("the gate refuses a tenant's rolled-back ledger and still serves the root", async (t) => {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, "tenants.yaml"), "tenants:\n  acme: { mandate: mandate.yaml, mode: enforce }\n");
  const flags = { tenants: join(folder, "tenants.yaml") };
  const options = { folder, contracts, flags };
  const acme = join(folder, "data", "tenants", "acme");
  const keyOf = async (name: string, scope: string): Promise<string> => {
    const args = ["keys", "create", name, "--tenant", "acme", "--scopes", scope, "--quiet"];
    const { stdout } = await command(args, { folder });
    return `Bearer ${stdout.trim()}`;
  };
  const first = await startGate(t, options);
  const [agent, watcher] = [await keyOf("agent", "check"), await keyOf("watcher", "metrics")];
  const theirs = (gate: Running): ReturnType<typeof ask> => {
    const headers = { authorization: agent, "content-type": "application/json" };
    return ask(gate, "/t/acme/check", { method: "POST", headers, body: JSON.stringify(call) });
  };
  assert.equal((await theirs(first)).status, 200);
  await first.stop();
  cpSync(acme, join(folder, "older"), { recursive: true });
  const second = await startGate(t, options);
  assert.equal((await theirs(second)).status, 200);
  const heads = [
    await ask(second, "/checkpoint"),
    await ask(second, "/t/acme/checkpoint", { headers: { authorization: watcher } }),
  ];
  assert.deepEqual(
    heads.map(({ status }) => status),
    [200, 200],
  );
  await second.stop();
  const seen = join(folder, "seen");
  writeFileSync(seen, heads.map(({ text }) => text).join(""));
  const paused = { ...options, flags: { ...flags, seen } };
  const whole = await startGate(t, paused);
  assert.equal((await theirs(whole)).status, 200, "control: nothing is lost");
  await whole.stop();
  rmSync(acme, { recursive: true });
  cpSync(join(folder, "older"), acme, { recursive: true });
  const third = await startGate(t, paused);
  assert.equal((await theirs(third)).json.code, "tenant-unavailable");
  await answered(third);
});
