/**
 * Goal: whatever is changed in a ledger's file is reported, at its row. Method: a ledger of twelve rows that has one of
 * everything; each byte of each column of each table is changed, each row dropped, doubled and swapped, one at a time,
 * and the walk of `svc-gate verify` is asked. The same sweep over a verifier with one check removed must miss some.
 */
import assert from "node:assert/strict";
import { cpSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { inspectLedger, leafHash, LedgerRefused, openLedger, readPin } from "../src/ledger/mod.ts";
import { Caller } from "../src/ledger/stores/calls.ts";
import type { Verification } from "../src/ledger/stores/store.ts";
import { append, engine, entry, makeSample, sampleRows, temporaryFolder } from "./ledger-fixture.ts";
import { byteChanges, cuts, rowChanges, type Change } from "./ledger-tamper-cases.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

/** The reading thread of `svc-gate verify`, asked again and again. */
async function startWalker(
  folder: string,
  sources = root,
): Promise<{ walk: () => Promise<Verification>; end: () => Promise<void> }> {
  const file = pathToFileURL(join(sources, "src", "ledger", "stores", "sqlite-reader.ts"));
  const reader = new Caller(new Worker(file));
  await reader.call("open", 1, folder);
  const pin = await readPin(join(folder, "head.pin"));
  const anchors = pin === undefined ? [] : [{ seq: pin.seq, hash: pin.hash, by: "head pin" }];
  return { walk: () => reader.call<Verification>("verify", 1, 1, anchors), end: () => reader.end() };
}

interface Tally {
  changed: number;
  found: number;
  readonly missed: string[];
}

/** Applies each change, walks, takes the change back. What the file itself refuses (a key that is taken) is no case. */
async function sweep(folder: string, changes: Iterable<Change>, sources?: string): Promise<ReadonlyMap<string, Tally>> {
  const { walk, end } = await startWalker(folder, sources);
  try {
    return await sweepWith(walk, folder, changes);
  } finally {
    await end();
  }
}

async function sweepWith(
  walk: () => Promise<Verification>,
  folder: string,
  changes: Iterable<Change>,
): Promise<ReadonlyMap<string, Tally>> {
  const tallies = new Map<string, Tally>();
  const database = new DatabaseSync(join(folder, "ledger.db"));
  database.exec("PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 0; ATTACH ':memory:' AS kept;");
  for (const table of ["receipts", "meta", "contracts", "counters", "effects"]) {
    database.exec(`CREATE TABLE kept.${table} AS SELECT * FROM main.${table}`);
  }
  for (const change of changes) {
    database.exec("BEGIN");
    try {
      change.apply(database);
      database.exec("COMMIT");
    } catch (error) {
      database.exec("ROLLBACK");
      if (/UNIQUE|datatype|NOT NULL/.test(String(error))) continue;
      throw error;
    }
    const tally = tallies.get(change.group) ?? { changed: 0, found: 0, missed: [] };
    tallies.set(change.group, tally);
    tally.changed += 1;
    const { broken } = await walk();
    if (broken !== undefined && change.rows.includes(broken.seq)) tally.found += 1;
    else
      tally.missed.push(
        `${change.title}: ${broken === undefined ? "nothing" : `row ${broken.seq}, ${broken.problem}`}; expected ${change.rows.join()}`,
      );
    const table = /^\w+/.exec(change.group)?.[0] ?? "";
    database.exec(
      [
        "BEGIN",
        ...[...new Set([table, "effects"])].flatMap((name) => [
          `DELETE FROM main.${name}`,
          `INSERT INTO main.${name} SELECT * FROM kept.${name}`,
        ]),
        "COMMIT",
      ].join("; "),
    );
  }
  assert.equal((await walk()).broken, undefined, "every change was taken back");
  database.close();
  return tallies;
}

function report(tallies: ReadonlyMap<string, Tally>): void {
  const rows = [...tallies].map(([group, { changed, found }]) => [group, changed, found] as const);
  const total = [
    rows.reduce((sum, [, changed]) => sum + changed, 0),
    rows.reduce((sum, [, , found]) => sum + found, 0),
  ] as const;
  for (const [group, changed, found] of [...rows, ["all", ...total] as const]) {
    console.log(`  ${group.padEnd(36)} ${String(changed).padStart(6)} changed ${String(found).padStart(6)} found`);
  }
  assert.deepEqual(
    [...tallies.values()].flatMap(({ missed }) => missed),
    [],
  );
}

async function collect(
  folder: string,
  changesOf: (database: DatabaseSync) => Iterable<Change>,
): Promise<readonly Change[]> {
  const database = new DatabaseSync(join(folder, "ledger.db"), { readOnly: true });
  try {
    return [...changesOf(database)];
  } finally {
    database.close();
  }
}

suite("a changed ledger is reported at its row [verify.walks-chain, receipt.chain-hashes]", () => {
  test("each byte of each column of each table", async (t) => {
    const folder = temporaryFolder(t);
    await makeSample(folder);
    const tallies = await sweep(folder, await collect(folder, byteChanges));
    report(tallies);
    assert.equal(tallies.size, 23, "every column of every table was changed");
  });

  test("each row dropped, doubled, swapped; the end cut", async (t) => {
    const folder = temporaryFolder(t);
    await makeSample(folder);
    report(await sweep(folder, [...(await collect(folder, rowChanges)), ...cuts()]));
  });

  test("positive control: a verifier without one of its checks misses changes", async (t) => {
    const folder = temporaryFolder(t);
    await makeSample(folder);
    const evidence = (await collect(folder, byteChanges)).filter(
      ({ group }, place) => group === "receipts.evidence" && place % 8 === 0,
    );
    const mutant = withoutCheck(temporaryFolder(t), "verifier.ts", /  if \(digest !== leaf\.evidence\)[^;]*;\n/);
    const tally = (await sweep(folder, evidence, mutant)).get("receipts.evidence");
    assert.ok(
      tally !== undefined && tally.missed.length > tally.changed / 2,
      `${tally?.missed.length} of ${tally?.changed} missed`,
    );
  });
});

/** A copy of the sources in which one check is gone. */
function withoutCheck(folder: string, file: string, check: RegExp): string {
  for (const room of ["wire", "ledger"])
    cpSync(join(root, "src", room), join(folder, "src", room), { recursive: true });
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  const path = join(folder, "src", "ledger", file);
  const text = readFileSync(path, "utf8");
  assert.match(text, check);
  writeFileSync(path, text.replace(check, ""));
  return folder;
}

/** What `svc-gate verify` or a start says; undefined when both find everything in order. */
async function complaint(folder: string, pinFile?: string): Promise<string | undefined> {
  const said = await sentence(async () => {
    const { broken } = await inspectLedger({ folder, pinFile });
    return broken === undefined ? undefined : `row ${broken.seq}: ${broken.problem}`;
  });
  if (said !== undefined) return said;
  return sentence(async () => {
    await (await openLedger({ folder, engine, pinFile })).close();
    return undefined;
  });
}

async function sentence(act: () => Promise<string | undefined>): Promise<string | undefined> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof LedgerRefused)) throw error;
    return error.message;
  }
}

