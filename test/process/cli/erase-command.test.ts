/**
 * Goal: `svc-gate erase` reaches the gate that serves a folder, or the ledger itself; whatever reads evidence shows well what
 * is gone; counters stay what they were, and one that is folded anew over it is unknown, never too small. Method: the program
 * is run against a gate that serves and against none; a contract with another counter is put in force after an erasure.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { filesWith } from "../../support/erased-bytes.ts";
import {
  ask,
  check,
  desk,
  finish,
  spawnGate,
  startGate,
  temporaryFolder,
  writeContracts,
  type Running,
} from "../../support/gate.ts";

interface Ran {
  readonly code: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

function commandsOn(t: TestContext, folder: string): (...args: readonly string[]) => Promise<Ran> {
  return (...args) => finish(t, args, { cwd: folder, env: { SVC_DATA_DIR: join(folder, "data") } });
}

function visit(gate: Pick<Running, "address">, session: string): Promise<{ readonly json: any }> {
  return check(gate, {
    tool_name: "visit",
    tool_input: { who: "KESTREL" },
    session_id: session,
    platform_state: { a: 1 },
  });
}

const why = ["--reason", "request 4711"] as const;

test("svc-gate erase works through the serving gate, and every command shows erased parts as erased", async (t) => {
  const gate = await startGate(t);
  const run = commandsOn(t, gate.folder);
  for (let time = 0; time < 4; time += 1) for (const session of ["a", "b"]) await visit(gate, session);
  const erased = await run("erase", "--session", "a", "--part", "platform", ...why);
  assert.deepEqual(
    [erased.code, erased.stdout, erased.stderr],
    [0, "erased 12 parts of 4 receipts; row 9 says so\n", ""],
  );
  const again = await run("erase", "1", "3-4", "9", "--part", "platform,reason", ...why, "--json");
  assert.deepEqual(JSON.parse(again.stdout), {
    matched: 3,
    lacking: [],
    rows: 1,
    parts: 3,
    acts: 1,
    receipts: [{ seq: 10, hash: JSON.parse(again.stdout).receipts[0].hash }],
    remains: null,
  });
  const nothing = await run("erase", "1", "9", "--part", "reason", ...why);
  assert.equal(nothing.code, 0);
  assert.match(
    nothing.stdout,
    /^already erased: reason of 1 receipt\n {2}rows that record acts of people, 1 of those named/,
  );

  const { json } = await ask(gate, "/receipts/3");
  assert.deepEqual(
    [json.erased, json.platform_state, json.reason, json.tool_input, json.verdict],
    [["outcome", "platform", "reason"], null, null, { who: "KESTREL" }, "ALLOW"],
  );
  const act = (await ask(gate, "/receipts/9")).json;
  assert.deepEqual([act.act, act.key], ["erase", "operator"]);
  assert.equal(act.reason, "Svc: operator erased outcome, platform, reason of 4 receipts: request 4711");
  const walked = JSON.parse((await run("verify", "--deep", "--json")).stdout);
  assert.deepEqual([walked.ok, walked.deep.replayed, walked.deep.not_replayable, walked.deep.differs], [true, 3, 5, 0]);

  const explained = await run("explain", "--receipt", "3");
  assert.equal(explained.code, 2);
  assert.match(
    explained.stderr,
    /receipt 3 cannot be explained: platform, reason, outcome of it were erased\n {2}row 9, \S+Z, by operator: .*request 4711\n$/,
  );
  assert.match((await run("explain", "--receipt", "6")).stdout, /^ALLOW/, "positive control");
  const replayed = await run("replay");
  assert.deepEqual([replayed.code, replayed.stderr], [0, ""]);
  assert.match(
    replayed.stdout,
    /^1 receipt decided again: [^]*7 receipts cannot be decided again:\n {2}5 from receipt 1 on: a part of its evidence was erased/,
  );
  assert.match((await run("report")).stdout, /5 more have erased parts/);

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
  const run = commandsOn(t, folder);
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
  assert.deepEqual([erased.code, erased.stdout], [0, "erased 3 parts of 1 receipt; row 3 says so\n"], erased.stderr);
  assert.match((await run("verify")).stdout, /^ok: 3 rows/);
  const nobody: readonly (readonly [readonly string[], RegExp])[] = [
    [["--session", "run-9"], /^nothing was erased: no receipt of session run-9 is there\n {2}names are exact; /],
    [["--session", "run-9", "--key", "ci"], /no receipt of session run-9 \(key ci\) is there\n.*without --key/],
    [["--before", "2020-01-01"], /^nothing was erased: no check from before 2020-01-01 is there\n$/],
    [["3"], /^nothing was erased: there is no check among 3\n {2}rows that record acts of people, 1 of those named/],
  ];
  for (const [named, says] of nobody) {
    const nothing = await run("erase", ...named, "--part", "input", ...why);
    // That no check is so old is no mistake.
    const code = named[0] === "--before" ? 0 : 1;
    assert.equal(nothing.code, code, named.join(" "));
    assert.match(nothing.stderr + nothing.stdout, says, named.join(" "));
    const json = await run("erase", ...named, "--part", "input", ...why, "--json");
    assert.deepEqual([json.code, JSON.parse(json.stdout).matched], [code, 0], named.join(" "));
  }
  const wrong: readonly (readonly [readonly string[], RegExp])[] = [
    [["erase", "7", "--part", "input", ...why], /there is no row 7: the ledger ends at row 3/],
    [["erase", "x", "--part", "input", ...why], /x is no receipt's number, such as 7, or 7-9/],
    [["erase", "--part", "input", ...why], /say which receipts: their numbers, such as 7 or 7-9/],
    [["erase", "1", "--session", "a", "--part", "input", ...why], /with one of/],
    [["erase", "1", "--key", "a", "--part", "input", ...why], /"key" goes with "session_id"/],
    [["erase", "3-2", "--part", "input", ...why], /3-2: the first row comes before the last/],
    [["erase", "1", "--part", "inputs", ...why], /there is no part .inputs.; did you mean "input"\?/],
    [["erase", "1", "--part", "effects", ...why], /is never erased/],
    [["erase", "1", "--part", "input", "--reason", " "], /"reason" must be 1 to 1024 bytes/],
    [["erase", "--before", "soon", "--part", "input", ...why], /"before" must be a day such as/],
    [["erase", "1", "--part", "input", ...why, "--tenant", "acme"], /there is no ledger in/],
  ];
  for (const [args, says] of wrong) {
    const refused = await run(...args);
    assert.deepEqual([refused.code, refused.stdout], [2, ""], args.join(" "));
    assert.match(refused.stderr, says, args.join(" "));
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
    const run = commandsOn(t, gate.folder);
    await visit(gate, "a");
    if (erases) assert.equal((await run("erase", "1", "--part", "input", ...why)).code, 0);
    writeFileSync(join(gate.folder, "contracts", "desk.yaml"), other);
    const reloaded = await run("reload");
    assert.equal(reloaded.code, 0, reloaded.stderr);
    const { json } = await visit(gate, "b");
    assert.deepEqual(
      [json.verdict, erases ? /not known|unknown/.test(json.reason) : json.reason],
      erases ? ["BLOCK", true] : ["ALLOW", 'Svc: allowed; no rule in contract "other" applies'],
      json.reason,
    );
    assert.equal((await run("verify", "--deep")).code, 0);
  }
});
