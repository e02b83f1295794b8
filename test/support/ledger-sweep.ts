import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Worker } from "node:worker_threads";
import { LedgerRefused } from "../../packages/gate/src/ledger/errors.ts";
import { readPin } from "../../packages/gate/src/ledger/mod.ts";
import type { Mistake } from "../../packages/core/src/record/entry/row.ts";
import { walkStore } from "../../packages/gate/src/ledger/history/walk.ts";
import { WorkerCaller } from "../../packages/gate/src/ledger/store/calls.ts";
import { SqliteTables } from "../../packages/gate/src/ledger/store/sqlite/tables.ts";
import { withPromises } from "../../packages/gate/src/ledger/store/tables.ts";
import type { Verification } from "../../packages/gate/src/ledger/store/store.ts";
import type { Anchor } from "../../packages/core/src/record/tree/walk.ts";
import { tableNames, type Change } from "./ledger-tamper-cases.ts";
import type { Mutation } from "./mutation/mutate.ts";
import { mutatedEnvironment, preload } from "./mutation/sources.ts";

interface Walker {
  readonly walk: () => Promise<Verification>;
  /** Opens the file again, and also checks its structure if `walk` finds nothing, as `svc-gate verify` does. */
  readonly look: () => Promise<Pick<Mistake, "problem" | "seq"> | undefined>;
  readonly end: () => Promise<void>;
}

/** Starts the reading thread of `svc-gate verify`, for repeated use. */
export async function startWalker(folder: string, defects: readonly Mutation[] = []): Promise<Walker> {
  const env = { ...process.env, ...mutatedEnvironment(defects) };
  const options = defects.length === 0 ? {} : { execArgv: [`--import=${preload}`], env };
  const reader = new WorkerCaller(
    new Worker(new URL("../../packages/gate/src/ledger/store/sqlite/reader.ts", import.meta.url), options),
  );
  await reader.call("open", 1, folder);
  const anchors = await anchorsOf(folder);
  const lookAt = async (): ReturnType<Walker["look"]> => {
    try {
      await reader.call("open", 2, folder);
      const { broken } = await reader.call<Verification>("verify", 2, { from: 1, anchors });
      return broken ?? (await reader.call<Mistake | undefined>("structure", 2));
    } catch (error) {
      if (!(error instanceof LedgerRefused)) throw error;
      return { seq: 0, problem: error.message };
    }
  };
  return {
    walk: () => reader.call<Verification>("verify", 1, { from: 1, anchors }),
    look: async () => {
      const found = await lookAt();
      await reader.call("close", 2);
      return found;
    },
    end: () => reader.end(),
  };
}

async function anchorsOf(folder: string): Promise<readonly Anchor[]> {
  const pin = await readPin(join(folder, "head.pin"));
  return pin === undefined ? [] : [{ seq: pin.seq, hash: pin.hash, by: "head pin" }];
}

/** Walks over a change that a transaction has made, and takes it back. */
interface Sight {
  readonly walk: () => Promise<Pick<Verification, "broken">>;
  readonly undo: (change: Change) => void;
  readonly end: () => Promise<void>;
}

/** Walks on the connection of the change, which is never committed: with thousands of changes, that is three times as fast. */
async function sightOf(folder: string, database: DatabaseSync): Promise<Sight> {
  const anchors = await anchorsOf(folder);
  return {
    walk: () => walkStore(withPromises(new SqliteTables(database)), { from: 1, anchors }),
    undo: () => database.exec("ROLLBACK"),
    end: async () => undefined,
  };
}

/** Walks in the reading thread, whose sources have defects. It sees what is committed, so that is undone row by row. */
async function defectiveSightOf(folder: string, database: DatabaseSync, defects: readonly Mutation[]): Promise<Sight> {
  const { walk, end } = await startWalker(folder, defects);
  database.exec("ATTACH ':memory:' AS kept");
  for (const table of tableNames) database.exec(`CREATE TABLE kept.${table} AS SELECT * FROM main.${table}`);
  return {
    walk: () => {
      if (database.isTransaction) database.exec("COMMIT");
      // With a check missing, a later part of the walk can meet a value that it cannot write. That names no row.
      return walk().catch(({ message }: Error) => ({ broken: { seq: 0, problem: message, expected: "", found: "" } }));
    },
    undo: ({ group }) => {
      const tables = new Set([/^\w+/.exec(group)?.[0] ?? "", "effects"]);
      const copies = [...tables].map(
        (name) => `DELETE FROM main.${name}; INSERT INTO main.${name} SELECT * FROM kept.${name}`,
      );
      database.exec(["BEGIN", ...copies, "COMMIT"].join("; "));
    },
    end,
  };
}

interface Tally {
  changed: number;
  found: number;
  readonly missed: string[];
}

/**
 * Applies each change, walks, and undoes the change. A change that the file itself refuses (a duplicate key) does not
 * count.
 */
export async function sweep(
  folder: string,
  changes: Iterable<Change>,
  defects?: readonly Mutation[],
): Promise<ReadonlyMap<string, Tally>> {
  const database = new DatabaseSync(join(folder, "ledger.db"));
  database.exec("PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 0;");
  const sight = await (defects === undefined ? sightOf(folder, database) : defectiveSightOf(folder, database, defects));
  try {
    return await sweepWith(sight, database, changes);
  } finally {
    await sight.end();
    database.close();
  }
}

async function sweepWith(
  { walk, undo }: Sight,
  database: DatabaseSync,
  changes: Iterable<Change>,
): Promise<ReadonlyMap<string, Tally>> {
  const tallies = new Map<string, Tally>();
  for (const change of changes) {
    database.exec("BEGIN");
    try {
      change.apply(database);
    } catch (error) {
      database.exec("ROLLBACK");
      if (/UNIQUE|datatype|NOT NULL/.test(String(error))) continue;
      throw error;
    }
    const tally = tallies.get(change.group) ?? { changed: 0, found: 0, missed: [] };
    tallies.set(change.group, tally);
    tally.changed += 1;
    const { broken } = await walk();
    undo(change);
    if (broken !== undefined && change.rows.includes(broken.seq)) tally.found += 1;
    else
      tally.missed.push(
        `${change.title}: ${broken === undefined ? "nothing" : `row ${broken.seq}, ${broken.problem}`}; expected ${change.rows.join()}`,
      );
  }
  assert.equal((await walk()).broken, undefined, "every change was taken back");
  return tallies;
}

/** Prints what was changed and found, and fails for a change that was not found. */
export function report(tallies: ReadonlyMap<string, Tally>): void {
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

export async function collect(
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
