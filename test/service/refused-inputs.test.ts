/**
 * Goal: an agent cannot fill the disk with cheap calls, and each reader of receipts says plainly that an input was not
 * kept whole. Method: the limits run on the test's clock. A gate gets such calls, and its files are measured; then
 * every reader reads the gate's rows.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { replayAndFold } from "../../packages/records/src/deep/deep.ts";
import { decideExportAgain } from "../../packages/records/src/deep/export.ts";
import { shownDecided } from "../../packages/records/src/deep/found.ts";
import { explainCommand } from "../../packages/records/src/explain/command.ts";
import { exportCommand } from "../../packages/records/src/export/command.ts";
import { replayCommand } from "../../packages/records/src/replay/command.ts";
import { reportCommand } from "../../packages/records/src/report/command.ts";
import { RefusedInputs, type StoredCall } from "../../packages/gate/src/server/core/refused-inputs.ts";
import { cutInputText } from "../../packages/core/src/record/entry/cut-input.ts";
import { inspectLedger, openLedger, readLedger, type CheckEntry } from "../../packages/gate/src/ledger/mod.ts";
import { findMembers, isMemberName } from "../../packages/core/src/wire/mod.ts";
import { control } from "../support/controls/control.ts";
import { ask, check, root, startGate, type Running } from "../support/gate.ts";
import { cutInputs, lookAlike } from "../support/exports/cut-inputs.ts";
import { append, engine, entry } from "../support/ledger-fixture.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const hourMs = 3_600_000;
const at0 = 1_790_000_000_000 - (1_790_000_000_000 % hourMs);
const inputOf = (bytes: number): string => `{"text":"${"x".repeat(bytes - 11)}"}`;

interface Attempt {
  readonly bytes: number;
  readonly at?: number;
  readonly keyName?: string;
  readonly tenant?: string;
}

function keptBy(inputs: RefusedInputs, { bytes, at = at0, keyName = "default", tenant }: Attempt): StoredCall {
  return inputs.toStoredCall({ keyName, at, inputText: inputOf(bytes), sensitive: [] }, tenant);
}

function isWhole(inputs: RefusedInputs, attempt: Attempt): boolean {
  return keptBy(inputs, attempt).inputText === inputOf(attempt.bytes);
}

suite("inputs of refused calls that are kept whole", { tags: ["attack-12"] }, () => {
  test("an input at the limit is kept whole, and an input of one byte more is not", () => {
    const inputs = new RefusedInputs();
    assert.ok(isWhole(inputs, { bytes: 16_384 }));
    assert.match(
      keptBy(inputs, { bytes: 16_385 }).inputText,
      /^\[\{"bytes":16385,"head":"\{\\"text\\":\\"x+","sha256"/,
    );
  });

  test("after the budget of a key is used up, no input is kept whole until 24 hours have passed", () => {
    const inputs = new RefusedInputs({ bytesMax: 1000, bytesPerDay: 2500 });
    assert.ok(isWhole(inputs, { bytes: 1000 }));
    assert.ok(isWhole(inputs, { bytes: 1000, at: at0 + 10 * hourMs }));
    assert.ok(isWhole(inputs, { bytes: 500, at: at0 + 10 * hourMs }), "exactly the budget");
    assert.ok(!isWhole(inputs, { bytes: 257, at: at0 + 24 * hourMs - 1 }), "one past the budget");
    assert.ok(isWhole(inputs, { bytes: 1000, at: at0 + 24 * hourMs }), "the first hour is over 24 hours ago");
    assert.ok(!isWhole(inputs, { bytes: 257, at: at0 + 34 * hourMs - 1 }));
    assert.ok(isWhole(inputs, { bytes: 1000, at: at0 + 34 * hourMs }));
  });

  test("inputs that are cut, or too small to be cut, use no budget", () => {
    const inputs = new RefusedInputs({ bytesMax: 1000, bytesPerDay: 1000 });
    for (let time = 0; time < 20; time += 1) {
      assert.ok(!isWhole(inputs, { bytes: 1001 }));
      assert.ok(isWhole(inputs, { bytes: 256 }));
    }
    assert.ok(isWhole(inputs, { bytes: 1000 }));
    assert.ok(!isWhole(inputs, { bytes: 257 }));
    assert.ok(isWhole(inputs, { bytes: 256 }));
  });

  test("each key of each tenant has its own budget", () => {
    const inputs = new RefusedInputs({ bytesMax: 1000, bytesPerDay: 1000 });
    const keys = [{}, { keyName: "other" }, { tenant: "acme" }, { tenant: "acme", keyName: "other" }];
    for (const key of keys) assert.ok(isWhole(inputs, { bytes: 1000, ...key }));
    for (const key of keys) assert.ok(!isWhole(inputs, { bytes: 1000, ...key }));
  });

  test("memory is bounded: the count of the key with the oldest last call is dropped", () => {
    const inputs = new RefusedInputs({ bytesMax: 1000, bytesPerDay: 1000 }, 2);
    assert.ok(isWhole(inputs, { bytes: 1000, keyName: "a" }));
    assert.ok(isWhole(inputs, { bytes: 1000, keyName: "b" }));
    assert.ok(!isWhole(inputs, { bytes: 1000, keyName: "a" }));
    assert.ok(isWhole(inputs, { bytes: 1000, keyName: "c" }));
    assert.equal(inputs.size, 2);
    assert.ok(!isWhole(inputs, { bytes: 1000, keyName: "a" }));
    assert.ok(isWhole(inputs, { bytes: 1000, keyName: "b" }));
  });

  for (const { name, input, sensitive, value } of cutInputs)
    test(`an input that is cut gives the marker of the vector "${name}"`, () => {
      const names = Object.keys(sensitive).filter(isMemberName);
      const spans = findMembers(
        input,
        names.map((each) => each.split(".").slice(1)),
      );
      const members = names.map((each, index) => ({ name: each, ...(spans[index] ?? assert.fail(each)) }));
      assert.equal(cutInputText(input, members), value);
    });
});

const tools = `contract: desk
tools:
  pay:
    input:
      type: object
      additionalProperties: false
      required: [usd]
      properties: { usd: { type: number, minimum: 0 }, to: { type: string } }
    otherwise: ALLOW
  visit:
    input: { type: object, additionalProperties: false, properties: {} }
    otherwise: ALLOW
  stated:
    input: { type: object, additionalProperties: true }
    requires: [{ when: platform.present, reason: the platform said nothing }]
    otherwise: ALLOW
counters:
  visits: { of: [visit], per: key, counting: attempts }
rules:
  - { rule: often, on: [visit], when: counters.visits >= 3, verdict: BLOCK, reason: "{counters.visits} visits are enough" }
`;
const large = "x".repeat(20_000);

function filesOf(folder: string): number {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
  return entries.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
}

/** Returns the bytes that 120 calls of an unknown tool with 256 KiB of input leave in the data folder. */
async function growth(t: TestContext, flags: Readonly<Record<string, string>>): Promise<number> {
  const gate = await startGate(t, { contracts: { "desk.yaml": tools }, flags });
  const data = join(gate.folder, "data");
  const before = filesOf(data);
  const body = JSON.stringify({ tool_name: "no.such", tool_input: { text: "x".repeat(262_144 - 100) } });
  for (let call = 0; call < 120; call += 1) assert.equal((await check(gate, body)).json.verdict, "BLOCK");
  await gate.stop();
  return filesOf(data) - before;
}

