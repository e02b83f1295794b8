/**
 * Goal: `report` and `replay` count forged or damaged receipts as such. They do not fail, and they never write an
 * agent's hidden characters to a terminal. Method: receipts of a real gate, each with one part replaced, with and
 * without matching digests.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { openHistory, type RecordedRow } from "../../packages/records/src/history.ts";
import { BadInput, type Outcome } from "../../packages/gate/src/cli/outcome.ts";
import { replayCommand } from "../../packages/records/src/replay/command.ts";
import { reportCommand } from "../../packages/records/src/report/command.ts";
import { partNames } from "../../packages/core/src/record/entry/disclosure.ts";
import { evidenceDigest } from "../../packages/core/src/record/entry/evidence.ts";
import { control } from "../support/controls/control.ts";
import { check, key, startGate, temporaryFolder } from "../support/gate.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const object = (properties: string): string =>
  `{ type: object, additionalProperties: false, required: [to], properties: { ${properties} } }`;
const contract = `contract: notes
tools:
  note.add: { input: ${object("to: { type: string }")}, otherwise: ALLOW }
counters:
  known: { of: note.add, per: session, remembers: input.to }
  often: { of: note.add, per: [session, key], within: 10m }
rules:
  - { rule: again, on: note.add, when: input.to in counters.known, verdict: ESCALATE, reason: "{input.to} once more" }
  - { rule: often, on: note.add, when: counters.often > 1, mode: observe, verdict: BLOCK, reason: "{counters.often} notes" }
`;
const contracts = { "notes.yaml": contract };
const mandate = "mandate: m\ncontracts: [contracts/notes.yaml]\n";
const hidden = "\u001b[2J\nreceipt 9, all is well\u202e";

interface Rows {
  readonly folder: string;
  readonly rows: readonly RecordedRow[];
  readonly rules: string;
}

async function rowsOf(t: TestContext): Promise<Rows> {
  const folder = temporaryFolder(t);
  const gate = await startGate(t, { folder, contracts, mandate, flags: { mode: "enforce" } });
  for (const [to, session] of [
    ["a", "s"],
    ["a", "s"],
    ["b", "s"],
    ["a", hidden],
    [hidden, hidden],
  ] as const)
    await check(gate, { tool_name: "note.add", tool_input: { to }, session_id: session });
  await check(gate, { tool_name: `no ${hidden}`, tool_input: {}, session_id: hidden });
  await gate.stop();
  await using history = await openHistory({ folder: join(folder, "data") });
  const rows: RecordedRow[] = [];
  for await (const slice of history.scan(1)) rows.push(...slice);
  const named = /sha256:([0-9a-f]{64})/.exec(rows[0]?.leaf ?? "")?.[1] ?? "";
  const rules = join(folder, "rules.txt");
  writeFileSync(rules, (await history.contractText(named)) ?? "");
  assert.equal(rows.length, 6);
  return { folder, rows, rules };
}

/** Replaces the text of a part in the row, with a leaf that commits to the new text. */
function withPart(row: RecordedRow, at: number, json: string): RecordedRow {
  const disclosures = row.evidence.split("~");
  disclosures[at] = Buffer.from(`["${"A".repeat(22)}","${partNames[at] ?? ""}",${json}]`).toString("base64url");
  const evidence = disclosures.join("~");
  const leaf = row.leaf.replace(/"evidence":"[0-9a-f]*"/, `"evidence":"${evidenceDigest(evidence) ?? "0".repeat(64)}"`);
  return { ...row, evidence, leaf };
}

const lines = (rows: readonly RecordedRow[]): string =>
  rows.map((row) => `${JSON.stringify({ ...row, evidence: row.evidence.split("~") })}\n`).join("");

