import assert from "node:assert/strict";
import { suite, test, type TestContext } from "node:test";
import fc from "fast-check";
import { counterEntry } from "../../packages/gate/src/ledger/store/checksums.ts";
import type { LedgerStore, StoredEffect } from "../../packages/gate/src/ledger/store/store.ts";
import {
  tableSpecs,
  keyIn,
  type Column,
  type Entry,
  type EntryKey,
  type TableName,
  type Tables,
  type Cell,
} from "../../packages/gate/src/ledger/store/tables.ts";
import { sha256, temporaryFolder } from "./ledger-fixture.ts";
import { randomRuns, type RandomRuns } from "./random-test.ts";
import { storedRow, type Engine } from "./store-suite.ts";

const rows = 40;
const names = Object.keys(tableSpecs) as TableName[];

type AnyEntry = Entry<TableName> & Readonly<Record<string, Cell | null>>;

/** The entries of each table, in the order of its key. Checksums are left out: an engine in memory has none. */
type Written = { readonly [T in TableName]: readonly Entry<T>[] };

/** Tests that every table of an engine is read as it was written, by page, by key and by column. */
export function storeTables(name: string, { open }: Pick<Engine, "open">): void {
  suite(`${name}: tables`, () => {
    const filled = async (t: TestContext): Promise<readonly [Tables, Written]> => {
      const store = await open(temporaryFolder(t));
      t.after(() => store.close());
      const written = await fill(store);
      return [store.tables, written];
    };
    test("pages find exactly the entries within their bounds", async (t) => {
      await checkPages(...(await filled(t)), randomRuns(t, 200));
    });
    test("each entry is found by its key and by its columns, and a key without an entry finds nothing", async (t) => {
      const [tables, written] = await filled(t);
      for (const table of names) await checkEntries(tables, table, written);
    });
    test("totals and counts of events agree with the events", async (t) => {
      await checkEvents(...(await filled(t)));
    });
  });
}

/** Runs the checks of `storeTables` on tables with a fault, and returns those that notice it. */
export async function noticedBy(
  store: LedgerStore,
  fault: (tables: Tables) => Partial<Tables>,
): Promise<readonly string[]> {
  const written = await fill(store);
  const tables = { ...store.tables, ...fault(store.tables) };
  const checks = {
    pages: () => checkPages(tables, written, { numRuns: 300, seed: 1, endOnFailure: true }),
    entries: async () => {
      for (const table of names) await checkEntries(tables, table, written);
    },
    events: () => checkEvents(tables, written),
  };
  const noticed: string[] = [];
  for (const [check, run] of Object.entries(checks)) await run().catch(() => void noticed.push(check));
  return noticed;
}

async function checkPages(tables: Tables, written: Written, runs: RandomRuns): Promise<void> {
  const choice = fc.record({
    table: fc.constantFrom(...names),
    after: fc.option(fc.nat()),
    through: fc.option(fc.nat()),
    columns: fc.integer({ min: 1, max: 4 }),
    limit: fc.integer({ min: 1, max: 9 }),
  });
  await fc.assert(
    fc.asyncProperty(choice, async ({ table, after, through, columns, limit }) => {
      const all = written[table] as readonly AnyEntry[];
      const keyAt = (at: number | null): EntryKey | undefined =>
        at === null ? undefined : keyIn(table, all[at % all.length] as AnyEntry).slice(0, columns);
      const range = { after: keyAt(after), through: keyAt(through), limit };
      const page = (await tables.page(table, range)).map(plain);
      const isWithin = (key: EntryKey): boolean =>
        (range.after === undefined || compare(key, range.after) > 0) &&
        (range.through === undefined || compare(key, range.through) <= 0);
      const expected = all.filter((entry) => isWithin(keyIn(table, entry))).slice(0, limit);
      // Only a page with large rows may be shorter, and never empty before the end.
      assert.deepEqual(page, table === "receipts" ? expected.slice(0, page.length) : expected);
      assert.equal(page.length > 0, expected.length > 0);
    }),
    runs,
  );
}

async function checkEntries(tables: Tables, table: TableName, written: Written): Promise<void> {
  const entries = written[table] as readonly AnyEntry[];
  assert.ok(entries.length > 1, `${entries.length} entries`);
  const keys = entries.map((entry) => keyIn(table, entry));
  const stray = keys[0]?.map((value) => (typeof value === "number" ? 999_999 : sha256("stray"))) ?? [];
  const wanted = [...keys.toReversed(), stray, ...keys.slice(0, 1)];
  const found = (await tables.at(table, wanted)).map((entry) => entry && plain(entry));
  assert.deepEqual(found, [...entries.toReversed(), undefined, entries[0]], table);
  const columns = Object.keys(plain(entries[0] as AnyEntry)) as Column<TableName>[];
  for (const column of columns) {
    const part = (await tables.at(table, keys, [column])).map((entry) => entry && { ...entry });
    const alone = entries.map((entry) => ({ [column]: entry[column] }));
    assert.deepEqual(part, alone, column);
    const values = [...new Set(entries.map((entry) => entry[column] ?? null))].filter((value) => value !== null);
    const expected = values.flatMap((value) => entries.filter((entry) => entry[column] === value));
    const got = (await tables.where(table, column, values)).map(plain);
    assert.deepEqual(sorted(table, got), sorted(table, expected), column);
    const order = (all: readonly AnyEntry[]): readonly unknown[] => all.map((entry) => entry[column]);
    assert.deepEqual(order(got), order(expected), "in the order of the values");
  }
}

