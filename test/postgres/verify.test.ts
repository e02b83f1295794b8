/**
 * Goal: every change in a ledger's tables is reported at its row. Method: a ledger has one of everything. The
 * database's owner changes each value of each row, drops each row and adds some, one at a time, and the walk runs each
 * time. The untouched ledger is valid, also while rows are added and counters are folded.
 */
import assert from "node:assert/strict";
import { after, suite, test, type TestContext } from "node:test";
import pg from "pg";
import { Ledger } from "../../packages/gate/src/ledger/mod.ts";
import { leafHash, zeroHash } from "../../packages/core/src/record/entry/leaf.ts";
import { bounds, clientConfig, makePool, transact } from "../../packages/gate/src/ledger/store/postgres/session.ts";
import { postgresTables, type PipelineReader } from "../../packages/gate/src/ledger/store/postgres/tables.ts";
import { walkStore } from "../../packages/gate/src/ledger/history/walk.ts";
import { leavesOf } from "../../packages/gate/src/ledger/history/table-reads.ts";
import { openPostgres } from "../../packages/gate/src/ledger/store/postgres/postgres.ts";
import type { Database } from "../../packages/gate/src/ledger/store/store.ts";
import type { LedgerStore, Verification } from "../../packages/gate/src/ledger/store/store.ts";
import { Frontier } from "../../packages/core/src/record/tree/merkle.ts";
import { makeSigningKey, Signer } from "../../packages/gate/src/ledger/signing/signing-key.ts";
import {
  append,
  contracts,
  engine,
  failedRow,
  entry,
  fillSample,
  sampleRows,
  sha256,
} from "../support/ledger-fixture.ts";
import { openDatabase, type TestDatabase } from "../support/databases.ts";
import { sentencesOf } from "../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

const server = await openDatabase({ after });

if (typeof server === "string")
  test("PostgreSQL is available to the tests of verify", { skip: server }, () => undefined);
else verifying(server, await openPostgres({ url: server.url(), mayMigrate: true }));

const signingKeys = { current: makeSigningKey(), before: undefined };

function ledgerOn(store: LedgerStore): Ledger {
  const head = { seq: 0, hash: zeroHash, at: 0 };
  const signer = new Signer(store.opened.log, signingKeys);
  return new Ledger({
    store,
    head,
    tree: new Frontier(),
    signer: { signer, change: undefined },
    readSigner: () => Promise.resolve(signer),
    pin: undefined,
    isShared: true,
    certain: head,
    isAnchored: false,
    engine,
    warnings: [],
  });
}

async function sample(
  database: Database,
  ledger: string,
): Promise<{ readonly ledger: Ledger; readonly store: LedgerStore }> {
  const store = await database.open({ ledger, log: "example.org/sample" });
  const opened = ledgerOn(store);
  await (await store.begin()).commit([], [], { signer: opened.verifiers[0]?.text });
  await fillSample(opened);
  const transaction = await opened.begin();
  const act = {
    by: "admin",
    act: "mode",
    body: {},
    reason: "a person did it",
    contract: sha256(contracts[1]),
    mode: "enforce",
  } as const;
  transaction.change({ ...act, at: transaction.head.at });
  await transaction.commit();
  return { ledger: opened, store };
}

const rows = sampleRows + 1;

/** A change to one row of one table, and the receipts of which one must be named; empty if any row will do. */
interface Tampering {
  readonly sql: string;
  readonly at?: readonly number[];
}

/** Columns that identify a row within its ledger. */
const keys: Readonly<Record<string, readonly string[]>> = {
  ledgers: [],
  receipts: ["seq"],
  contracts: ["digest"],
  counters: ["digest"],
  effects: ["counter", "key", "at", "seq"],
  nodes: ["level", "place"],
  approvals: ["seq"],
  holds: ["counter", "key", "at", "seq"],
};

const tables: Readonly<Record<string, readonly string[]>> = {
  ledgers: ["log", "counter_secret", "seal", "seq", "leaf", "changed", "frontier", "checkpoint", "signer"],
  receipts: ["seq", "session", "tool", "verdict", "leaf", "evidence"],
  contracts: ["digest", "text"],
  counters: ["id", "digest", "definition", "through", "unknown_through", "reset_through", "folded", "seal"],
  effects: ["counter", "key", "at", "seq", "total", "folded"],
  nodes: ["level", "place", "hash"],
  approvals: ["seq", "attach", "key", "place", "status", "ends", "record"],
  holds: ["seq", "counter", "key", "at", "amount"],
};

/** Columns of the ledger's own row about the tree at the last row. */
const treeColumns = ["frontier", "checkpoint", "signer"];

