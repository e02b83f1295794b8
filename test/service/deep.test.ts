/**
 * Goal: a valid chain alone is not trusted. `verify --deep` decides and counts every recorded row again and names each
 * difference; an erased row is not a difference. Method: a gate writes one ledger under contracts that change, so that
 * counters are folded from older receipts. Then the ledger is changed, one thing at a time, as an attacker with the
 * file and the program could without breaking the chain. An export of the same ledger must give the same result.
 */
import assert from "node:assert/strict";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, suite, test, type TestContext } from "node:test";
import { replayAndFold } from "../../packages/records/src/deep/deep.ts";
import { shownDecided, type DeepFound } from "../../packages/records/src/deep/found.ts";
import { exportCommand } from "../../packages/records/src/export/command.ts";
import { replayCommand } from "../../packages/records/src/replay/command.ts";
import { verifyPathCommand } from "../../packages/records/src/verify/path.ts";
import { verifyCommand } from "../../packages/records/src/verify/command.ts";
import type { PartName } from "../../packages/core/src/record/entry/disclosure.ts";
import { evidenceDigest, withoutParts } from "../../packages/core/src/record/entry/evidence.ts";
import { inspectLedger, openLedger, readLedger } from "../../packages/gate/src/ledger/mod.ts";
import { counterChecksum, foldChecksum } from "../../packages/gate/src/ledger/store/checksums.ts";
import { control } from "../support/controls/control.ts";
import { eraseOn } from "../support/erasure-suite.ts";
import { ask, check, startGate, temporaryFolder } from "../support/gate.ts";
import { contracts, engine, entry } from "../support/ledger-fixture.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const lineOf = (text: string, pattern: RegExp): string => text.split("\n").find((line) => pattern.test(line)) ?? "";

const any = "{ type: object, additionalProperties: true }";
const tools = `contract: desk
tools:
  visit: { input: ${any}, otherwise: ALLOW }
  pay:
    input: { type: object, additionalProperties: false, required: [usd], properties: { usd: { type: number, minimum: 0 } } }
    otherwise: ALLOW
  safe.open: { input: ${any}, otherwise: BLOCK }
`;
const counting = `${tools}counters:
  visits: { of: [visit], per: session }
  spent: { of: [pay], per: key, counting: released, sum: input.usd, within: 30d }
rules:
  - { rule: often, on: [visit], when: counters.visits >= 6, verdict: BLOCK, reason: "{counters.visits} visits are enough" }
  - { rule: dear, on: [pay], when: counters.spent + input.usd > 100, verdict: ESCALATE, reason: "{counters.spent} USD are spent" }
`;

/** The contract of each start: no counters, then two folded counters, then none, then both again. */
const stages = [tools, counting, tools, counting];
const calls = [
  ["visit", {}],
  ["pay", { usd: 7 }],
  ["pay", { usd: 0.5 }],
  ["safe.open", {}],
] as const;
const rows = stages.length * calls.length;
const verifyOptions = { json: true, pin: undefined, chain: false, deep: true, database: undefined };

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

/** Returns the folder of a ledger that the stages have written. */
async function written(t: Parameters<typeof temporaryFolder>[0]): Promise<string> {
  const folder = temporaryFolder(t);
  for (const contract of stages) {
    const gate = await startGate(t, { folder, contracts: { "desk.yaml": contract } });
    for (const [tool, input] of calls) await check(gate, { tool_name: tool, tool_input: input, session_id: "run" });
    await gate.stop();
  }
  return join(folder, "data");
}

async function deep(folder: string): Promise<DeepFound> {
  const ledger = await readLedger(folder);
  try {
    return await replayAndFold(ledger, () => undefined);
  } finally {
    await ledger.close();
  }
}

function copied(t: TestContext): string {
  const copy = join(temporaryFolder(t), "data");
  cpSync(pristine, copy, { recursive: true });
  return copy;
}

function alter(folder: string, change: (database: DatabaseSync) => void): void {
  const database = new DatabaseSync(join(folder, "ledger.db"));
  change(database);
  database.close();
}

/** Writes a counter's row with a matching checksum, as an attacker with the program can. */
function sealCounter(database: DatabaseSync, id: number, folded: number): void {
  const { digest, unknown_through: unknownThrough } =
    database.prepare("SELECT * FROM counters WHERE id = ?").get(id) ?? {};
  const kept = {
    id,
    digest: String(digest),
    definition: "",
    through: null,
    unknownThrough: Number(unknownThrough),
    resetThrough: -1,
    folded,
  };
  database.prepare("UPDATE counters SET folded = ?, seal = ? WHERE id = ?").run(folded, counterChecksum(kept), id);
}

interface FoldedRow {
  readonly counter: number;
  readonly key: Uint8Array;
  readonly at: number;
  readonly seq: number;
  readonly total: string;
}