async function checkEvents(tables: Tables, { effects }: Written): Promise<void> {
  const keys = effects.flatMap((event) => {
    const [counter = 0, key = "", at = 0, seq = 0] = keyIn("effects", event);
    return [
      [counter, key, at, seq],
      [counter, key, Number(at) + 1, 0],
    ];
  });
  const before = (entryKey: EntryKey): string =>
    effects.findLast((event) => {
      const key = keyIn("effects", event);
      return key[0] === entryKey[0] && key[1] === entryKey[1] && compare(key, entryKey) < 0;
    })?.total ?? "0";
  const totals = await tables.totals(keys);
  const found = totals.map((total) => total ?? "0");
  assert.deepEqual(found, keys.map(before));
  const { live, folded, beyond, last, to } = await tables.tally(undefined, rows);
  assert.deepEqual([live + folded, beyond, last, to], [effects.length, 0, rows, undefined]);
  assert.equal((await tables.head()).rows, rows);
}

/** Writes some of everything. */
async function fill(store: LedgerStore): Promise<Written> {
  const all = Array.from({ length: rows }, (_, index) =>
    storedRow(index + 1, {
      session: index % 3 === 0 ? null : `s${index % 5}`,
      tool: `t${index % 4}`,
      verdict: index % 7 === 0 ? "BLOCK" : "ALLOW",
      evidence: "e".repeat(index === 20 ? 1_100_000 : index),
    }),
  );
  for (const definition of ["a", "b"])
    await store.keepCounter({ digest: sha256(definition), definition, through: null, unknownThrough: -1 }, []);
  const event = (seq: number): StoredEffect => ({
    seq,
    at: 1000 + Math.floor(seq / 2),
    counter: sha256(seq % 3 === 0 ? "a" : "b"),
    key: sha256(`key ${seq % 4}`),
    amount: String(seq),
  });
  const [live, reserved, taken] = [spread(1, 20), spread(21, 25), spread(1, 5)];
  const approvals = reserved.map((row) => {
    const status = row === 25 ? "denied" : "pending";
    const digests = { attach: sha256(`call ${row}`), place: sha256(`place ${row % 2}`) };
    return {
      seq: row,
      ...digests,
      key: `k${row % 2}`,
      status,
      ends: row === 24 ? null : 5000 + row,
      record: `{"row":${row}}`,
    };
  });
  const outcomes = taken.map((seq) => ({ seq, outcome: 30 + seq, status: seq === 1 ? "failed" : "done" }));
  const repeats = spread(1, 12).map((at) => ({ id: sha256(`repeat ${at}`), at, record: `r${at % 3}` }));
  const nodes = [
    [1, 0],
    [1, 1],
    [1, 10],
    [2, 0],
  ].map(([level = 0, index = 0]) => ({ level, index, hash: Buffer.from(sha256(`${level} ${index}`), "hex") }));
  const tree = { frontier: "", nodes, signed: Promise.resolve("") };
  const effects = [
    ...live.map(event),
    ...reserved.map((row) => ({ ...event(row), held: true as const })),
    ...taken.map((row) => ({ ...event(row), takenBy: 30 + row })),
  ];
  const transaction = await store.begin();
  await transaction.commit(all, effects, { approvals, outcomes, repeats, tree });
  const texts = ["one", "two", "three"];
  for (const text of texts) await store.keepContract(sha256(text), text);
  const { kept } = await store.tables.counters();
  const idOf = new Map(kept.map(({ digest, id }) => [digest, id]));
  const keyOf = (seq: number): Pick<Entry<"holds">, "at" | "counter" | "key" | "seq"> => {
    const { at, counter, key } = event(seq);
    return { counter: idOf.get(counter) ?? 0, key, at, seq };
  };
  const sums = new Map<string, number>();
  const events = live.map((seq) => {
    const key = keyOf(seq);
    const of = `${key.counter} ${key.key}`;
    sums.set(of, (sums.get(of) ?? 0) + seq);
    return { ...key, total: String(sums.get(of)), folded: null };
  });
  const written: Written = {
    receipts: all,
    contracts: texts.map((text) => ({ digest: sha256(text), text })),
    counters: kept.map(counterEntry),
    effects: events,
    approvals,
    holds: reserved.map((row) => ({ ...keyOf(row), amount: String(row) })),
    outcomes,
    withdrawals: taken.map((row) => ({ ...keyOf(row), amount: String(row), outcome: 30 + row, folded: null })),
    repeats,
    nodes: nodes.map(({ level, index, hash }) => ({ level, place: index, hash: hash.toString("hex") })),
  };
  const inOrder = names.map((table) => [table, sorted(table, (written[table] as readonly AnyEntry[]).map(plain))]);
  return Object.fromEntries(inOrder) as Written;
}

function spread(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

function plain<Any extends object>(entry: Any): Any {
  const { folded: _folded, ...rest } = entry as Any & { readonly folded?: unknown };
  return Object.fromEntries(Object.entries(rest).toSorted(([one], [other]) => (one < other ? -1 : 1))) as Any;
}

function sorted<Any extends object>(table: TableName, entries: readonly Any[]): readonly Any[] {
  const keyOf = (entry: Any): EntryKey => keyIn(table, entry as unknown as AnyEntry);
  return entries.toSorted((one, other) => compare(keyOf(one), keyOf(other)));
}

/** Compares keys value by value; a shorter key bounds only its values. */
function compare(one: EntryKey, other: EntryKey): number {
  const at = one.findIndex((value, index) => index < other.length && value !== other[index]);
  if (at === -1) return 0;
  return (one[at] ?? 0) < (other[at] ?? 0) ? -1 : 1;
}
