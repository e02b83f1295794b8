/**
 * Goal: every change in a ledger's file is reported at its row. Method: a ledger of twelve rows has one of everything.
 * Each byte of each column of each table is changed, each row dropped, doubled and swapped, one at a time, and the walk
 * of `svc-gate verify` runs. Then bits of the file itself are flipped, by a map of the file format. The same sweeps
 * over a verifier with one check removed must miss some. TAMPER_BITS=all flips all eight bits of every byte.
 */
import assert from "node:assert/strict";
import { closeSync, cpSync, openSync, readFileSync, renameSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { basename, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, test } from "node:test";
import { inspectLedger, openLedger, readPin } from "../../../packages/gate/src/ledger/mod.ts";
import { LedgerRefused } from "../../../packages/gate/src/ledger/errors.ts";
import { leafHash } from "../../../packages/core/src/record/entry/mod.ts";
import { Frontier } from "../../../packages/core/src/record/tree/merkle.ts";
import { control } from "../../support/controls/control.ts";
import {
  append,
  contracts,
  engine,
  entry,
  makeSample,
  sampleRows,
  temporaryFolder,
} from "../../support/ledger-fixture.ts";
import { mapFile, type Region } from "../../support/ledger-file-map.ts";
import { collect, report, startWalker, sweep } from "../../support/ledger-sweep.ts";
import type { Mutation } from "../../support/mutation/mutate.ts";
import { bitsOf, byteChanges, cuts, rowChanges } from "../../support/ledger-tamper-cases.ts";
import { sentencesOf } from "../../support/sentences.ts";

const says = sentencesOf(import.meta.filename);

suite("a changed ledger is reported at its row", { tags: ["verify.walks-chain", "receipt.chain-hashes"] }, () => {
  test("verify finds a change of any byte in any column of any table", async (t) => {
    const folder = temporaryFolder(t);
    await makeSample(folder);
    const tallies = await sweep(folder, await collect(folder, byteChanges));
    report(tallies);
    assert.equal(tallies.size, 49, "every column of every table was changed");
  });

  test("verify finds a change of any byte of an inner tree hash or its position", async (t) => {
    const folder = temporaryFolder(t);
    const ledger = await openLedger({ folder, engine });
    await ledger.keepContract(contracts[0]);
    for (let rows = 0; rows < 300; rows += 50)
      await append(
        ledger,
        Array.from({ length: 50 }, () => [entry(), []]),
      );
    await ledger.close();
    const changes = (await collect(folder, byteChanges)).filter(({ group }) => group.startsWith("nodes."));
    const tallies = await sweep(folder, changes);
    report(tallies);
    assert.equal(tallies.size, 3);
  });

  test("verify finds dropped, doubled and swapped rows and a truncated end", async (t) => {
    const folder = temporaryFolder(t);
    await makeSample(folder);
    report(await sweep(folder, [...(await collect(folder, rowChanges)), ...cuts()]));
  });

  for (const changed of [99, 99.5])
    test(`verify finds an approval that says that row ${changed} changed it`, async (t) => {
      const folder = temporaryFolder(t);
      await makeSample(folder);
      changeFile(folder, pretend(changed));
      assert.equal((await inspectLedger({ folder })).broken?.seq, 15);
    });

  control("positive control: a verifier that believes the number of such a row is noticed", async (t) => {
    const folder = temporaryFolder(t);
    await makeSample(folder);
    changeFile(folder, pretend(99));
    const believes: Mutation = {
      within: "ApprovalWalk.#isLater",
      find: "(await this.#rowsAt([changed])).length > 0",
      put: "true",
    };
    const { walk, end } = await startWalker(folder, [believes]);
    assert.equal((await walk()).broken, undefined);
    await end();
  });

  control("positive control: a verifier without the check of evidence digests is noticed", async (t) => {
    const folder = temporaryFolder(t);
    await makeSample(folder);
    const evidence = (await collect(folder, byteChanges)).filter(
      ({ group }, index) => group === "receipts.evidence" && index % 8 === 0,
    );
    const unchecked: Mutation = { within: "verifyEvidence", find: "digest !== leaf.evidence", put: "false" };
    const tally = (await sweep(folder, evidence, [unchecked])).get("receipts.evidence");
    // Also inspect the salts, the names, and the parts from which counters and columns are derived, but no others.
    assert.ok(
      tally !== undefined && tally.missed.length > tally.changed / 4,
      `${tally?.missed.length} of ${tally?.changed} missed`,
    );
  });
});

/** Returns the reason if no check finds a bit and it changes no receipt; undefined for every other bit. */
function harmless({ part, tree, firstType }: Region, byte: number, bit: number): string | undefined {
  const counted: Readonly<Record<number, string>> = {
    24: "how often the file was changed",
    40: "how often its schema was changed",
    92: "after which change its size was written down",
    96: "which version of SQLite wrote that",
  };
  if (part === "file header" && byte === 63 && bit < 2) return "what is left to do of an erasure";
  if (part === "file header") return counted[byte - (byte % 4)];
  // A row's number precedes its columns; its own column is empty (type 0), and type 8 has no byte either.
  const isNumber = ["receipts", "counters", "approvals", "outcomes"].includes(tree) && byte === firstType;
  return isNumber && bit === 3 ? "which way a row's number is left out among its columns" : undefined;
}

interface Flips {
  turned: number;
  found: number;
  readonly missed: string[];
  /** The bits that are not found, by their reasons. */
  readonly harmless: Map<string, number>;
}

const isWhole = process.env["TAMPER_BITS"] === "all";

/**
 * Flips bits of the file one at a time: each bit outside the cells and at a cell's start; inside it some, or all.
 */
async function flipFile(
  folder: string,
  regions: readonly Region[],
  defects?: readonly Mutation[],
): Promise<ReadonlyMap<string, Flips>> {
  const path = join(folder, "ledger.db");
  const bytes = readFileSync(path);
  const file = openSync(path, "r+");
  const { look, end } = await startWalker(folder, defects);
  const all = new Map<string, Flips>();
  for (const region of regions) {
    const { from, to, part, tree, row } = region;
    const flips: Flips = all.get(`${tree}: ${part}`) ?? { turned: 0, found: 0, missed: [], harmless: new Map() };
    all.set(`${tree}: ${part}`, flips);
    for (let byte = from; byte < to; byte += 1) {
      const isEdge = part !== "cell" || byte < from + 12;
      if (!isWhole && !isEdge && byte % 5 !== 0) continue;
      // The start of a cell says which type each column has: a text may become a number.
      for (const bit of isEdge ? [0, 1, 2, 3, 4, 5, 6, 7] : bitsOf(byte)) {
        const was = bytes[byte] ?? 0;
        writeSync(file, Buffer.of(was ^ (1 << bit)), 0, 1, byte);
        const found = await look();
        writeSync(file, Buffer.of(was), 0, 1, byte);
        const why = harmless(region, byte, bit);
        const isRight = tree !== "receipts" || row === undefined || found?.seq === row;
        flips.turned += 1;
        if (why !== undefined) flips.harmless.set(why, (flips.harmless.get(why) ?? 0) + 1);
        if (why === undefined && found !== undefined && isRight) flips.found += 1;
        else if (why === undefined || found !== undefined)
          flips.missed.push(
            `${tree} ${part} ${row ?? ""}, byte ${byte - from}, bit ${bit}: ` +
              (found === undefined ? "nothing" : `row ${found.seq}, ${found.problem}`),
          );
      }
    }
  }
  assert.equal(await look(), undefined, "every bit was turned back");
  await end();
  closeSync(file);
  return all;
}

suite("the ledger's file, bit by bit", { tags: ["verify.walks-chain"] }, () => {
  test("verify finds each flipped bit at its row, except bits that affect no receipt", async (t) => {
    const folder = temporaryFolder(t);
    await makeSample(folder);
    const path = join(folder, "ledger.db");
    const regions = mapFile(path, readFileSync(path));
    const flips = await flipFile(
      folder,
      regions.filter(({ part }) => part !== "unused"),
    );
    const harmlessBits = new Map<string, number>();
    for (const [group, { turned, found, harmless: some }] of flips) {
      const none = [...some.values()].reduce((sum, count) => sum + count, 0);
      const [all, right, rest] = [turned, found, none].map((count) => String(count).padStart(6));
      console.log(`  ${group.padEnd(42)} ${all} turned ${right} found ${rest} say nothing`);
      for (const [why, count] of some) harmlessBits.set(why, (harmlessBits.get(why) ?? 0) + count);
    }
    console.log([...harmlessBits].map(([why, count]) => `  ${count} bits: ${why}`).join("\n"));
    assert.deepEqual(
      [...flips.values()].flatMap(({ missed }) => missed),
      [],
    );
  });

  test("verify and a start ignore changes in bytes that the file format leaves unused", async (t) => {
    const folder = temporaryFolder(t);
    await makeSample(folder);
    const path = join(folder, "ledger.db");
    const bytes = readFileSync(path);
    const unused = mapFile(path, bytes).filter(({ part }) => part === "unused");
    for (const { from, to } of unused)
      for (let byte = from; byte < to; byte += 1) bytes[byte] = 255 - (bytes[byte] ?? 0);
    writeFileSync(path, bytes);
    assert.equal(await complaint(folder), undefined);
    console.log(`  ${unused.reduce((sum, { from, to }) => sum + to - from, 0)} of ${bytes.length} bytes`);
  });

  control("positive control: a verifier without the check of the file's structure is noticed", async (t) => {
    const folder = temporaryFolder(t);
    await makeSample(folder);
    const path = join(folder, "ledger.db");
    const regions = mapFile(path, readFileSync(path)).filter(
      ({ tree, part }) => tree === "receipts_by_tool" && part === "cell",
    );
    const unchecked: Mutation = { within: "structureProblem", find: 'found === "ok"', put: "true" };
    const flips = await flipFile(folder, regions, [unchecked]);
    const { turned, missed } = flips.get("receipts_by_tool: cell") ?? { turned: 0, missed: [] };
    assert.ok(missed.length > turned / 2, `${missed.length} of ${turned} missed`);
  });
});

/** A statement that lets the open approval say which row changed it. */
function pretend(row: number): string {
  return `UPDATE approvals SET record = json_set(CAST(record AS TEXT), '$.changed', ${row}) WHERE status = 'pending'`;
}

function changeFile(folder: string, sql: string): void {
  const database = new DatabaseSync(join(folder, "ledger.db"));
  database.exec(sql);
  database.close();
}

/** Returns the error of `svc-gate verify` or of a start; undefined if both find everything in order. */
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

/** Flips bits of a small file that the walk is compared with; returns the offsets of those without an error. */
async function flipSmall(file: string, folder: string): Promise<readonly string[]> {
  const pristine = readFileSync(file);
  const missed: string[] = [];
  let turns = 0;
  for (const [byte, was] of pristine.entries()) {
    for (const bit of isWhole || byte % 5 === 0 ? bitsOf(byte) : []) {
      writeFileSync(file, Buffer.from(pristine).fill(was ^ (1 << bit), byte, byte + 1));
      const said = await sentence(async () => (await inspectLedger({ folder })).broken?.problem);
      turns += 1;
      if (said === undefined) missed.push(`byte ${byte}, bit ${bit}`);
    }
  }
  writeFileSync(file, pristine);
  assert.equal((await inspectLedger({ folder })).broken, undefined, "every bit was turned back");
  console.log(`  ${basename(file).padEnd(36)} ${turns} turned ${turns - missed.length} found`);
  return missed;
}

async function sentence(act: () => Promise<string | undefined>): Promise<string | undefined> {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof LedgerRefused)) throw error;
    return error.message;
  }
}