/** Changes the last event of a counter, so that no later event contradicts its total. */
function foldedRows(database: DatabaseSync): readonly FoldedRow[] {
  return database
    .prepare("SELECT counter, key, at, seq, total FROM effects WHERE folded IS NOT NULL ORDER BY counter, at, seq")
    .all() as unknown as FoldedRow[];
}

/** Rewrites all totals of one key after a changed event, with matching checksums. */
function retotal(
  database: DatabaseSync,
  counter: number,
  amountOf: (seq: number, amount: number) => number | undefined,
): void {
  const digest = String(database.prepare("SELECT digest FROM counters WHERE id = ?").get(counter)?.["digest"]);
  const events = database
    .prepare("SELECT key, at, seq, total, folded FROM effects WHERE counter = ? ORDER BY at, seq")
    .all(counter) as unknown as (FoldedRow & { readonly folded: string | null })[];
  database.prepare("DELETE FROM effects WHERE counter = ?").run(counter);
  const insert = database.prepare(
    "INSERT INTO effects (counter, key, at, seq, total, folded) VALUES (?, ?, ?, ?, ?, ?)",
  );
  let [was, is, count] = [0, 0, 0];
  let earlier: string | undefined;
  for (const { key, at, seq, total, folded } of events) {
    const amount = amountOf(seq, Number(total) - was);
    was = Number(total);
    if (amount === undefined) continue;
    is += amount;
    const seal =
      folded === null
        ? null
        : foldChecksum({ counter: digest, key: hexOf(key), at, seq, total: String(is), before: earlier });
    insert.run(counter, key, at, seq, String(is), seal);
    earlier = String(is);
    if (seal !== null) count += 1;
  }
  sealCounter(database, counter, count);
}

const pristine = await written({ after });

suite("`verify --deep` on a ledger", () => {
  test("each check and each folded event of an untouched ledger agrees, also while a gate serves it", async (t) => {
    const found = await deep(pristine);
    assert.deepEqual([found.rows, found.replayed, found.notReplayable, found.differs], [rows, rows, 0, 0]);
    // Among the first four rows, and among the four without counters: one visit and two payments each.
    assert.deepEqual(found.counters, { kept: 2, events: 6, unverifiable: 0, firstWrong: undefined });
    const { exitCode, text } = await verifyCommand(pristine, verifyOptions);
    const printed = JSON.parse(text);
    assert.deepEqual([exitCode, printed.ok, printed.rows], [0, true, rows]);
    const gate = await startGate(t, { folder: join(pristine, ".."), contracts: { "desk.yaml": counting } });
    const beside = (await verifyCommand(pristine, verifyOptions)).text;
    assert.deepEqual(JSON.parse(beside).deep, printed.deep);
    const { status, json } = await ask(gate, "/ledger/verify?deep=1");
    assert.deepEqual([status, json.code], [400, "invalid-query"], "a gate walks the chain, and does no more");
    says("a-parameter-that-the-path-does-not-take", json.detail);
  });

  test("the rows of a ledger agree while a gate adds more rows", async (t) => {
    const data = copied(t);
    const gate = await startGate(t, { folder: join(data, ".."), contracts: { "desk.yaml": counting } });
    const over = new AbortController();
    const found = verifyCommand(data, verifyOptions).finally(() => over.abort());
    let reads = 0;
    for (; !over.signal.aborted; reads += 1)
      await check(gate, { tool_name: "visit", tool_input: {}, session_id: "run 2" });
    const { exitCode, text } = await found;
    const { ok, deep: again } = JSON.parse(text);
    assert.deepEqual([exitCode, ok, again.not_replayable, again.differs], [0, true, 0, 0], text);
    assert.ok(reads > 0 && again.replayed >= rows, `${reads} checks meanwhile`);
  });

  const forgeries: readonly (readonly [
    title: string,
    forge: (folder: string) => Promise<void> | void,
    found: (deep: DeepFound) => unknown,
  ])[] = [
    [
      "a receipt of a verdict that no contract reached",
      forgeVerdict,
      ({ differs, firstDiffering }) =>
        assert.deepEqual([differs, firstDiffering?.seq, firstDiffering?.what], [1, rows + 1, "verdict"]),
    ],
    [
      "a reduced event of an older receipt",
      (folder) => alter(folder, (database) => retotal(database, 2, (seq, amount) => (seq === 2 ? 1 : amount))),
      ({ counters }) =>
        assert.deepEqual(
          [
            counters.firstWrong?.counter,
            counters.firstWrong?.seq,
            counters.firstWrong?.expected,
            counters.firstWrong?.found,
          ],
          ["desk.spent", 2, "7", "1"],
        ),
    ],
    [
      "a missing event of an older receipt",
      (folder) => alter(folder, (database) => retotal(database, 1, (seq, amount) => (seq === 1 ? undefined : amount))),
      ({ counters }) =>
        assert.deepEqual(
          [counters.firstWrong?.counter, counters.firstWrong?.seq, counters.firstWrong?.found],
          ["desk.visits", 1, "0"],
        ),
    ],
    [
      "an event that no receipt makes",
      (folder) =>
        alter(folder, (database) => {
          const last = foldedRows(database)
            .filter(({ counter }) => counter === 1)
            .at(-1);
          assert.ok(last !== undefined);
          const key = new Uint8Array(32);
          const digest = String(database.prepare("SELECT digest FROM counters WHERE id = 1").get()?.["digest"]);
          const seal = foldChecksum({
            counter: digest,
            key: hexOf(key),
            at: last.at,
            seq: last.seq,
            total: "1",
            before: undefined,
          });
          database
            .prepare("INSERT INTO effects (counter, key, at, seq, total, folded) VALUES (1, ?, ?, ?, '1', ?)")
            .run(key, last.at, last.seq, seal);
          sealCounter(database, 1, 3);
        }),
      ({ counters }) =>
        assert.deepEqual(
          [counters.firstWrong?.counter, counters.firstWrong?.expected, counters.firstWrong?.found],
          ["desk.visits", "2", "3"],
        ),
    ],
  ];
  for (const [title, forge, found] of forgeries) {
    test(`verify --deep names ${title}, though the chain is valid`, async (t) => {
      const folder = copied(t);
      await forge(folder);
      assert.equal((await inspectLedger({ folder })).broken, undefined, "the walk over the chain calls it whole");
      found(await deep(folder));
      const { exitCode, text } = await verifyCommand(folder, { ...verifyOptions, json: false });
      assert.equal(exitCode, 1, text);
      assert.match(text, /^(?:DIFFERS|WRONG COUNTER)/);
    });
  }

  test("`verify --deep` does not replay a broken chain", async (t) => {
    const folder = copied(t);
    alter(folder, (database) => database.exec("UPDATE receipts SET tool = 'x' WHERE seq = 2"));
    const printed = JSON.parse((await verifyCommand(folder, verifyOptions)).text);
    assert.deepEqual([printed.ok, printed.first_broken.seq, "deep" in printed], [false, 2, false]);
  });
});