test("120 calls of an unknown tool with 256 KiB of input leave less than 1 MiB", { tags: ["attack-12"] }, async (t) => {
  const bytes = await growth(t, {});
  assert.ok(bytes < 1_048_576, `${bytes} bytes`);
});

control(
  "positive control: with limits that are never reached, 120 calls leave over 40 MiB",
  { tags: ["attack-12"] },
  async (t) => {
    const bytes = await growth(t, { "refused-input-max": "1 GiB", "refused-input-per-day": "1 GiB" });
    assert.ok(bytes > 40 * 1_048_576, `${bytes} bytes`);
  },
);

/** Starts a gate with nine receipts; the inputs of 2, 3, 4, 6 and 9 were not kept whole. */
async function refusing(t: TestContext, contract = tools): Promise<Running> {
  const gate = await startGate(t, {
    contracts: { "desk.yaml": contract },
    flags: { "refused-input-per-day": "1 KiB" },
  });
  const calls: readonly (readonly [tool: string, input: object | string])[] = [
    ["pay", { usd: 7, to: large }],
    ["no.such", { text: large, usd: 1 }],
    ["pay", { usd: "7", to: large }],
    ["visit", { text: large }],
    ["no.such", lookAlike],
    ["no.such", { text: "x".repeat(700) }],
    ["visit", {}],
    ["visit", {}],
    ["stated", { text: large }],
  ];
  for (const [tool, input] of calls) {
    const text = typeof input === "string" ? input : JSON.stringify(input);
    const answer = await check(gate, `{"tool_name":"${tool}","session_id":"run","tool_input":${text}}`);
    assert.equal(answer.status, 200, answer.text);
  }
  return gate;
}

