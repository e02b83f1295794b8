/**
 * Goal: the filters of GET /receipts give the same results on each engine as on a plain list. Method: random queries on
 * a ledger in SQLite and on one in PostgreSQL are compared with a filter over their receipts; also GET /receipts of a
 * gate in assist mode. UPDATE_GOLDEN=1 rewrites the sentences.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, suite, test } from "node:test";
import fc from "fast-check";
import { reportCommand } from "../../packages/records/src/report/command.ts";
import { leafTexts } from "../../packages/core/src/record/entry/leaf.ts";
import { openPostgres } from "../../packages/gate/src/ledger/in-database.ts";
import { openLedger, type Ledger, type ReceiptQuery } from "../../packages/gate/src/ledger/mod.ts";
import { firstSince } from "../../packages/gate/src/ledger/history/table-reads.ts";
import { ask, check, key as apiKey, startGate } from "../support/gate.ts";
import { append, contracts, engine, entry, temporaryFolder } from "../support/ledger-fixture.ts";
import { openDatabase } from "../support/databases.ts";
import { randomRuns } from "../support/random-test.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

/** Compares the message of an error with the sentence of this name. */
const saying =
  (name: string) =>
  (error: Error): true => {
    says(name, error.message);
    return true;
  };

const server = await openDatabase({ after });
const minute = 60_000;
/** Two days ago, because a gate adds rows after these. */
const at0 = Math.floor(Date.now() / minute - 2880) * minute;
const rows = 400;
/** A name that would end its text in the leaf if it were not escaped. */
const odd = 'x","kind":"change","mode":"observe","prev":"\u00e4\\';
const keys = ["default", "ci", odd];

interface Shown {
  readonly seq: number;
  readonly at: number;
  readonly verdict: string;
  readonly answered: string;
  readonly mode: string;
  readonly key: string;
  readonly session_id: string;
}

/** Rows with one moment in common, with each mode and key, and with softened verdicts. */
async function fill(ledger: Ledger): Promise<void> {
  await ledger.keepContract(contracts[0]);
  const entries = Array.from({ length: rows }, (_, index) => {
    const verdict = (["ALLOW", "ALLOW", "BLOCK", "ALLOW", "ESCALATE"] as const)[index % 5] ?? "ALLOW";
    const mode = (["observe", "assist", "enforce"] as const)[Math.floor(index / 50) % 3] ?? "observe";
    const softened = mode === "assist" && verdict === "BLOCK" ? "ESCALATE" : verdict;
    return entry({
      at: at0 + Math.floor(index / 3) * minute,
      sessionId: `run-${index % 7}`,
      keyName: keys[index % 4] ?? "default",
      mode,
      verdict,
      answered: mode === "observe" ? "ALLOW" : softened,
    });
  });
  await append(
    ledger,
    entries.map((row) => [row, []]),
  );
}

async function shown(ledger: Ledger, query: ReceiptQuery): Promise<readonly Shown[]> {
  const slices = await Array.fromAsync(ledger.rows.receipts(query));
  return slices.flat().map(({ json }) => JSON.parse(json) as Shown);
}

const maybe = <Value>(...values: readonly Value[]): fc.Arbitrary<Value | undefined> =>
  fc.option(fc.constantFrom(...values), { nil: undefined });
const moments = fc.option(fc.integer({ min: at0 - minute, max: at0 + (rows / 3 + 2) * minute }), { nil: undefined });
const queries = fc.record({
  before: fc.oneof(fc.integer({ min: 1, max: rows + 2 }), fc.constant(Number.MAX_SAFE_INTEGER)),
  limit: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constant(1000)),
  session: maybe("run-1", "run-2", "none"),
  verdict: maybe("ALLOW", "BLOCK", "ESCALATE"),
  answered: maybe("ALLOW" as const, "BLOCK" as const, "ESCALATE" as const),
  mode: maybe("observe" as const, "assist" as const, "enforce" as const),
  key: maybe(...keys, "nobody", "x"),
  since: fc.oneof(moments, maybe(at0, at0 + 7 * minute)),
  until: fc.oneof(moments, maybe(at0, at0 + 90 * minute)),
});