/** Returns the output of the commands for the rows. They may refuse a file with one sentence. */
async function ask({ folder, rules }: Rows, text: string): Promise<readonly Outcome[]> {
  const file = join(folder, "receipts.jsonl");
  writeFileSync(file, text);
  const source = { file, rules: [rules], examples: "5" };
  const contractFile = join(folder, "contracts", "notes.yaml");
  const outcomes: Outcome[] = [];
  for (const json of [false, true]) {
    for (const run of [
      () => reportCommand(folder, { ...source, json, from: "1" }),
      () => replayCommand(folder, { ...source, json }),
      () => replayCommand(folder, { ...source, json, contract: contractFile, sum: "input.to" }),
    ]) {
      try {
        outcomes.push(await run());
      } catch (error) {
        if (!(error instanceof BadInput)) throw error;
        outcomes.push({ exitCode: 2, text: error.message });
      }
    }
  }
  for (const { text: shown, forPrograms } of outcomes) {
    if (forPrograms === true) JSON.parse(shown);
    // oxlint-disable-next-line no-control-regex -- these are what must not be there
    else assert.doesNotMatch(shown, /[\u0000-\u0009\u000b-\u001f\u202e]|^receipt 9/m);
  }
  return outcomes;
}

const values = [
  "null",
  "5",
  '"x"',
  "[]",
  "{}",
  "[[]]",
  "[null]",
  "tru",
  "",
  '{"a":1}',
  "1e999",
  "[".repeat(100_000),
  '{"tool_name":5,"session_id":null}',
  '{"tool_name":"note.add","session_id":[]}',
  '{"tool_name":"note.add"}',

  '{"counters":null}',
  '{"counters":{"a":5}}',
  '{"counters":{},"observed":{}}',
  '{"counters":{},"observed":[null]}',
  '{"counters":{},"observed":[{"rule":"r","reason":5,"verdict":"BLOCK"}]}',
  '{"counters":{"__proto__":"1"}}',
  '[{"amount":1,"counter":"c","key":"k"}]',
  '[{"amount":"x"}]',
  JSON.stringify("x".repeat(1_000_000)),
];

/** Returns the one line with this marker. */
function lineWith(text: string | undefined, sign: RegExp): string {
  const found = (text ?? "").split("\n").filter((line) => sign.test(line));
  assert.equal(found.length, 1, text ?? "");
  return found[0]?.trim() ?? "";
}

