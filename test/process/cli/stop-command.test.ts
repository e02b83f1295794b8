/**
 * Goal: `svc-gate stop` sets, lists and lifts stops on a gate or on a ledger that no gate serves, and reports the result.
 * Method: the program runs with a serving gate, with no gate, and with a gate at a URL. UPDATE_GOLDEN=1 rewrites the
 * sentences.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { command } from "../../support/command.ts";
import { check, finish, key, spawnGate, startGate, temporaryFolder, type Running } from "../../support/gate.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

type Run = (...args: readonly string[]) => Promise<string>;

/** Runs `svc-gate stop`, which must succeed, and returns its output. */
function stopIn(data: string): Run {
  return async (...args) => {
    const { code, stdout, stderr } = await command(["stop", ...args, "--data-dir", data]);
    assert.deepEqual([code, stderr], [0, ""], args.join(" "));
    return stdout.trimEnd();
  };
}

async function answerOf(gate: Pick<Running, "address">, call: object = {}): Promise<string> {
  const { json } = await check(gate, { tool_name: "note.add", tool_input: {}, ...call });
  return `${json.verdict} ${json.reason}`;
}

const why = ["--why", "the agent pays the wrong people"] as const;

test("stop blocks every call on the gate that serves the folder, shows the stop, and lifts it", async (t) => {
  const gate = await startGate(t);
  const stop = stopIn(join(gate.folder, "data"));
  says("no-stop", await stop("--list"));
  says("stopped-every-call", await stop(...why));
  says("blocked-call", await answerOf(gate));
  says("a-stop-in-the-list", await stop("--list"));
  const { stops } = JSON.parse(await stop("--list", "--json"));
  assert.deepEqual([stops.length, stops[0].scope, stops[0].person, stops[0].receipt], [1, "all", "operator", 1]);
  says("lifted-every-call", await stop("--lift"));
  assert.match(await answerOf(gate), /^ALLOW /);
  says("no-stop", await stop("--list"));
});

test("stop blocks only the calls that its options name, and `--lift` needs the same options", async (t) => {
  const gate = await startGate(t);
  const stop = stopIn(join(gate.folder, "data"));
  const scopes = [
    ["--tool", "note.add", "--tool", "visit"],
    ["--key", "default"],
    ["--key", "default", "--session", "s1"],
  ];
  for (const scope of scopes) {
    const name = scope.filter((part) => part.startsWith("--")).join("");
    says(`stopped${name}`, (await stop(...scope, ...why)).replace(/\brow \d+/, "row ROW"));
    assert.match(await answerOf(gate, { session_id: "s1" }), /^BLOCK .* stopped /);
    const { receipt } = JSON.parse(await stop("--lift", ...scope, "--json"));
    assert.equal(receipt.seq, gate.ledger.head.seq);
    assert.match(await answerOf(gate, { session_id: "s1" }), /^ALLOW /);
  }
});

test("without a gate, stop writes to the ledger directly, and the next gate blocks the calls", async (t) => {
  const folder = temporaryFolder(t);
  await (await startGate(t, { folder })).stop();
  const data = join(folder, "data");
  const stop = stopIn(data);
  says("stopped-every-call", await stop(...why));
  says("a-stop-in-the-list", await stop("--list"));
  let gate = await startGate(t, { folder });
  says("blocked-call", await answerOf(gate));
  await gate.stop();
  says("lifted-every-call", await stop("--lift", "--why", "checked"));
  says("no-stop", await stop("--list"));
  gate = await startGate(t, { folder });
  assert.match(await answerOf(gate), /^ALLOW /);
});

test("without a gate, stop finds the head pin outside the folder by `--pin`, and moves it", async (t) => {
  const folder = temporaryFolder(t);
  const pin = join(folder, "head.pin");
  const first = await startGate(t, { folder, flags: { pin } });
  await answerOf(first);
  await first.stop();
  const data = join(folder, "data");
  for (const args of [why, ["--list"]]) {
    const { code, stdout, stderr } = await command(["stop", ...args, "--data-dir", data]);
    assert.deepEqual([code, stdout], [2, ""], "control: it knows the pin without the option");
    says("pin-outside-the-folder", stderr.trimEnd());
  }
  const before = readFileSync(pin, "utf8");
  const stop = stopIn(data);
  says("stopped-in-row-2", await stop(...why, "--pin", pin));
  assert.notEqual(readFileSync(pin, "utf8"), before);
  says("a-stop-in-the-list", await stop("--list", "--pin", pin));
  says("blocked-call", await answerOf(await startGate(t, { folder, flags: { pin } })));
});