/** An event moved to another row is reported at its own row or at the other event's row. */
function movesEvent(table: string, column: string): boolean {
  return column === "seq" || (table === "effects" && ["counter", "key", "at"].includes(column));
}

function literal(value: unknown): string {
  return value instanceof Uint8Array ? `'\\x${Buffer.from(value).toString("hex")}'` : `'${String(value)}'`;
}

/** Returns other values than the present one, as SQL. */
function others(column: string, value: unknown): readonly string[] {
  if (value === null) return ["seq", "through"].includes(column) ? ["7"] : ["'x'"];
  if (value instanceof Uint8Array) return [`'\\x${"00".repeat(32)}'`, "''"];
  const text = `${value as string | number}`;
  if (/^-?[0-9]+$/.test(text) && !["digest", "text", "total"].includes(column))
    return [`${text} + 1000`, `-5 - abs(${text})`];
  const changed = [`x${text.slice(1)}`, `${text.slice(0, -1)}\u{1f511}`, ""].map(
    (each) => `'${each.replaceAll("'", "''")}'`,
  );
  const different = changed.filter((each) => each !== `'${text}'`);
  return ["session", "folded", ...treeColumns].includes(column) ? [...different, "NULL"] : different;
}

async function tamperings(there: TestDatabase, ledger: string): Promise<readonly Tampering[]> {
  const found: Tampering[] = [];
  for (const [table, columns] of Object.entries(tables)) {
    const kept = await there.run(`SELECT * FROM svc_gate.${table} WHERE ledger = '${ledger}'`);
    for (const row of kept) {
      const named = (keys[table] ?? []).map((column) => ` AND ${column} = ${literal(row[column])}`).join("");
      const where = `WHERE ledger = '${ledger}'${named}`;
      const isOwn = table === "receipts" || (table === "effects" && row["folded"] === null);
      const at = isOwn ? { at: [Number(row["seq"])] } : {};
      if (table !== "ledgers") found.push({ sql: `DELETE FROM svc_gate.${table} ${where}`, ...at });
      for (const column of columns) {
        for (const value of others(column, row[column]))
          found.push({
            sql: `UPDATE svc_gate.${table} SET ${column} = ${value} ${where}`,
            ...(movesEvent(table, column) ? {} : treeColumns.includes(column) ? { at: [rows] } : at),
          });
      }
    }
  }
  const effect = (columns: string): string =>
    `INSERT INTO svc_gate.effects (ledger, counter, key, at, seq, total, folded) VALUES ('${ledger}', ${columns})`;
  const reservation = (columns: string): string =>
    `INSERT INTO svc_gate.holds (ledger, counter, key, at, seq, amount) VALUES ('${ledger}', 1, '\\x00', ${columns}, '5')`;
  const node = (level: number, at: number): string =>
    `INSERT INTO svc_gate.nodes (ledger, level, place, hash) VALUES ('${ledger}', ${level}, ${at}, '\\x00')`;
  return [
    ...found,
    { sql: effect("1, '\\x00', 1, 3, '5', NULL"), at: [3] },
    { sql: effect("1, '\\x00', 1, 900, '5', NULL") },
    // Beyond 2^53, where the driver's numbers are not exact.
    { sql: effect("1, '\\x00', 9007199254740993, 3, '5', 'fold'") },
    { sql: effect("1, '\\x00', 1, 9007199254740993, '5', NULL") },
    { sql: reservation("9007199254740993, 5") },
    { sql: reservation("1, 9007199254740993") },
    { sql: effect("2, '\\x00', 1, 2, '5', 'x'"), at: [2] },
    { sql: `INSERT INTO svc_gate.contracts (ledger, digest, text) VALUES ('${ledger}', 'x', 'y')` },
    ...[0, 1, 2, 9].map((level) => ({ sql: node(level, 0) })),
    {
      sql: `INSERT INTO svc_gate.receipts SELECT ledger, ${rows + 1}, session, tool, verdict, leaf, evidence
        FROM svc_gate.receipts WHERE seq = ${rows}`,
    },
  ];
}

