import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { suite, test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import fc from "fast-check";
import type { LedgerStore, StoredEffect, StoredLookup } from "../../packages/gate/src/ledger/store/store.ts";
import type { RowQuery } from "../../packages/gate/src/ledger/store/tables.ts";
import { makeLedgerRows } from "../../packages/gate/src/ledger/history/history.ts";
import { findRows } from "../../packages/gate/src/ledger/history/table-reads.ts";
import { LedgerRefused, NotKept } from "../../packages/gate/src/ledger/errors.ts";
import { changeColumns, type StoredRow } from "../../packages/core/src/record/entry/row.ts";
import { sha256, temporaryFolder } from "./ledger-fixture.ts";
import { randomRuns } from "./random-test.ts";
import { storeCounters } from "./store-counters.ts";
import { storeRepeats } from "./store-repeats.ts";
import { storeTables } from "./store-tables.ts";

/** An engine and how to open it at a location; the same location gives the same ledger again. */
interface AnyEngine {
  readonly open: (folder: string, mustExist?: boolean) => Promise<LedgerStore>;
  /** Writes a row without a gate. */
  readonly intrude: (folder: string) => Promise<void> | void;
  /** The result of a commit that conflicts with that row. */
  readonly intruded: RegExp;
}

/** For engines where one gate owns the ledger for its whole life. */
export interface OwnedEngine extends AnyEngine {
  readonly kind: "owned";
  /** A module that opens the location in `argv[2]`, prints `open` or the error, and stays. */
  readonly owner: string;
}

/** For engines where gates share the ledger, transaction by transaction. */
export interface SharedEngine extends AnyEngine {
  readonly kind: "shared";
  /** A module that runs the transactions of `shareTurns` on the location in `argv[2]`, `argv[3]` times. */
  readonly sharer: string;
  /** The environment for a process that uses the engine. */
  readonly env: () => Readonly<Record<string, string>>;
}

/** For engines whose ledgers do not outlive the process. */
interface MemoryEngine extends AnyEngine {
  readonly kind: "memory";
}

export type Engine = MemoryEngine | OwnedEngine | SharedEngine;

export const keyOf = (name: string): string => sha256(`key ${name}`);

export function storedRow(seq: number, over: Partial<StoredRow> = {}): StoredRow {
  return { seq, leaf: `leaf ${seq}`, evidence: `evidence ${seq}`, session: null, tool: "t", verdict: "ALLOW", ...over };
}

async function all(slices: AsyncIterable<readonly StoredRow[]>): Promise<readonly StoredRow[]> {
  return (await Array.fromAsync(slices)).flat();
}

const newest: Pick<RowQuery, "before" | "limit"> = { before: Number.MAX_SAFE_INTEGER, limit: 1_000_000 };

/** Makes one transaction that adds rows and their counter updates. */
export async function commit(
  store: LedgerStore,
  rows: readonly StoredRow[],
  effects: readonly StoredEffect[] = [],
): Promise<void> {
  const transaction = await store.begin();
  await transaction.commit(rows, effects);
}

/** Makes one transaction that only reads. */
export async function look(
  store: LedgerStore,
  lookups: readonly StoredLookup[],
): Promise<readonly (string | undefined)[]> {
  const transaction = await store.begin();
  const found = await transaction.values(lookups);
  await transaction.abort();
  return found;
}

/** Tests every promise of a storage engine, through the interface that it implements. */
export function storeSuite(name: string, engine: Engine): void {
  const { open, intrude, intruded } = engine;
  /** Objects that a failed test left open do not keep the process alive. */
  const openFor = async (t: TestContext, folder: string, mustExist?: boolean): Promise<LedgerStore> => {
    const store = await open(folder, mustExist);
    t.after(() => store.close().catch(() => undefined));
    return store;
  };

  storeRepeats(name, engine);
  suite(`${name}: order and reopening`, { tags: ["receipts.limit"] }, () => {
    test("rows are read as they were written, oldest first and newest first, before and after a restart", async (t) => {
      const folder = temporaryFolder(t);
      const rows = Array.from({ length: 1300 }, (_, at) =>
        storedRow(at + 1, { session: at % 3 === 0 ? null : `ä ${at % 5}` }),
      );
      let store = await openFor(t, folder);
      assert.equal(store.opened.head, undefined);
      for (let from = 0; from < rows.length; from += 100) await commit(store, rows.slice(from, from + 100), []);
      for (let round = 0; round < 2; round += 1) {
        assert.deepEqual(await all(makeLedgerRows(store.tables).scan(1)), rows);
        assert.deepEqual(await all(makeLedgerRows(store.tables).scan(1290)), rows.slice(1289));
        assert.deepEqual(await all(findRows(store.tables, newest)), rows.toReversed());
        await store.close();
        store = await openFor(t, folder, true);
        assert.deepEqual(store.opened.head, { seq: 1300, leaf: "leaf 1300" });
        assert.equal(store.opened.created, false);
      }
      await store.close();
    });

    test("filters and pages give the rows of a plain list", async (t) => {
      const store = await openFor(t, temporaryFolder(t));
      const rows = Array.from({ length: 600 }, (_, at) =>
        storedRow(at + 1, {
          session: [null, "s", "r"][at % 3] ?? null,
          tool: `t${at % 4}`,
          verdict: at % 7 === 0 ? "BLOCK" : at % 11 === 0 ? "ESCALATE" : "ALLOW",
        }),
      );
      await commit(store, rows, []);
      const maybe = <Value>(...of: readonly Value[]) => fc.option(fc.constantFrom(...of), { nil: undefined });
      const queries = fc.record({
        before: fc.oneof(fc.integer({ min: 1, max: 700 }), fc.constant(Number.MAX_SAFE_INTEGER)),
        from: maybe(1, 2, 77, 590, 600, 601, 700),
        limit: fc.integer({ min: 1, max: 1000 }),
        session: maybe("s", "r", "none"),
        tool: maybe("t0", "t3", "none"),
        verdict: maybe("ALLOW", "BLOCK", "ESCALATE"),
        refused: maybe(true, false),
        leafHas: maybe([], ["leaf "], ["1", "22"]),
      });
      await fc.assert(
        fc.asyncProperty(queries, async (query) => {
          const { before, from = 1, leafHas = [], refused = false } = query;
          const fits = (row: StoredRow): boolean =>
            (["session", "tool", "verdict"] as const).every((each) => (query[each] ?? row[each]) === row[each]) &&
            !(refused && row.verdict === "ALLOW") &&
            leafHas.every((text) => row.leaf.includes(text));
          const fitting = rows.slice(from - 1, before - 1).filter(fits);
          assert.deepEqual(await all(findRows(store.tables, query)), fitting.toReversed().slice(0, query.limit));
        }),
        randomRuns(t, 150),
      );
    });

    test("large rows are read in slices of bounded size", async (t) => {
      const store = await openFor(t, temporaryFolder(t));
      const rows = Array.from({ length: 40 }, (_, at) => storedRow(at + 1, { evidence: "e".repeat(200_000) }));
      await commit(store, rows, []);
      for (const slices of [makeLedgerRows(store.tables).scan(1), findRows(store.tables, newest)]) {
        let count = 0;
        for await (const slice of slices) {
          assert.ok(slice.reduce((sum, { evidence }) => sum + evidence.length, 0) <= 1_300_000);
          count += slice.length;
        }
        assert.equal(count, 40);
      }
    });

    test("contracts are stored under their digests", async (t) => {
      const store = await openFor(t, temporaryFolder(t));
      await store.keepContract(sha256("目"), "目");
      await store.keepContract(sha256("目"), "目");
      assert.equal(await makeLedgerRows(store.tables).contractText(sha256("目")), "目");
      assert.equal(await makeLedgerRows(store.tables).contractText(sha256("other")), undefined);
      await store.close();
    });
  });

  if (engine.kind === "owned") ownedSuite(name, engine, openFor);
  else if (engine.kind === "shared") sharedSuite(name, engine, openFor);

  storeCounters(name, engine);
  storeTables(name, engine);
  suite(`${name}: faults`, () => {
    test("a row that another program wrote is a fault, not a refusal", async (t) => {
      const folder = temporaryFolder(t);
      const store = await openFor(t, folder);
      await commit(store, [storedRow(1)], []);
      await intrude(folder);
      await assert.rejects(
        commit(store, [storedRow(2)], []),
        (error) => error instanceof Error && !(error instanceof NotKept) && intruded.test(error.message),
      );
      await store.close();
    });

    test("a row that already exists is a fault, and no part of its batch is stored", async (t) => {
      const folder = temporaryFolder(t);
      let store = await openFor(t, folder);
      await commit(store, [storedRow(1)], []);
      await assert.rejects(commit(store, [storedRow(2), storedRow(1)], []), (error) => !(error instanceof NotKept));
      await store.close();
      store = await openFor(t, folder);
      assert.equal(store.opened.head?.seq, 1);
      await store.close();
    });

    test("a read that does not continue stops no commit", async (t) => {
      const store = await openFor(t, temporaryFolder(t));
      await commit(
        store,
        Array.from({ length: 2000 }, (_, at) => storedRow(at + 1)),
        [],
      );
      const reading = makeLedgerRows(store.tables).scan(1)[Symbol.asyncIterator]();
      assert.equal((await reading.next()).value?.[0]?.seq, 1);
      for (let seq = 2001; seq <= 2050; seq += 1) await Promise.race([commit(store, [storedRow(seq)], []), late()]);
      const rest = await all({ [Symbol.asyncIterator]: () => reading });
      assert.equal(rest.at(-1)?.seq, 2050, "what came during the read is read too");
      await store.close();
    });
  });
}

type Open = (t: TestContext, folder: string, mustExist?: boolean) => Promise<LedgerStore>;

/** Tests an engine with one owner at a time. */
function ownedSuite(name: string, { open, owner }: OwnedEngine, openFor: Open): void {
  suite(`${name}: one owner`, () => {
    test("a second owner is refused in the same process and in another, in one sentence", async (t) => {
      const folder = temporaryFolder(t);
      const store = await openFor(t, folder);
      const refusal = (error: unknown): boolean =>
        error instanceof LedgerRefused && /^another gate is serving the ledger in [^\n]+$/.test(error.message);
      await assert.rejects(open(folder), refusal);
      const other = startOwner(owner, folder);
      assert.match(await other.said, /^another gate is serving/);
      await commit(store, [storedRow(1)], []);
      await store.close();
      await (await openFor(t, folder)).close();
    });

    test("after a kill -9 of the owner the next start succeeds at once, with all committed rows", async (t) => {
      const folder = temporaryFolder(t);
      const other = startOwner(owner, folder);
      assert.equal(await other.said, "open");
      await assert.rejects(open(folder), LedgerRefused);
      await other.kill();
      const store = await openFor(t, folder, true);
      assert.equal(store.opened.head?.seq, 1);
      await store.close();
    });

    test("a missing ledger that must exist is refused, and not started", async (t) => {
      const folder = temporaryFolder(t);
      await assert.rejects(
        open(folder, true),
        (error) => error instanceof LedgerRefused && /gone or empty/.test(error.message),
      );
      const store = await openFor(t, folder);
      assert.equal(store.opened.created, true);
      await store.close();
    });
  });
}

/** Transactions of several gates, one after another. */
function sharedSuite(name: string, { sharer, env }: SharedEngine, openFor: Open): void {
  /** However the gates' transactions interleave, each row and each event is stored once, in one order. */
  const assertHas = async (store: LedgerStore, transactions: number): Promise<void> => {
    const rows = await all(makeLedgerRows(store.tables).scan(1));
    assert.deepEqual(
      rows.map(({ seq }) => seq),
      Array.from({ length: transactions }, (_, at) => at + 1),
    );
    for (const [at, { leaf }] of rows.entries()) {
      const { prev, counted } = JSON.parse(leaf) as { readonly prev: number; readonly counted: string };
      assert.deepEqual(
        { prev, counted },
        { prev: at, counted: String(at) },
        "each turn saw the row and the sum before it",
      );
    }
    assert.deepEqual(await look(store, [{ counter: sha256("shared"), key: keyOf("k"), after: -1 }]), [
      String(transactions),
    ]);
  };

  suite(`${name}: shared by gates`, () => {
    test("transactions of two stores in one process exclude each other", async (t) => {
      const folder = temporaryFolder(t);
      const stores = [await openFor(t, folder), await openFor(t, folder)];
      await Promise.all(stores.map((store) => shareTurns(store, 60)));
      await assertHas(stores[0] as LedgerStore, 120);
    });

    test("transactions of two processes and of this one exclude each other", async (t) => {
      const folder = temporaryFolder(t);
      const store = await openFor(t, folder);
      const sharers = [1, 2].map(() => {
        const child = spawn(process.execPath, [sharer, folder, "60"], {
          env: { ...process.env, ...env() },
          stdio: ["ignore", "ignore", "inherit"],
        });
        return once(child, "exit");
      });
      await shareTurns(store, 60);
      for (const [status] of await Promise.all(sharers)) assert.equal(status, 0);
      await assertHas(store, 180);
    });

    test("an abandoned transaction leaves nothing, and the next one can start", async (t) => {
      const folder = temporaryFolder(t);
      const [one, other] = [await openFor(t, folder), await openFor(t, folder)];
      const transaction = await one.begin();
      const waiting = other.begin();
      await transaction.keepCounter({ digest: sha256("n"), definition: "n", through: null, unknownThrough: -1 }, []);
      await transaction.abort();
      const next = await waiting;
      assert.equal(next.head, undefined);
      await next.commit([storedRow(1)], []);
      assert.deepEqual((await one.tables.counters()).kept, []);
    });

    test("the next transaction receives the policy in force and the last administrative event", async (t) => {
      const folder = temporaryFolder(t);
      const [one, other] = [await openFor(t, folder), await openFor(t, folder)];
      const inForce = { contract: sha256("c"), mode: "enforce", engine: "svc-gate/test" };
      const first = await one.begin();
      assert.deepEqual([first.inForce, first.changed], [undefined, 0]);
      await first.commit([storedRow(1), storedRow(2, changeColumns)], [], { inForce });
      const second = await other.begin();
      assert.deepEqual([second.inForce, second.changed, second.head?.seq], [inForce, 2, 2]);
      assert.ok((second.at ?? 0) >= (first.at ?? Infinity));
      await second.commit([], [], { inForce: { ...inForce, mode: "observe" } });
      const third = await one.begin();
      assert.deepEqual([third.inForce?.mode, third.changed], ["observe", 2]);
      await third.abort();
    });

    test("if two gates fold at once, each event counts once", async (t) => {
      const folder = temporaryFolder(t);
      const [one, other] = [await openFor(t, folder), await openFor(t, folder)];
      const digest = sha256("late");
      const event = (seq: number): StoredEffect => ({ seq, at: seq, counter: digest, key: keyOf("x"), amount: "1" });
      const counter = { digest, definition: "late", unknownThrough: -1 };
      await commit(one, [storedRow(1), storedRow(2), storedRow(3)]);
      await one.keepCounter({ ...counter, through: 2 }, [event(1), event(2)]);
      await other.keepCounter({ ...counter, through: 3 }, [event(1), event(2), event(3)]);
      await one.keepCounter({ ...counter, through: null }, []);
      await other.keepCounter({ ...counter, through: 3 }, [event(3)]);
      assert.deepEqual(
        (await one.tables.counters()).kept.map(({ through }) => through),
        [null],
      );
      await commit(other, [storedRow(4)], [event(4)]);
      assert.deepEqual(await look(one, [{ counter: digest, key: keyOf("x"), after: -1 }]), ["4"]);
    });
  });
}

/** Makes transactions that each read the counter, record its value, and add one. */
export async function shareTurns(store: LedgerStore, transactions: number): Promise<void> {
  const counter = sha256("shared");
  const key = keyOf("k");
  await store.keepCounter({ digest: counter, definition: "shared", through: null, unknownThrough: -1 }, []);
  for (let done = 0; done < transactions; done += 1) {
    const transaction = await store.begin();
    const [counted] = await transaction.values([{ counter, key, after: -1 }]);
    const prev = transaction.head?.seq ?? 0;
    const seq = prev + 1;
    await transaction.commit(
      [storedRow(seq, { leaf: JSON.stringify({ prev, counted }) })],
      [{ seq, at: transaction.at ?? seq, counter, key, amount: "1" }],
    );
  }
}

async function late(): Promise<never> {
  await wait(120_000, undefined, { ref: false });
  throw new Error("the commit waited for a read");
}

interface Owner {
  readonly said: Promise<string>;
  readonly kill: () => Promise<void>;
}

function startOwner(module: string, folder: string): Owner {
  const child = spawn(process.execPath, [module, folder], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  const said = once(child.stdout, "data").then(([chunk]) => String(chunk).trim());
  const kill = async (): Promise<void> => {
    child.kill("SIGKILL");
    await ended;
  };
  return { said, kill };
}