test("a gate that starts while a stop is in force says so, and after the lift it does not", async (t) => {
  const folder = temporaryFolder(t);
  await (await startGate(t, { folder })).stop();
  const data = join(folder, "data");
  const stop = stopIn(data);
  const warned = async (): Promise<string> => {
    const gate = await spawnGate(t, [], { cwd: folder, env: { SVC_API_KEY: key, SVC_DATA_DIR: data } });
    gate.kill("SIGTERM");
    assert.equal(await gate.exit, 0, gate.stderr());
    const warnings = gate.stdout().matchAll(/^ {2}warning {3}(.+)$/gm);
    return [...warnings].map(([, warning = ""]) => warning).find((warning) => warning.includes("stop")) ?? "";
  };
  await stop(...why);
  says("the-start-warns", await warned());
  await stop("--lift", "--why", "checked");
  assert.equal(await warned(), "");
});

/** Wrong options, and the sentence for each. */
const mistakes: readonly (readonly [args: readonly string[], name: string])[] = [
  [[], "no-reason"],
  [["--tool", "note.add"], "no-reason"],
  [["--why", " "], "empty-reason"],
  [["--why", "two\nlines"], "reason-on-two-lines"],
  [["--tool", "note.add", "--key", "default", ...why], "tools-and-a-key"],
  [["--session", "s1", ...why], "session-without-its-key"],
  [["--tool", "note.*", ...why], "pattern"],
  [["--tool", "note.add", "--tool", "note.add", ...why], "a-tool-twice"],
  [["--lift", "--keep"], "keep-with-lift"],
  [["--list", ...why], "list-with-other-options"],
  [["--lift"], "no-such-stop"],
];

test("stop explains each mistake in one sentence with exit code 2, with a gate and without one", async (t) => {
  const gate = await startGate(t);
  const data = join(gate.folder, "data");
  const refused = async (args: readonly string[], name: string, folder = data): Promise<void> => {
    const { code, stdout, stderr } = await command(["stop", ...args, "--data-dir", folder]);
    assert.deepEqual([code, stdout], [2, ""], args.join(" "));
    says(name, stderr.trimEnd());
  };
  for (const [args, name] of mistakes) await refused(args, name);
  await refused([...why, "--tenant", "acme"], "no-tenants");
  assert.equal(gate.ledger.head.seq, 0);
  await gate.stop();
  for (const [args, name] of mistakes) await refused(args, name);
  const nowhere = join(gate.folder, "dta");
  for (const args of [why, ["--list"], ["--lift"]]) await refused(args, "no-ledger", nowhere);
  assert.ok(!existsSync(nowhere));
});

test("with --url, a key of scope approve sets a stop, and only a key of scope admin lifts it", async (t) => {
  const gate = await startGate(t);
  const data = join(gate.folder, "data");
  const keyOf = async (name: string, ...args: readonly string[]): Promise<string> => {
    const { stdout, stderr } = await command(["keys", "create", name, "--quiet", "--data-dir", data, ...args]);
    assert.match(stdout, /^svcg_/, stderr);
    const file = join(gate.folder, `${name}.key`);
    writeFileSync(file, stdout);
    return file;
  };
  const person = await command(["persons", "add", "anna", "--data-dir", data]);
  assert.equal(person.code, 0, person.stderr);
  const anna = await keyOf("anna-phone", "--scopes", "approve", "--person", "anna");
  const admin = await keyOf("ops", "--scopes", "admin");
  const at = (file: string, ...args: readonly string[]): ReturnType<typeof finish> =>
    command(["stop", ...args, "--url", gate.address, "--key-file", file]);
  assert.equal((await at(anna, ...why)).code, 0);
  assert.match(await answerOf(gate), /^BLOCK Svc: anna stopped every call: /);
  assert.match((await at(anna, "--list")).stdout, /^every call\n.* by anna: /);
  const refused = await at(anna, "--lift");
  assert.equal(refused.code, 2);
  says("lift-without-scope", refused.stderr.trimEnd());
  assert.match(await answerOf(gate), /^BLOCK /);
  assert.equal((await at(admin, "--lift")).code, 0);
  assert.match(await answerOf(gate), /^ALLOW /);
});