interface Shown {
  readonly seq: number;
  readonly tool_input: { readonly to?: string } | null;
  readonly input_cut?: { readonly bytes: number; readonly head: string; readonly sha256: string };
  readonly reason: string;
}

async function shown(gate: Running): Promise<readonly Shown[]> {
  const { receipts } = (await ask(gate, "/receipts")).json as { readonly receipts: readonly Shown[] };
  return receipts.toReversed();
}

async function deep(folder: string): Promise<Awaited<ReturnType<typeof replayAndFold>>> {
  const ledger = await readLedger(folder);
  try {
    return await replayAndFold(ledger, () => undefined);
  } finally {
    await ledger.close();
  }
}

const isCut = ({ input_cut }: Shown): boolean => input_cut !== undefined;
const none = { json: true, examples: "0" } as const;
const explaining = { ...none, contract: "", key: "default", mode: "enforce" } as const;

suite("readers of receipts whose input was not kept whole", { tags: ["attack-12"] }, () => {
  test("GET /receipts shows the marker of a cut input, and an input like a marker as sent", async (t) => {
    const gate = await refusing(t);
    const receipts = await shown(gate);
    assert.deepEqual(
      receipts.filter(isCut).map(({ seq }) => seq),
      [2, 3, 4, 6, 9],
      "6 is past the budget, of which the look-alike has used a part",
    );
    const sent = JSON.stringify({ text: large, usd: 1 });
    assert.deepEqual(receipts[1]?.input_cut, JSON.parse(cutInputText(sent, []))[0]);
    assert.equal(receipts[1]?.tool_input, null);
    says("unknown-tool", receipts[1]?.reason ?? "");
    assert.deepEqual(receipts[4]?.tool_input, JSON.parse(lookAlike));
    assert.equal(receipts[0]?.tool_input?.to, large, "a call that a rule decided has all of its input");
  });

  test("replay, report, explain and verify --deep handle receipts whose input was not kept whole", async (t) => {
    const gate = await refusing(t);
    await gate.stop();
    const data = join(gate.folder, "data");
    const replayed = await replayCommand(data, none);
    assert.equal(replayed.exitCode, 0, replayed.text);
    const { agreed, skipped } = JSON.parse(replayed.text);
    const [{ why, ...which }, ...more] = skipped;
    assert.deepEqual([agreed, which, more], [4, { receipts: 5, first: 2 }, []]);
    says("not-kept-whole", why);
    const plain = await replayCommand(data, { ...none, json: false });
    const lines = plain.text.split("\n");
    const at = lines.indexOf(`  5, starting with receipt 2: ${why}`);
    assert.ok(at > 0, plain.text);
    says("receipts-not-decided-again", String(lines[at - 1]));
    const contract = join(gate.folder, "contracts", "desk.yaml");
    const compared = await replayCommand(data, { json: true, examples: "0", contract });
    assert.deepEqual(JSON.parse(compared.text).skipped, skipped);
    const report = JSON.parse((await reportCommand(data, { ...none, from: "1" })).text);
    assert.deepEqual([report.receipts, report.erased], [9, 0]);
    await assert.rejects(explainCommand(undefined, { ...explaining, receipt: "3", dataDir: data }), (error: Error) => {
      says("receipt-not-explained", error.message);
      return true;
    });
    const found = await deep(data);
    assert.deepEqual(
      [found.replayed, found.notReplayable, found.firstNotReplayable, found.differs, found.counters.firstWrong],
      [6, 3, { seq: 3, why }, 0, undefined],
      "a call of an unknown tool is decided again without its input",
    );
  });

  test("JSON Lines contain the marker, and each verifier accepts an export with markers", async (t) => {
    const gate = await refusing(t);
    await gate.stop();
    const data = join(gate.folder, "data");
    const options = { dataDir: data, database: undefined, cosigned: false, from: undefined, to: undefined, json: true };
    const file = join(gate.folder, "receipts.jsonl");
    await exportCommand(file, { ...options, format: "jsonl" });
    const lines = readFileSync(file, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    assert.deepEqual([lines[1].input, lines[1].input_cut.bytes, "input_cut" in lines[4]], [null, 20_019, false]);
    const folder = join(gate.folder, "export");
    assert.equal((await exportCommand(folder, { ...options, format: undefined })).exitCode, 0);
    for (const [program, verifier] of [
      ["python3", "svc_verify.py"],
      [process.execPath, "svc-verify.mjs"],
    ] as const) {
      const { status, error, stderr } = spawnSync(program, [join(root, "verify", verifier), folder], {
        encoding: "utf8",
      });
      if (error === undefined) assert.equal(status, 0, stderr);
    }
    assert.equal((await inspectLedger({ folder: data })).broken, undefined);
    const again = await decideExportAgain(folder, 9, () => undefined);
    assert.deepEqual(shownDecided(again), shownDecided(await deep(data)), "as the ledger's checks are");
  });

  test("erasing the input removes the marker, and the marker's head never contains a sensitive member", async (t) => {
    const gate = await refusing(t, `${tools}sensitive: [input.to]\n`);
    const [, , third] = await shown(gate);
    assert.deepEqual([third?.input_cut?.head, third?.tool_input], ['{"usd":"7","to":null}', null]);
    const operator = JSON.parse(readFileSync(join(gate.folder, "data", "operator.json"), "utf8"));
    const erase = (part: string): ReturnType<typeof ask> =>
      ask(gate, "/admin/erase", {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${operator.key}` },
        body: JSON.stringify({ rows: [[3, 3]], parts: [part], reason: "request 17" }),
      });
    assert.deepEqual((await erase("input.to")).json.not_present, [{ part: "input.to", count: 1, rows: [[3, 3]] }]);
    assert.equal((await erase("input")).json.rows, 1);
    const [, , erased] = await shown(gate);
    assert.deepEqual([erased?.tool_input, erased?.input_cut], [null, undefined]);
    const data = join(gate.folder, "data");
    await gate.stop();
    assert.equal((await inspectLedger({ folder: data })).broken, undefined);
    assert.equal((await deep(data)).differs, 0);
  });

  test("a new counter is known after refused calls that did not run, and unknown after those that did", async (t) => {
    const counting = tools
      .replace("rules:", "  spent: { of: [pay], per: key, sum: input.usd }\nrules:")
      .replace(
        "rules:\n",
        'rules:\n  - { rule: dear, on: [pay], when: counters.spent > 100, verdict: BLOCK, reason: "too much" }\n',
      );
    for (const [mode, rule] of [
      ["enforce", "desk.$otherwise"],
      ["observe", "desk.dear"],
    ] as const) {
      const gate = await startGate(t, { contracts: { "desk.yaml": tools }, flags: { mode } });
      await check(gate, { tool_name: "pay", tool_input: { usd: "7", to: large } });
      await gate.stop();
      const again = await startGate(t, { folder: gate.folder, contracts: { "desk.yaml": counting } });
      await check(again, { tool_name: "pay", tool_input: { usd: 7 } });
      const { receipts } = (await ask(again, "/receipts?limit=1")).json;
      assert.equal(receipts[0].rule, rule, mode);
      await again.stop();
      const found = await deep(join(gate.folder, "data"));
      assert.deepEqual([found.differs, found.counters.firstWrong], [0, undefined]);
    }
  });

  test("verify --deep reports a marker in a receipt that a rule decided as a difference", async (t) => {
    const gate = await refusing(t);
    await gate.stop();
    const data = join(gate.folder, "data");
    assert.equal((await deep(data)).differs, 0, "before it");
    const { contract } = (await readOne(data)) as { readonly contract: string };
    const ledger = await openLedger({ folder: data, engine });
    const forged: Partial<CheckEntry> = { toolName: "pay", rule: "desk.$otherwise", contract: contract.slice(7) };
    await append(ledger, [[entry({ ...forged, at: ledger.head.at, inputText: cutInputText('{"usd":7}', []) }), []]]);
    await ledger.close();
    const found = await deep(data);
    const { firstDiffering, differs } = found;
    assert.deepEqual([differs, firstDiffering?.what, firstDiffering?.recorded], [1, "input", "a part of it"]);
    const folder = join(gate.folder, "export");
    const options = { dataDir: data, database: undefined, cosigned: false, from: undefined, to: undefined, json: true };
    await exportCommand(folder, { ...options, format: undefined });
    assert.deepEqual(shownDecided(await decideExportAgain(folder, 10, () => undefined)), shownDecided(found));
  });
});

/** Reads the leaf of the first row. */
async function readOne(folder: string): Promise<unknown> {
  const ledger = await readLedger(folder);
  try {
    for await (const [row] of ledger.scan(1)) return JSON.parse(row?.leaf ?? "null");
    return undefined;
  } finally {
    await ledger.close();
  }
}