/** Forges a receipt with an answer that no gate gave, as another program could. */
async function forgeVerdict(folder: string): Promise<void> {
  const ledger = await openLedger({ folder, engine });
  const transaction = await ledger.begin();
  const [contract] = (await contractsOf(folder)).slice(-1);
  const over = { toolName: "safe.open", inputText: "{}", rule: "desk.$otherwise", contract: contract as string };
  transaction.append(entry({ ...over, at: transaction.head.at + 1, reason: "Svc: it may be opened" }), []);
  await transaction.commit();
  await ledger.close();
}

/** Returns the contracts that the rows name, in the rows' order. */
async function contractsOf(folder: string): Promise<readonly string[]> {
  const ledger = await readLedger(folder);
  const found: string[] = [];
  for await (const slice of ledger.scan(1))
    for (const { leaf } of slice) found.push(String(/"contract":"sha256:([0-9a-f]+)"/.exec(leaf)?.[1]));
  await ledger.close();
  return found;
}

/** Removes parts from a row as an erasure does: their digests stay. */
function erase(folder: string, seq: number, ...parts: readonly PartName[]): void {
  alter(folder, (database) => {
    const evidence = String(database.prepare("SELECT evidence FROM receipts WHERE seq = ?").get(seq)?.["evidence"]);
    const erased = withoutParts(evidence, parts);
    assert.equal(evidenceDigest(erased), evidenceDigest(evidence));
    database.prepare("UPDATE receipts SET evidence = ? WHERE seq = ?").run(erased, seq);
  });
}