function fits(row: Shown, { before, session, verdict, answered, mode, key, since = 0, until }: ReceiptQuery): boolean {
  return (
    row.seq < before &&
    (session ?? row.session_id) === row.session_id &&
    (verdict ?? row.verdict) === row.verdict &&
    (answered ?? row.answered) === row.answered &&
    (mode ?? row.mode) === row.mode &&
    (key ?? row.key) === row.key &&
    row.at >= since &&
    row.at < (until ?? Infinity)
  );
}

function onEngine(name: string, open: (folder: string) => Promise<Ledger>): void {
  test(`${name}: filters and pages give the same rows as a plain list`, { tags: ["first-use-12"] }, async (t) => {
    const ledger = await open(temporaryFolder(t));
    t.after(() => ledger.close());
    await fill(ledger);
    const all = await shown(ledger, { before: Number.MAX_SAFE_INTEGER, limit: 1000 });
    assert.equal(all.length, rows);
    await fc.assert(
      fc.asyncProperty(queries, async (query) => {
        const wanted = all.filter((row) => fits(row, query)).slice(0, query.limit);
        assert.deepEqual(await shown(ledger, query), wanted);
      }),
      randomRuns(t, 300),
    );
    const half = { since: at0 + 5 * minute, until: at0 + 7 * minute };
    const within = await shown(ledger, { before: Number.MAX_SAFE_INTEGER, limit: 1000, ...half });
    const ends = [within.at(-1)?.at, within[0]?.at];
    assert.deepEqual([within.length, ...ends], [6, half.since, half.until - minute], "the interval is half-open");
  });
}

suite("filters of receipts", () => {
  onEngine("SQLite", (folder) => openLedger({ folder, engine }));
  if (typeof server === "string") test("PostgreSQL: filters", { skip: server }, () => undefined);
  else {
    const url = server.url();
    onEngine("PostgreSQL", async (folder) => {
      const database = await openPostgres({ url, mayMigrate: true });
      after(() => database.close());
      return openLedger({ folder, shared: { database, ledger: "root" }, engine });
    });
  }

  test("the search for a moment among a million rows reads about twenty rows", { tags: ["first-use-12"] }, async () => {
    let reads = 0;
    const leafAt = async (seq: number): Promise<string> => {
      reads += 1;
      return (
        `{"answered":"ALLOW","at":${seq * 10},"contract":null,"engine":"e","evidence":"${"0".repeat(64)}","key":null` +
        `,"kind":"check","log":"l","mode":null,"prev":"${"0".repeat(64)}","rule":null,"seq":${seq},"tool":null,"v":1,"verdict":null}`
      );
    };
    assert.equal(await firstSince(leafAt, 1_000_000, 7_654_321), 765_433);
    assert.ok(reads <= 21, `${reads} reads`);
    assert.equal(await firstSince(leafAt, 1_000_000, 0), 1);
    assert.equal(await firstSince(leafAt, 1_000_000, 99_999_999), 1_000_001);
    assert.equal(await firstSince(leafAt, 0, 5), 1);
  });

  test("a key's name cannot make its leaf match a filter for another member", { tags: ["first-use-12"] }, async (t) => {
    const ledger = await openLedger({ folder: temporaryFolder(t), engine });
    t.after(() => ledger.close());
    await ledger.keepContract(contracts[0]);
    await append(ledger, [[entry({ keyName: odd, mode: "enforce" }), []]]);
    const newest = { before: 2, limit: 1 };
    assert.deepEqual(await shown(ledger, { ...newest, mode: "observe" }), []);
    const naive = odd.slice(odd.indexOf('"mode"'), odd.indexOf('"\u00e4'));
    assert.ok(leafTexts({ mode: "observe" })[0]?.startsWith(naive), "positive control: unescaped it would be found");
    assert.equal((await shown(ledger, { ...newest, mode: "enforce", key: odd })).length, 1);
  });
});