suite("report and replay on damaged or forged receipts", () => {
  test("report and replay survive a receipt with one forged part and matching digests", async (t) => {
    const found = await rowsOf(t);
    for (const at of partNames.keys()) {
      for (const value of values) {
        const rows = found.rows.map((row, index) => (index === 1 ? withPart(row, at, value) : row));
        const [report] = await ask(found, lines(rows));
        assert.equal(report?.exitCode, 0, `${partNames[at]} ${value.slice(0, 80)}`);
      }
    }
  });

  test("report and replay survive forged leaves, cut rows and files without receipts", async (t) => {
    const found = await rowsOf(t);
    const leaves: readonly ((leaf: string) => string)[] = [
      (leaf) => leaf.replace(/"at":\d+/, '"at":999999999999999'),
      (leaf) => leaf.replace(/"at":\d+/, '"at":0'),
      (leaf) => leaf.replace(/"seq":\d+/, '"seq":999999999999999'),
      (leaf) => leaf.replace(/"seq":\d+/, '"seq":1'),
      (leaf) => leaf.replace(/"verdict":"[A-Z]+"/, '"verdict":null'),
      (leaf) => leaf.replace(/"answered":"[A-Z]+"/, '"answered":null'),
      (leaf) => leaf.replace(/"mode":"[a-z]+"/, '"mode":null'),
      (leaf) => leaf.replace(/"contract":"[^"]+"/, '"contract":null'),
      (leaf) => leaf.replace(/"contract":"[^"]+"/, '"contract":"sha256:../../etc/passwd"'),
      (leaf) => leaf.replace(/"rule":"[^"]+"/, `"rule":${JSON.stringify(hidden)}`),
      (leaf) => leaf.slice(1),
      () => "",
    ];
    for (const change of leaves) {
      const rows = found.rows.map((row, index) => (index === 2 ? { ...row, leaf: change(row.leaf) } : row));
      assert.equal((await ask(found, lines(rows)))[0]?.exitCode, 0);
    }
    const cut = found.rows.map((row, index) => (index === 2 ? { ...row, evidence: row.evidence.slice(0, 90) } : row));
    says("a receipt is not as a gate writes it", lineWith((await ask(found, lines(cut)))[0]?.text, /\b1 more\b/));
    for (const text of ["", "\n\n", "null\n", "[]\n", "{}\n", '{"receipts":5}\n', '{"seq":"1"}\n', "\u0000\n"])
      for (const { exitCode } of await ask(found, text)) assert.ok(exitCode === 0 || exitCode === 2, text);
    const twice = await ask(found, lines([...found.rows, ...found.rows]));
    assert.deepEqual([...new Set(twice.map(({ exitCode }) => exitCode))], [2]);
  });

  test("report and replay do not believe a text that does not match its digest", async (t) => {
    const found = await rowsOf(t);
    const lied = found.rows.map((row, index) =>
      index === 1 ? { ...withPart(row, 3, '"Svc: all is well"'), leaf: row.leaf } : row,
    );
    const [report, replay] = await ask(found, lines(lied));
    assert.doesNotMatch(report?.text ?? "", /all is well$/m);
    says("its evidence does not match its leaf", lineWith(replay?.text, /\bevidence\b/));
  });

  test("report counts all tools after the first 10,000 together and loses none", async (t) => {
    const found = await rowsOf(t);
    const unknown = found.rows[5] as RecordedRow;
    const names = Array.from({ length: 10_100 }, (_, at) => `{"session_id":null,"tool_name":"tool-${at}"}`);
    const rows = names.map((name, at) => {
      const row = withPart(unknown, 0, name);
      return { ...row, seq: at + 1, leaf: row.leaf.replace(/"seq":\d+/, `"seq":${at + 1}`) };
    });
    const file = join(found.folder, "many.jsonl");
    writeFileSync(file, lines(rows));
    const report = await reportCommand(found.folder, { file, json: true, from: "1", examples: "0" });
    const { receipts, by_tool: tools } = JSON.parse(report.text);
    assert.deepEqual(
      [receipts, tools.length, tools.at(-1)],
      [10_100, 10_001, { tool: "(others)", verdict: "", receipts: 100 }],
    );
  });

  test("replay reads a running gate page by page and refuses one with malformed answers", async (t) => {
    const gate = await startGate(t, { contracts, mandate });
    for (let transaction = 0; transaction < 1003; transaction += 1)
      await check(gate, { tool_name: "note.add", tool_input: { to: `${transaction}` }, session_id: "s" });
    const keyFile = join(gate.folder, "key.txt");
    writeFileSync(keyFile, key);
    const source = { url: `http://127.0.0.1:${gate.port}`, keyFile, examples: "1", json: false };
    assert.match((await replayCommand("", source)).text, /^1,003 receipts decided again/);
    const liar = createServer((_, response) => void response.end('{"receipts":[{"seq":"1"}]}')).listen(0, "127.0.0.1");
    await once(liar, "listening");
    const { port } = liar.address() as AddressInfo;
    await assert.rejects(replayCommand("", { ...source, url: `http://127.0.0.1:${port}` }), (error) => {
      assert.ok(error instanceof Error);
      says("a gate answers with something else than receipts", error.message);
      return true;
    });
    liar.close();
  });

  control(
    "positive control: unchanged receipts agree, a changed reason is noticed, and hidden characters appear as escapes",
    async (t) => {
      const found = await rowsOf(t);
      const [report, replay] = await ask(found, lines(found.rows));
      assert.equal(replay?.exitCode, 0, replay?.text ?? "");
      assert.match(replay?.text ?? "", /^6 receipts decided again/);
      assert.match(report?.text ?? "", /session \\u001b\[2J\\u000areceipt 9, all is well\\u202e/);
      const fitted = withPart(found.rows[1] as RecordedRow, 3, '"Svc: another"');
      const other = await ask(found, lines([found.rows[0] as RecordedRow, fitted, ...found.rows.slice(2)]));
      assert.match(other[1]?.text ?? "", /receipt 2: another reason/);
    },
  );
});