suite("`verify --deep` on a ledger with erased rows", () => {
  test("an erased row is not replayable, and later rows that its counters affect still agree", async (t) => {
    const folder = copied(t);
    erase(folder, 6, "input", "reason", "outcome");
    const { replayed, notReplayable, firstNotReplayable, differs, counters } = await deep(folder);
    assert.deepEqual([replayed, notReplayable, differs], [rows - 1, 1, 0]);
    assert.equal(firstNotReplayable?.seq, 6);
    says("erased", firstNotReplayable?.why ?? "");
    assert.deepEqual([counters.firstWrong, counters.unverifiable], [undefined, 0], "its effects say what it moved");
    const { exitCode, text } = await replayCommand(folder, { examples: "3", json: true });
    const printed = JSON.parse(text);
    assert.deepEqual([exitCode, printed.disagreements], [0, 0], text);
    assert.equal(printed.skipped[0].first, 6);
  });

  test("a counter that was folded from an erased row is unsure, and checks that read it agree", async (t) => {
    const folder = copied(t);
    erase(folder, 2, "input", "reason", "outcome");
    const { replayed, notReplayable, differs, counters } = await deep(folder);
    assert.deepEqual([replayed, notReplayable, differs], [rows - 1, 1, 0]);
    assert.deepEqual([counters.firstWrong, counters.unverifiable], [undefined, 1]);
    const { exitCode, text } = await replayCommand(folder, { examples: "3", json: true });
    assert.deepEqual([exitCode, JSON.parse(text).disagreements], [0, 0], text);
  });

  control("positive control: a row with another outcome is noticed", async (t) => {
    const folder = copied(t);
    const ledger = await openLedger({ folder, engine });
    const transaction = await ledger.begin();
    const [contract] = (await contractsOf(folder)).slice(-1);
    const over = { toolName: "visit", inputText: "{}", rule: "desk.$otherwise", contract: contract as string };
    transaction.append(
      entry({ ...over, at: transaction.head.at + 1, outcome: { counters: {}, errors: {}, fired: [] } }),
      [],
    );
    await transaction.commit();
    await ledger.close();
    assert.equal((await deep(folder)).differs, 1);
  });
});

/** Exports a ledger's folder. */
async function exported(t: TestContext, dataDir: string): Promise<string> {
  const target = join(temporaryFolder(t), "export");
  const all = { database: undefined, cosigned: false, format: undefined, from: undefined, to: undefined, json: true };
  assert.equal((await exportCommand(target, { ...all, dataDir })).exitCode, 0);
  return target;
}

const exportOptions = { ...verifyOptions, dataDir: "", key: [], witness: [] };

suite("`verify --deep` on an export", () => {
  test("each check of an untouched export agrees, as in its ledger", async (t) => {
    const folder = await exported(t, pristine);
    const { exitCode, text } = await verifyPathCommand(folder, exportOptions);
    const { ok, rows: found, deep: again } = JSON.parse(text);
    assert.deepEqual([exitCode, ok, found, again.replayed], [0, true, rows, rows]);
    assert.deepEqual(again, shownDecided(await deep(pristine)));
    const plain = await verifyPathCommand(folder, { ...exportOptions, json: false });
    says("whole-export", lineOf(plain.text, /^ok: /));
    says("replay-of-whole-export", lineOf(plain.text, /^ {2}replay /));
    const walked = await verifyPathCommand(folder, { ...exportOptions, deep: false });
    assert.equal("deep" in JSON.parse(walked.text), false);
  });

  test("`verify --deep` names a receipt of a verdict that no contract reached, though the tree is valid", async (t) => {
    const data = copied(t);
    await forgeVerdict(data);
    const folder = await exported(t, data);
    assert.equal((await verifyPathCommand(folder, { ...exportOptions, deep: false })).exitCode, 0);
    const { exitCode, text } = await verifyPathCommand(folder, exportOptions);
    const { ok, problem, deep: again } = JSON.parse(text);
    assert.deepEqual([exitCode, ok, problem], [1, false, null]);
    assert.deepEqual([again.differs, again.first_differing.seq, again.first_differing.what], [1, rows + 1, "verdict"]);
    assert.deepEqual(again, shownDecided(await deep(data)));
    const plain = await verifyPathCommand(folder, { ...exportOptions, json: false });
    assert.match(plain.text, /^DIFFERS: 1 of 17 .*\brow 17\b/);
    says("another-verdict", lineOf(plain.text, /^DIFFERS/));
  });

  test("an erased row and the rows that read its counters are not replayable", async (t) => {
    const data = copied(t);
    const ledger = await openLedger({ folder: data, engine });
    await ledger.keepContract(contracts[0]);
    await eraseOn(ledger, { target: { rows: [[6, 6]] }, parts: ["input", "reason", "outcome"] });
    await ledger.close();
    const { text } = await verifyPathCommand(await exported(t, data), exportOptions);
    const { ok, deep: again } = JSON.parse(text);
    assert.deepEqual([ok, again.not_replayable, again.first_not_replayable.seq, again.differs], [true, 4, 6, 0]);
  });

  test("a broken export is not replayed, and `--deep` cannot be used with `--chain`", async (t) => {
    const folder = await exported(t, pristine);
    const file = join(folder, "evidence", "000.p", String(rows));
    writeFileSync(
      file,
      readFileSync(file, "latin1").replace(/[A-Z]/, (letter) => (letter === "A" ? "B" : "A")),
    );
    const { exitCode, text } = await verifyPathCommand(folder, exportOptions);
    const { ok, problem, deep: again } = JSON.parse(text);
    assert.deepEqual([exitCode, ok, problem.row, again], [1, false, 1, undefined]);
    await assert.rejects(verifyPathCommand(folder, { ...exportOptions, chain: true }), /--chain .*: choose one$/);
  });
});