suite("GET /receipts", () => {
  test("`answered=ESCALATE` lists every call that assist mode escalates", { tags: ["first-use-12"] }, async (t) => {
    const gate = await startGate(t, { flags: { mode: "assist" } });
    for (const tool of ["door.open", "note.add", "mail.send", "safe.open", "door.open"])
      await check(gate, { tool_name: tool, tool_input: {} });
    const seqs = async (query: string): Promise<readonly number[]> =>
      (await ask(gate, `/receipts?${query}`)).json.receipts.map(({ seq }: Shown) => seq);
    assert.deepEqual(await seqs("answered=ESCALATE"), [5, 3, 1]);
    assert.deepEqual(await seqs("answered=ESCALATE&verdict=BLOCK&limit=1"), [5]);
    assert.deepEqual(await seqs("verdict=ESCALATE"), [3], "positive control: by verdict they are not all there");
    assert.deepEqual(await seqs("answered=BLOCK&mode=assist&key=default"), [4]);
    assert.deepEqual(await seqs("mode=observe"), []);
    assert.deepEqual(await seqs("key=nobody"), []);
    const { at } = (await ask(gate, "/receipts/3")).json as Shown;
    const moment = new Date(at).toISOString();
    for (const since of [String(at), moment, moment.replace("Z", "%2B00:00")])
      assert.deepEqual((await seqs(`since=${since}`)).includes(3), true, since);
    assert.deepEqual((await seqs(`until=${at}`)).includes(3), false);
    assert.deepEqual(await seqs("since=2020-01-01&until=2020-01-02"), []);
    assert.deepEqual((await seqs("since=2020-01-01")).length, 5);
  });

  const refused: readonly (readonly [query: string, name: string])[] = [
    ["answered=PARKED", "answered"],
    ["mode=strict", "mode"],
    ["key=", "key"],
    ["act=", "act"],
    ["since=yesterday", "since"],
    ["until=2026-02-30", "until-of-no-day"],
    ["since=2026-01-31T12:00:00+01:00", "since-with-a-plus"],
    ["since=2026-01-31&until=2026-01-30", "since-after-until"],
    ["answer=BLOCK", "parameter-with-a-slip"],
    ["at=5", "unknown-parameter"],
    ["tool=note.add", "unknown-parameter-and-those-there-are"],
    ["since=1&since=2", "parameter-twice"],
  ];
  test("GET /receipts refuses a wrong value and says what to write", { tags: ["first-use-12"] }, async (t) => {
    const gate = await startGate(t);
    for (const [query, name] of refused) {
      const { status, json } = await ask(gate, `/receipts?${query}`);
      assert.deepEqual([status, json.code], [400, "invalid-query"], query);
      says(name, json.detail);
    }
  });
});

suite("svc-gate report", () => {
  test(
    "--since and --until limit the report of a folder or gate to a period",
    { tags: ["first-use-24"] },
    async (t) => {
      const folder = temporaryFolder(t);
      const data = join(folder, "data");
      const ledger = await openLedger({ folder: data, engine });
      await fill(ledger);
      await ledger.close();
      const gate = await startGate(t, { folder, flags: { mode: "assist" } }); // the mode of the last row
      const now = await check(gate, { tool_name: "note.add", tool_input: {} });
      assert.equal(now.json.receipt.seq, rows + 1);
      const keyFile = join(folder, "key");
      writeFileSync(keyFile, apiKey);
      const options = { from: "1", examples: "0", json: true };
      for (const source of [{}, { url: gate.address, keyFile }]) {
        const report = async (times: object): Promise<{ receipts: number; from: number; to: number }> =>
          JSON.parse((await reportCommand(data, { ...options, ...source, ...times })).text);
        const since = new Date(at0 + 5 * minute).toISOString();
        const until = new Date(at0 + 7 * minute).toISOString();
        const within = await report({ since, until });
        assert.deepEqual([within.receipts, within.from, within.to], [6, at0 + 5 * minute, at0 + 6 * minute]);
        assert.equal((await report({ until })).receipts, 21);
        assert.equal((await report({ since })).receipts, rows + 1 - 15);
        assert.equal((await report({ since: "1h" })).receipts, 1, "the last hour has only the call of this test");
        assert.equal((await report({})).receipts, rows + 1, "positive control");
      }
      await assert.rejects(reportCommand(data, { ...options, since: "lately" }), saying("since-of-the-report"));
      const turned = { ...options, since: "1h", until: "2h" };
      await assert.rejects(reportCommand(data, turned), saying("since-after-until-of-the-report"));
    },
  );
});
