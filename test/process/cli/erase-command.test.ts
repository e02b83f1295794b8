/**
 * Goal: `svc-gate erase` reaches the gate that serves a folder, or the ledger itself. Readers of evidence show which
 * parts are gone. Counters keep their values; a new fold over an erased part makes its counter unknown, never too
 * small. Method: the program runs with and without a serving gate; a contract with another counter is put in force
 * after an erasure.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { filesWith } from "../../support/erased-bytes.ts";
import { command } from "../../support/command.ts";
import {
  ask,
  check,
  desk,
  spawnGate,
  startGate,
  temporaryFolder,
  writeContracts,
  type Running,
} from "../../support/gate.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

interface Ran {
  readonly code: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

function commandsOn(folder: string): (...args: readonly string[]) => Promise<Ran> {
  return (...args) => command(args, { env: { SVC_DATA_DIR: join(folder, "data") } });
}

function visit(gate: Pick<Running, "address">, session: string): Promise<{ readonly json: any }> {
  return check(gate, {
    tool_name: "visit",
    tool_input: { who: "KESTREL" },
    session_id: session,
    platform_state: { a: 1 },
  });
}

/** Matches each line of a text, so that none may be missing. */
function saysLines(name: string, text: string): void {
  const lines = text.trimEnd().split("\n");
  for (const [at, line] of lines.entries()) says(`${name}: ${at + 1} of ${lines.length}`, line);
}

const why = ["--reason", "request 4711"] as const;

test("svc-gate erase works through the serving gate, and every command shows erased parts as erased", async (t) => {
  const gate = await startGate(t);
  const run = commandsOn(gate.folder);
  for (let time = 0; time < 4; time += 1) for (const session of ["a", "b"]) await visit(gate, session);
  const erased = await run("erase", "--session", "a", "--part", "platform", ...why);
  assert.deepEqual([erased.code, erased.stderr], [0, ""]);
  says("parts are erased", erased.stdout.trimEnd());
  const again = await run("erase", "1", "3-4", "9", "--part", "platform,reason", ...why, "--json");
  assert.deepEqual(JSON.parse(again.stdout), {
    matched: 3,
    not_present: [],
    rows: 1,
    parts: 3,
    acts: 1,
    receipts: [{ seq: 10, hash: JSON.parse(again.stdout).receipts[0].hash }],
    remains: null,
  });
  const nothing = await run("erase", "1", "9", "--part", "reason", ...why);
  assert.equal(nothing.code, 0);
  saysLines("everything is erased already", nothing.stdout);

  const { json } = await ask(gate, "/receipts/3");
  assert.deepEqual(
    [json.erased, json.platform_state, json.reason, json.tool_input, json.verdict],
    [["outcome", "platform", "reason"], null, null, { who: "KESTREL" }, "ALLOW"],
  );
  const act = (await ask(gate, "/receipts/9")).json;
  assert.deepEqual([act.act, act.key], ["erase", "operator"]);
  says("the row of an erasure", act.reason);
  const walked = JSON.parse((await run("verify", "--deep", "--json")).stdout);
  assert.deepEqual([walked.ok, walked.deep.replayed, walked.deep.not_replayable, walked.deep.differs], [true, 3, 5, 0]);

  const explained = await run("explain", "--receipt", "3");
  assert.equal(explained.code, 2);
  saysLines("an erased receipt cannot be explained", explained.stderr);
  assert.match((await run("explain", "--receipt", "6")).stdout, /^ALLOW/, "positive control");
  const replayed = await run("replay");
  assert.deepEqual([replayed.code, replayed.stderr], [0, ""]);
  const [first = "", ...others] = replayed.stdout.split("\n");
  says("receipts that are not erased were decided again", first);
  says("others cannot be decided again", others.find((line) => /^5\b/.test(line)) ?? "");
  says("why they cannot", others.find((line) => /^ {2}5\b/.test(line)) ?? "");
  says("reported: some have erased parts", /^.*\b5 more\b.*$/m.exec((await run("report")).stdout)?.[0] ?? "");

  assert.ok(filesWith(join(gate.folder, "data"), "KESTREL").includes("ledger.db"), "positive control");
  await run("erase", "1-8", "--part", "call,input,platform", ...why);
  assert.deepEqual(filesWith(join(gate.folder, "data"), "KESTREL"), [], "nowhere, while the gate is serving");

  for (let time = 0; time < 6; time += 1) await visit(gate, "a");
  const last = (await visit(gate, "a")).json;
  assert.deepEqual([last.verdict, last.reason], ["BLOCK", "Svc: 10 visits are enough"], "effects stay, so counters do");
});