suite("the file as a whole [verify.walks-chain]", () => {
  test("each byte of the pin", async (t) => {
    const folder = temporaryFolder(t);
    await makeSample(folder);
    const file = join(folder, "head.pin");
    const pristine = readFileSync(file);
    const missed: number[] = [];
    for (let byte = 0; byte < pristine.length; byte += 1) {
      const turned = Buffer.from(pristine);
      turned[byte] = (turned[byte] ?? 0) ^ (1 << (byte % 8));
      writeFileSync(file, turned);
      const said = await sentence(async () => (await inspectLedger({ folder })).broken?.problem);
      if (said === undefined) missed.push(byte);
    }
    console.log(
      `  head.pin                             ${pristine.length} changed ${pristine.length - missed.length} found`,
    );
    assert.deepEqual(missed, []);
  });

  const cases: readonly (readonly [title: string, change: (folder: string, other: string) => void, said: RegExp])[] = [
    ["nothing is changed", () => undefined, /^undefined$/],
    ["the pin is removed", (folder) => rmSync(join(folder, "head.pin")), /its head pin .* is not there/],
    [
      "the pin is another ledger's",
      (folder, other) => cpSync(join(other, "head.pin"), join(folder, "head.pin")),
      /the head pin is of the ledger "other"/,
    ],
    ["the file is gone", (folder) => rmSync(join(folder, "ledger.db")), /gone/],
    ["the file is empty", (folder) => writeFileSync(join(folder, "ledger.db"), ""), /empty/],
    ["the file is no database", (folder) => writeFileSync(join(folder, "ledger.db"), "x".repeat(8192)), /damaged/],
    [
      "the file is cut in the middle",
      (folder) => writeFileSync(join(folder, "ledger.db"), readFileSync(join(folder, "ledger.db")).subarray(0, 12_288)),
      /damaged|cannot be read/,
    ],
    [
      "the file is another ledger's",
      (folder, other) => cpSync(join(other, "ledger.db"), join(folder, "ledger.db")),
      /the head pin is of the ledger/,
    ],
    [
      "the file is an older copy",
      (folder) => renameSync(join(folder, "older.db"), join(folder, "ledger.db")),
      /row 13: rows are missing from the end/,
    ],
    [
      "a table has a trigger",
      (folder) => alter(folder, "CREATE TRIGGER t AFTER INSERT ON receipts BEGIN DELETE FROM effects; END"),
      /the tables/,
    ],
    ["an index is dropped", (folder) => alter(folder, "DROP INDEX receipts_by_tool"), /the tables/],
  ];
  for (const [title, change, said] of cases) {
    test(title, async (t) => {
      const folder = temporaryFolder(t);
      const other = temporaryFolder(t);
      await makeSample(folder);
      cpSync(join(folder, "ledger.db"), join(folder, "older.db"));
      const ledger = await openLedger({ folder, engine });
      await append(ledger, [[entry({ at: Date.now() }), []]]);
      await ledger.close();
      await (await openLedger({ folder: other, engine, name: "other" })).close();
      change(folder, other);
      assert.match(String(await complaint(folder)), said);
    });
  }

  test("an end cut with all its events and the pin moved back is seen only from outside the folder", async (t) => {
    const [folder, outside] = [temporaryFolder(t), temporaryFolder(t)];
    const pinFile = join(outside, "pin");
    await makeSample(folder, pinFile);
    const before = hashOfRow(folder, sampleRows - 1);
    alter(folder, `DELETE FROM receipts WHERE seq = ${sampleRows}; DELETE FROM effects WHERE seq = ${sampleRows}`);
    assert.match(
      String(await complaint(folder, pinFile)),
      new RegExp(`row ${sampleRows}: rows are missing from the end`),
    );
    const pin = await readPin(pinFile);
    writeFileSync(
      join(folder, "head.pin"),
      `${JSON.stringify({ log: pin?.log, seq: sampleRows - 1, hash: before })}\n`,
    );
    assert.equal(await complaint(folder), undefined, "nothing in the folder remembers the row: SVC_PIN does");
  });
});

function alter(folder: string, sql: string): void {
  const database = new DatabaseSync(join(folder, "ledger.db"));
  database.exec(sql);
  database.close();
}

function hashOfRow(folder: string, seq: number): string {
  const database = new DatabaseSync(join(folder, "ledger.db"), { readOnly: true });
  const leaf = String(database.prepare("SELECT leaf FROM receipts WHERE seq = ?").get(seq)?.["leaf"]);
  database.close();
  return leafHash(leaf);
}
