/**
 * Goal: `--since`, `--until` and `--last` choose the rows that `replay --contract` decides and `report` counts. The
 * contract's counters have the values of that time, and rows that no counter needs are not read. Method: gates in this
 * process write a ledger on their own clock. Decided again under the same contract, no verdict changes, wherever the
 * span starts. Without the rows before the span, verdicts do change. UPDATE_GOLDEN=1 rewrites the sentences.
 */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, suite, test } from "node:test";
import { openHistory, type RecordedRow } from "../../packages/records/src/history.ts";
import { replayCommand } from "../../packages/records/src/replay/command.ts";
import { decideAllAgain } from "../../packages/records/src/replay/replay.ts";
import { reportCommand } from "../../packages/records/src/report/command.ts";
import { compileContracts } from "../../packages/readers/src/contract.ts";
import { Clock } from "../../packages/gate/src/server/policy/clock.ts";
import { openGate } from "../../packages/gate/src/server/service/gate.ts";
import { openLedger } from "../../packages/gate/src/ledger/mod.ts";
import { parseCheckRequest } from "../../packages/core/src/wire/mod.ts";
import { control } from "../support/controls/control.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const folder = mkdtempSync(join(tmpdir(), "svc-gate-span-"));
after(() => rmSync(folder, { recursive: true, force: true }));

/** Compares the message of an error with the sentence of this name. */
const saying =
  (name: string) =>
  (error: Error): true => {
    says(name, error.message);
    return true;
  };

const minute = 60_000;
const at0 = Date.parse("2026-03-01T00:00:00Z");
const calls = 120;

const windowed = `contract: notes
tools:
  note.add:
    input: { type: object, additionalProperties: false, required: [to], properties: { to: { type: string, maxLength: 9 } } }
    otherwise: ALLOW
counters:
  often: { of: note.add, per: session, within: 10m, counting: released }
rules:
  - { rule: often, on: note.add, when: counters.often >= 3, verdict: BLOCK, reason: "{counters.often} notes" }
`;
/** The contract with a counter without a window, which counts from the first row on. */
const lifelong = windowed
  .replace("rules:", "  known: { of: note.add, per: gate, remembers: input.to }\nrules:")
  .concat("  - { rule: known, on: note.add, when: input.to in counters.known, verdict: ESCALATE, reason: known }\n");

function compiled(text: string) {
  const policySet = compileContracts([{ name: "notes.yaml", text }]);
  return policySet.ok ? policySet.value : assert.fail(JSON.stringify(policySet.problem));
}

/** Makes one call a minute, alternating between two sessions. */
async function fill(name: string, text: string): Promise<{ readonly data: string; readonly contract: string }> {
  const [data, contract] = [join(folder, name), join(folder, `${name}.yaml`)];
  writeFileSync(contract, text);
  let now = at0;
  const ledger = await openLedger({ folder: data, engine: "svc-gate/test" });
  const opened = await openGate({
    policySet: compiled(text),
    ledger,
    clock: new Clock({ wall: () => now, monotonic: () => now }),
    mode: "enforce",
    onDefect: ({ rule }) => assert.fail(`a defect in ${rule}`),
  });
  assert.ok(opened.ok);
  for (let call = 0; call < calls; call += 1) {
    now = at0 + call * minute;
    const body = { tool_name: "note.add", tool_input: { to: `${call % 90}` }, session_id: `s${call % 2}` };
    const request = parseCheckRequest(JSON.stringify(body));
    assert.ok(request.ok);
    await opened.value.gate.check(request.value, { keyName: "default", bytes: 100, digest: "0".repeat(64) });
  }
  await opened.value.gate.drain();
  await ledger.close();
  return { data, contract };
}

interface Found {
  readonly decided: number;
  readonly changed: number;
  readonly skipped: readonly { readonly why: string; readonly receipts: number }[];
}

async function replayed(data: string, options: object): Promise<Found> {
  return JSON.parse((await replayCommand(data, { examples: "1", json: true, ...options })).text) as Found;
}

async function rowsOf(data: string): Promise<readonly RecordedRow[]> {
  await using history = await openHistory({ folder: data });
  const rows = (await Array.fromAsync(history.scan(1))).flat();
  return rows;
}

/** Writes the rows as a file of receipts. */
function fileOf(name: string, rows: readonly RecordedRow[]): string {
  const file = join(folder, name);
  writeFileSync(file, rows.map((row) => `${JSON.stringify({ ...row, evidence: row.evidence.split("~") })}\n`).join(""));
  return file;
}

const moment = (minutes: number): string => new Date(at0 + minutes * minute).toISOString();