test("svc-gate erase works on the ledger itself if no gate serves the folder", async (t) => {
  const folder = temporaryFolder(t);
  writeContracts(folder, { contracts: { "desk.yaml": desk } });
  const run = commandsOn(folder);
  const gate = await spawnGate(t, [], {
    cwd: folder,
    env: { SVC_DATA_DIR: join(folder, "data"), SVC_MODE: "enforce" },
  });
  const key = readFileSync(join(folder, "data", "first-key"), "utf8").trim();
  const headers = { authorization: `Bearer ${key}` };
  for (const name of ["one", "two"])
    await check(gate, { tool_name: "note.add", tool_input: { name: `${name} KESTREL` } }, headers);
  gate.kill("SIGKILL");
  await gate.exit;
  const erased = await run("erase", "1", "--part", "input", ...why);
  assert.equal(erased.code, 0, erased.stderr);
  says("parts are erased without a gate", erased.stdout.trimEnd());
  assert.match((await run("verify")).stdout, /^ok: 3 rows/);
  const nobody: readonly (readonly [readonly string[], string])[] = [
    [["--session", "run-9"], "no such session"],
    [["--session", "run-9", "--key", "ci"], "no such session of a key"],
    [["--before", "2020-01-01"], "no check is so old"],
    [["3"], "no check among the rows"],
  ];
  for (const [named, sentence] of nobody) {
    const nothing = await run("erase", ...named, "--part", "input", ...why);
    // It is not a mistake if no check is that old.
    const code = named[0] === "--before" ? 0 : 1;
    assert.equal(nothing.code, code, named.join(" "));
    saysLines(sentence, nothing.stderr + nothing.stdout);
    const json = await run("erase", ...named, "--part", "input", ...why, "--json");
    assert.deepEqual([json.code, JSON.parse(json.stdout).matched], [code, 0], named.join(" "));
  }
  const wrong: readonly (readonly [readonly string[], string])[] = [
    [["erase", "7", "--part", "input", ...why], "a row after the last"],
    [["erase", "x", "--part", "input", ...why], "a number that is none"],
    [["erase", "--part", "input", ...why], "no receipts are named"],
    [["erase", "1", "--session", "a", "--part", "input", ...why], "rows and a session"],
    [["erase", "1", "--key", "a", "--part", "input", ...why], "rows and a key"],
    [["erase", "3-2", "--part", "input", ...why], "rows backwards"],
    [["erase", "1", "--part", "inputs", ...why], "no such part"],
    [["erase", "1", "--part", "effects", ...why], "a part that is never erased"],
    [["erase", "1", "--part", "input", "--reason", " "], "no reason"],
    [["erase", "--before", "soon", "--part", "input", ...why], "a day that is none"],
    [["erase", "1", "--part", "input", ...why, "--tenant", "acme"], "a tenant without a ledger"],
  ];
  for (const [args, sentence] of wrong) {
    const refused = await run(...args);
    assert.deepEqual([refused.code, refused.stdout], [2, ""], args.join(" "));
    saysLines(sentence, refused.stderr);
  }
});

const other = `contract: other
tools:
  visit:
    input: { type: object, additionalProperties: false, required: [who], properties: { who: { type: string } } }
    otherwise: ALLOW
counters:
  people: { of: [visit], per: input.who }
rules:
  - { rule: often, on: [visit], when: counters.people >= 3, verdict: BLOCK, reason: "{counters.people} are enough" }
`;

test("a new counter that needs erased parts is unknown instead of too small", async (t) => {
  for (const erases of [false, true]) {
    const gate = await startGate(t, { contracts: { "desk.yaml": desk } });
    const run = commandsOn(gate.folder);
    await visit(gate, "a");
    if (erases) assert.equal((await run("erase", "1", "--part", "input", ...why)).code, 0);
    writeFileSync(join(gate.folder, "contracts", "desk.yaml"), other);
    const reloaded = await run("reload");
    assert.equal(reloaded.code, 0, reloaded.stderr);
    const { json } = await visit(gate, "b");
    assert.equal(json.verdict, erases ? "BLOCK" : "ALLOW", json.reason);
    says(erases ? "the counter is unknown" : "no rule applies", json.reason);
    assert.equal((await run("verify", "--deep")).code, 0);
  }
});