suite("the ledger's files as a whole", { tags: ["verify.walks-chain"] }, () => {
  test("verify finds flipped bits of the head pin", async (t) => {
    const folder = temporaryFolder(t);
    await makeSample(folder);
    const file = join(folder, "head.pin");
    assert.deepEqual(await flipSmall(file, folder), []);
  });

  test("verify finds flipped bits of the checkpoint beside the ledger", async (t) => {
    const folder = temporaryFolder(t);
    await makeSample(folder);
    assert.deepEqual(await flipSmall(join(folder, "checkpoint"), folder), []);
  });

  const cases: readonly (readonly [title: string, change: (folder: string, other: string) => void, said?: string])[] = [
    ["verify and a start accept an unchanged ledger", () => undefined],
    [
      "verify or a start refuses a ledger without its head pin",
      (folder) => rmSync(join(folder, "head.pin")),
      "no-head-pin",
    ],
    [
      "verify or a start refuses the head pin of another ledger",
      (folder, other) => cpSync(join(other, "head.pin"), join(folder, "head.pin")),
      "head-pin-of-another-ledger",
    ],
    [
      "verify or a start refuses a folder whose ledger file is gone",
      (folder) => rmSync(join(folder, "ledger.db")),
      "ledger-file-gone",
    ],
    [
      "verify or a start refuses an empty ledger file",
      (folder) => writeFileSync(join(folder, "ledger.db"), ""),
      "ledger-file-empty",
    ],
    [
      "verify or a start refuses a ledger file that is not a database",
      (folder) => writeFileSync(join(folder, "ledger.db"), "x".repeat(8192)),
      "no-database",
    ],
    [
      "verify or a start refuses a truncated ledger file",
      (folder) => writeFileSync(join(folder, "ledger.db"), readFileSync(join(folder, "ledger.db")).subarray(0, 12_288)),
      "ledger-file-truncated",
    ],
    [
      "verify or a start refuses the file of another ledger",
      (folder, other) => cpSync(join(other, "ledger.db"), join(folder, "ledger.db")),
      "ledger-file-of-another",
    ],
    [
      "verify or a start refuses an older copy of the ledger file",
      (folder) => renameSync(join(folder, "older.db"), join(folder, "ledger.db")),
      "older-ledger-file",
    ],
    [
      "verify or a start refuses a ledger with a trigger on a table",
      (folder) => alter(folder, "CREATE TRIGGER t AFTER INSERT ON receipts BEGIN DELETE FROM effects; END"),
      "table-with-a-trigger",
    ],
    [
      "verify or a start refuses a ledger without one of its indexes",
      (folder) => alter(folder, "DROP INDEX receipts_by_tool"),
      "index-dropped",
    ],
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
      const found = await complaint(folder);
      if (said === undefined) assert.equal(found, undefined);
      else says(said, String(found));
    });
  }

  test("only an outside pin reveals a truncation with a forged pin and a removed checkpoint", async (t) => {
    const [folder, outside] = [temporaryFolder(t), temporaryFolder(t)];
    const pinFile = join(outside, "pin");
    await makeSample(folder, pinFile);
    const before = pinAt(folder, sampleRows - 1);
    const tables = ["receipts", "effects", "approvals", "holds"];
    const derived = ["outcomes", "withdrawals"].map((table) => `DELETE FROM ${table} WHERE outcome = ${sampleRows}`);
    alter(folder, [...tables.map((table) => `DELETE FROM ${table} WHERE seq = ${sampleRows}`), ...derived].join("; "));
    const said = String(await complaint(folder, pinFile));
    assert.match(said, new RegExp(`^row ${sampleRows}: `));
    says("truncated-below-outside-pin", said);
    const pin = await readPin(pinFile);
    writeFileSync(join(folder, "head.pin"), `${JSON.stringify({ log: pin?.log, ...before })}\n`);
    says("truncated-below-checkpoint", String(await complaint(folder)));
    rmSync(join(folder, "checkpoint"));
    assert.equal(await complaint(folder), undefined, "nothing in the folder remembers the row: SVC_PIN does");
  });
});

function alter(folder: string, sql: string): void {
  const database = new DatabaseSync(join(folder, "ledger.db"));
  database.exec(sql);
  database.close();
}

/** The error of a pin if the ledger ends at a row, without the pin's name. */
function pinAt(folder: string, seq: number): { readonly seq: number; readonly hash: string; readonly root: string } {
  const database = new DatabaseSync(join(folder, "ledger.db"), { readOnly: true });
  const rows = database.prepare("SELECT leaf FROM receipts WHERE seq <= ? ORDER BY seq").all(seq);
  database.close();
  const hashes = rows.map(({ leaf }) => leafHash(String(leaf)));
  const tree = new Frontier();
  for (const hash of hashes) tree.append(hash);
  return { seq, hash: hashes.at(-1) ?? "", root: tree.root().toString("base64") };
}