suite("replay --contract over a part of a ledger", async () => {
  const ledgers = [await fill("windowed", windowed), await fill("lifelong", lifelong)];

  test("the same contract changes no verdict in any part, from a folder or a file", async () => {
    for (const { data, contract } of ledgers) {
      const file = fileOf("all.jsonl", await rowsOf(data));
      for (const source of [{}, { file }]) {
        for (const last of [1, 2, 7, 20, 60, 119, 120, 500]) {
          const found = await replayed(data, { ...source, contract, last: String(last) });
          assert.deepEqual([found.decided, found.changed, found.skipped], [Math.min(last, calls), 0, []], `${last}`);
        }
        const span = async (options: object): Promise<readonly number[]> => {
          const { decided, changed } = await replayed(data, { ...source, contract, ...options });
          return [decided, changed];
        };
        assert.deepEqual(await span({ since: moment(100) }), [20, 0]);
        assert.deepEqual(await span({ until: moment(100) }), [100, 0]);
        assert.deepEqual(await span({ since: moment(30), until: moment(40) }), [10, 0]);
        assert.deepEqual(await span({ since: moment(30), until: moment(40), last: "4" }), [4, 0]);
        assert.deepEqual(await span({ since: moment(38), until: moment(40), last: "4" }), [2, 0]);
        assert.deepEqual(await span({ since: "1h" }), [0, 0]);
        assert.deepEqual(await span({}), [calls, 0]);
      }
    }
  });

  control("positive control: without the rows before the part, verdicts change", async () => {
    for (const { data, contract } of ledgers) {
      const file = fileOf("tail.jsonl", (await rowsOf(data)).slice(-17));
      assert.ok((await replayed(data, { file, contract })).changed > 0);
    }
  });

  test("replay reads only the earlier rows that a counter needs, and all without a window", async () => {
    const [short, long] = ledgers;
    for (const [{ data } = assert.fail(), text, first] of [
      [short, windowed, calls - 4 - 10],
      [long, lifelong, 1],
      [
        short,
        windowed
          .replace(/counters:\n.*\n/, "")
          .replace("counters.often >= 3", '"true"')
          .replace("{counters.often}", "no"),
        calls - 4,
      ],
    ] as const) {
      await using history = await openHistory({ folder: data });
      let least = Infinity;
      const telling = { onSkip: () => assert.fail(), onRow: (seq: number) => void (least = Math.min(least, seq)) };
      const decided: number[] = [];
      await decideAllAgain(
        history,
        { policySet: compiled(text), mode: undefined, span: { first: calls - 4, end: Infinity } },
        { ...telling, onDecision: ({ leaf }) => void decided.push(leaf.seq) },
      );
      assert.equal(least, first);
      assert.deepEqual(decided, [116, 117, 118, 119, 120]);
    }
  });

  test("replay reports an earlier row that a counter cannot count", async () => {
    const { data, contract } = ledgers[0] ?? assert.fail();
    const rows = (await rowsOf(data)).map((row): RecordedRow => (row.seq === 113 ? withoutInput(row) : row));
    const found = await replayed(data, { file: fileOf("erased.jsonl", rows), contract, last: "5" });
    assert.equal(found.decided, 5);
    assert.deepEqual(
      found.skipped.map(({ receipts }) => receipts),
      [1],
    );
    says("skipped-before-the-first", found.skipped[0]?.why ?? "");
  });

  test("replay refuses wrong --since, --until and --last values and says what to write", async () => {
    const { data, contract } = ledgers[0] ?? assert.fail();
    const rows: readonly (readonly [object, string])[] = [
      [{ last: "5" }, "span-without-contract"],
      [{ since: "7d" }, "span-without-contract"],
      [{ until: "7d" }, "span-without-contract"],
      [{ contract, last: "0" }, "last-of-zero"],
      [{ contract, since: "lately" }, "since-is-no-time"],
      [{ contract, since: "1h", until: "2h" }, "since-after-until"],
    ];
    for (const [options, name] of rows) await assert.rejects(replayed(data, options), saying(name));
  });

  test("report --last counts the last rows, or the last rows before --until", async () => {
    const { data } = ledgers[0] ?? assert.fail();
    const file = fileOf("report.jsonl", await rowsOf(data));
    for (const source of [{}, { file }]) {
      const report = async (options: object): Promise<readonly [number, number]> => {
        const { text } = await reportCommand(data, { from: "1", examples: "0", json: true, ...source, ...options });
        const { receipts, from } = JSON.parse(text) as { receipts: number; from: number };
        return [receipts, (from - at0) / minute];
      };
      assert.deepEqual(await report({ last: "7" }), [7, 113]);
      assert.deepEqual(await report({ last: "7", until: moment(50) }), [7, 43]);
      assert.deepEqual(await report({ last: "7", since: moment(118) }), [2, 118]);
      assert.deepEqual(await report({ last: "7", from: "119" }), [2, 118]);
      assert.deepEqual(await report({}), [calls, 0], "positive control");
    }
    await assert.rejects(
      reportCommand(data, { from: "1", examples: "0", json: true, last: "few" }),
      saying("last-is-no-number"),
    );
  });
});

/** Replaces the input in the row by its digest, as an erasure does. */
function withoutInput(row: RecordedRow): RecordedRow {
  const evidence = row.evidence.split("~");
  evidence[1] = hash("sha256", evidence[1] ?? "", "base64url");
  return { ...row, evidence: evidence.join("~") };
}