function verifying(there: TestDatabase, database: Database): void {
  after(() => database.close());
  const pool = makePool(clientConfig(there.url(), bounds), 1);
  after(() => pool.end());
  /** Verifies as the walk's own thread does. */
  const walk = (ledger: string): Promise<Verification> =>
    walkStore(
      postgresTables((...work) => transact(pool, ledger, work, true), ledger),
      { from: 1, anchors: [] },
    );

  suite("PostgreSQL: verify", { tags: ["verify.walks-chain"] }, () => {
    test("verify stops at the end that the ledger had, however fast others add rows", async () => {
      const { ledger, store } = await sample(database, "growing");
      const more = entry({ at: ledger.head.at });
      const grows: PipelineReader = async (...work) => {
        const found = await transact(pool, "growing", work, true);
        await append(ledger, [[more, []]]);
        return found;
      };
      const { broken, rows: walked } = await walkStore(postgresTables(grows, "growing"), { from: 2, anchors: [] });
      assert.equal(broken, undefined);
      assert.ok(walked > rows && walked < ledger.head.seq, `${walked} of ${ledger.head.seq}`);
      await store.close();
    });

    test("verify finds each changed value, each missing row and each added row, at its row", async (t) => {
      const ledger = "tampered";
      await sample(database, ledger);
      const untouched = await walk(ledger);
      assert.deepEqual([untouched.rows, untouched.broken], [rows, undefined]);
      for (const table of Object.keys(tables))
        await there.run(`CREATE TABLE kept_${table} AS SELECT * FROM svc_gate.${table} WHERE ledger = '${ledger}'`);
      const owner = new pg.Client({ connectionString: there.url() });
      await owner.connect();
      t.after(() => owner.end());
      const missed: string[] = [];
      let tried = 0;
      for (const { sql, at } of await tamperings(there, ledger)) {
        const table = /svc_gate\.(\w+)/.exec(sql)?.[1] ?? "";
        try {
          await owner.query(sql);
        } catch (error) {
          if (/duplicate key|not-null/.test(String(error))) continue;
          throw error;
        }
        tried += 1;
        const { broken } = await walk(ledger);
        if (broken === undefined || (at !== undefined && !at.includes(broken.seq)))
          missed.push(`${sql}: ${broken === undefined ? "nothing" : `row ${broken.seq}, ${broken.problem}`}`);
        await owner.query(
          `BEGIN; DELETE FROM svc_gate.${table} WHERE ledger = '${ledger}';
           INSERT INTO svc_gate.${table} SELECT * FROM kept_${table}; COMMIT`,
        );
      }
      assert.ok(tried > 380, `${tried} changes`);
      assert.deepEqual(missed, []);
      assert.equal((await walk(ledger)).broken, undefined, "and put back, it holds again");
    });

    test("verify finds each changed, missing or added inner hash, at the last row below it", async (t) => {
      const { ledger, store } = await sample(database, "inner");
      const full = 3 * 256;
      const more = Array.from({ length: full - rows + 10 }, () => [entry({ at: ledger.head.at }), []] as const);
      await append(ledger, more);
      const kept = await there.run("SELECT level, place FROM svc_gate.nodes WHERE ledger = 'inner' ORDER BY place");
      assert.deepEqual(
        kept,
        [0, 1, 2].map((at) => ({ level: 1, place: String(at) })),
      );
      assert.equal((await store.verify(1, [])).broken, undefined);
      const owner = new pg.Client({ connectionString: there.url() });
      await owner.connect();
      t.after(() => owner.end());
      const where = "WHERE ledger = 'inner' AND level = 1 AND place = 1";
      const set = (what: string): string => `UPDATE svc_gate.nodes SET ${what} ${where}`;
      const added = (level: number, at: number): string =>
        `INSERT INTO svc_gate.nodes SELECT ledger, ${level}, ${at}, hash FROM svc_gate.nodes ${where}`;
      const flips = [0, 7, 128, 255].map((bit) => set(`hash = set_bit(hash, ${bit}, 1 - get_bit(hash, ${bit}))`));
      const cases: readonly (readonly [sql: string, at: number])[] = [
        ...flips.map((sql) => [sql, 512] as const),
        [set("hash = ''"), 512],
        [set("hash = hash || '\\x00'"), 512],
        [set("place = 5"), 512],
        [set("place = -1"), 512],
        [set("level = 2"), 512],
        [`DELETE FROM svc_gate.nodes ${where}`, 512],
        [`DELETE FROM svc_gate.nodes WHERE ledger = 'inner'`, 256],
        ...(
          [
            [1, 3],
            [1, -1],
            [0, 0],
            [2, 0],
            [3, 0],
            [-1, 0],
            [7, 1],
          ] as const
        ).map(([level, at]) => [added(level, at), full + 10] as const),
      ];
      for (const [sql, at] of cases) {
        await owner.query("CREATE TEMPORARY TABLE kept_inner AS SELECT * FROM svc_gate.nodes WHERE ledger = 'inner'");
        assert.ok(((await owner.query(sql)).rowCount ?? 0) > 0, sql);
        assert.equal((await walk("inner")).broken?.seq, at, sql);
        await owner.query(`BEGIN; DELETE FROM svc_gate.nodes WHERE ledger = 'inner';
          INSERT INTO svc_gate.nodes SELECT * FROM kept_inner; DROP TABLE kept_inner; COMMIT`);
      }
      assert.equal((await walk("inner")).broken, undefined, "and put back, it holds again");
    });

    test("the head row, its tree, its signature or an anchor reveals rows missing from the end", async () => {
      const { store } = await sample(database, "shorter");
      const hash = (await store.verify(1, [])).head.hash;
      const anchors = [{ seq: rows, hash, by: "head pin" }];
      assert.equal((await store.verify(1, anchors)).broken, undefined);
      const back = `WHERE ledger = 'shorter' AND seq = ${rows}`;
      await there.run(`DELETE FROM svc_gate.receipts ${back}`);
      says("the head row", (await store.verify(1, [])).broken?.problem ?? "");
      const leaf = `(SELECT leaf FROM svc_gate.receipts WHERE ledger = 'shorter' AND seq = ${rows - 1})`;
      const shorter = `UPDATE svc_gate.ledgers SET seq = ${rows - 1}, leaf = ${leaf}, changed = ${failedRow + 1}`;
      await there.run(`${shorter} WHERE ledger = 'shorter'`);
      says("the head's tree", (await store.verify(1, [])).broken?.problem ?? "");
      const tree = new Frontier();
      for (const text of await leavesOf(store.tables, 1, rows - 1)) tree.append(leafHash(text));
      const forger = new Signer(store.opened.log, { current: makeSigningKey(), before: undefined });
      const forged = forger.sign({ origin: store.opened.log, size: tree.size, root: tree.root() });
      const head = `frontier = '${tree.size} ${tree.text()}', checkpoint = '${forged}'`;
      await there.run(`${shorter}, ${head} WHERE ledger = 'shorter'`);
      says("the head's signature", (await store.verify(1, [])).broken?.problem ?? "");
      await there.run(`${shorter}, ${head}, signer = '${forger.current}' WHERE ledger = 'shorter'`);
      assert.equal((await store.verify(1, [])).broken, undefined, "positive control: the tables alone do not tell");
      says("the head pin", (await store.verify(1, anchors)).broken?.problem ?? "");
    });

    test("a long walk runs in its own thread and finds the same changes", async () => {
      const { ledger, store } = await sample(database, "long");
      const more = Array.from(
        { length: 500 },
        () => [entry({ at: ledger.head.at, contract: sha256(contracts[1]) }), []] as const,
      );
      for (let batch = 0; batch < 5; batch += 1) await append(ledger, more);
      const { broken, head } = await store.verify(1, []);
      assert.deepEqual([broken, head.seq], [undefined, rows + 2500]);
      await there.run("UPDATE svc_gate.receipts SET tool = 'x' WHERE ledger = 'long' AND seq = 2200");
      assert.equal((await store.verify(1, [])).broken?.seq, 2200);
      assert.equal((await store.verify(2000, [])).broken?.seq, 2200);
      assert.equal((await store.verify(2400, [])).broken, undefined);
    });

    test("verify succeeds while rows are added and counters are folded", async (t: TestContext) => {
      const { ledger, store } = await sample(database, "busy");
      const other = ledgerOn(await database.open({ ledger: "busy", log: undefined }));
      const stop = new AbortController();
      const load = (async () => {
        for (let count = 0; !stop.signal.aborted; count += 1) {
          const definition = `counter ${count % 7}`;
          await ledger.keepCounter({ definition, through: null, unknownThrough: -1 }, []);
          await append(
            ledger,
            Array.from(
              { length: 20 },
              () =>
                [
                  entry({ at: ledger.head.at, contract: sha256(contracts[1]) }),
                  [{ counter: sha256(definition), key: "k", amount: "0.1" }],
                ] as const,
            ),
          );
          const folding = `folded ${count % 30}`;
          await ledger.keepCounter({ definition: folding, through: 5, unknownThrough: -1 }, [
            { counter: sha256(folding), key: "k", amount: "2", seq: 3, at: 3 },
          ]);
        }
      })();
      t.after(() => stop.abort());
      for (let walks = 0; walks < 8; walks += 1) {
        const { broken } = await Promise.race([
          walks % 4 === 0 ? store.verify(1, []) : walk("busy"),
          load.then(() => assert.fail()),
        ]);
        assert.equal(broken, undefined);
      }
      stop.abort();
      await load;
      assert.equal((await other.begin()).head.seq, ledger.head.seq);
    });
  });
}
