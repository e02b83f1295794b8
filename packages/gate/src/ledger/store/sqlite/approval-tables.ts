import type { DatabaseSync, StatementSync } from "node:sqlite";
import { denialsThatMatter, type DenialSummary } from "../../../../../core/src/approvals/mod.ts";
import type { Erasure } from "../../../../../core/src/record/entry/erasure.ts";
import { readProgress, voteRows } from "../../../../../core/src/record/entry/approval-rows.ts";
import { parseLeaf } from "../../../../../core/src/record/entry/leaf.ts";
import type { KeptApproval, StoredApproval } from "../../../../../core/src/record/entry/row.ts";
import { toReservationRows, addReserved, type KeptCounters, type TotalQuery } from "../running-totals.ts";
import type { ApprovalLookup, ApprovalsFound, StoredEffect } from "../store.ts";
import { storedValues } from "../tables.ts";
import { select, type Prepare, type SqliteValue } from "./approval-reads.ts";
import { insertion } from "./insertion.ts";
import type { SqliteTables } from "./tables.ts";

/** The most approvals that are read at once: as many as may be open. */
const dueMax = 10_000;

/** A denial that applies after its call is erased. Its record is JSON with sorted members. */
const eraseReservations = `status = 'denied' AND record LIKE '%"call":{"attach":"%'`;
const isOpen = "status IN ('pending', 'approved')";

export interface DueApprovals {
  readonly kept: readonly KeptApproval[];
  /** Milliseconds since the epoch; infinite if no other approval is open. */
  readonly next: number;
}

interface KeptDenial extends DenialSummary {
  readonly seq: number;
}

/** The tables of approvals and of the amounts that they reserve, for the connection that writes. */
export class ApprovalTables {
  readonly #database: DatabaseSync;
  readonly #tables: SqliteTables;
  readonly #reserved: StatementSync;
  readonly #insertReservation: StatementSync;
  readonly #release: StatementSync;
  readonly #keep: StatementSync;
  /** True if a call was ever parked for a person. */
  hasApprovals: boolean;
  /** The denials of each key that a call has needed since the key's last denial, by their end. */
  readonly #denials = new Map<string, readonly KeptDenial[]>();
  /** Statements that batches repeat, by their text. */
  readonly #statements = new Map<string, StatementSync>();

  constructor(database: DatabaseSync, tables: SqliteTables) {
    this.#database = database;
    this.#tables = tables;
    this.#reserved = database.prepare("SELECT amount FROM holds WHERE counter = ? AND key = ? AND at > ?");
    this.#insertReservation = insertion(database, "holds", "OR IGNORE");
    this.#release = database.prepare("DELETE FROM holds WHERE seq = ?");
    this.#keep = database.prepare(
      `INSERT INTO approvals (seq, attach, key, place, status, ends, record) VALUES (?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (seq) DO UPDATE SET status = excluded.status, ends = excluded.ends, record = excluded.record`,
    );
    this.hasApprovals = database.prepare("SELECT 1 FROM approvals LIMIT 1").get() !== undefined;
  }

  readonly #statement: Prepare = (sql, options) =>
    this.#statements.getOrInsertComputed(sql, () => this.#database.prepare(sql, options));

  /** Adds the amounts that are reserved in a query's window to a total. */
  addReserved({ id, bytes, after }: TotalQuery, total: string): string {
    if (!this.hasApprovals) return total;
    return addReserved(
      total,
      this.#reserved.all(id, bytes, after).map(({ amount }) => String(amount)),
    );
  }

  /** Adds the rows of reserved amounts, within a transaction of the caller. */
  reserve(effects: readonly StoredEffect[], counters: KeptCounters): void {
    for (const row of toReservationRows(effects, counters)) this.#insertReservation.run(...row);
  }

  /** Forgets the approvals of erased rows but denials, and what they reserve, within a transaction of the caller. */
  erase({ rows }: Pick<Erasure, "rows">): void {
    this.#denials.clear();
    for (const table of [`approvals WHERE NOT (${eraseReservations}) AND`, "holds WHERE"]) {
      const forget = this.#database.prepare(`DELETE FROM ${table} seq BETWEEN ? AND ?`);
      for (const [from, to] of rows) forget.run(from, to);
    }
  }

  /** Keeps approvals and ends reservations, within a transaction of the caller. */
  keep(approvals: readonly StoredApproval[], released: readonly number[]): void {
    for (const row of released) this.#release.run(row);
    for (const approval of approvals) {
      if (approval.status === "denied") this.#denials.delete(approval.key);
      this.#keep.run(...storedValues("approvals", approval));
    }
    this.hasApprovals ||= approvals.length > 0;
  }

  find({ attaches, rows, keys, at }: ApprovalLookup, counters: KeptCounters): ApprovalsFound {
    const found = new Map<number, KeptApproval>();
    const add = (condition: string, ...values: readonly SqliteValue[]): void => {
      for (const each of select(this.#statement, condition, ...values)) found.set(each.row.seq, each);
    };
    for (const attach of attaches) add("attach = ? AND ends IS NOT NULL", Buffer.from(attach, "hex"));
    const denials = keys.flatMap((key) => denialsThatMatter(this.#denialsOf(key, at), at).map(({ seq }) => seq));
    for (const row of [...rows, ...denials]) add("seq = ?", row);
    const kept = [...found.values()];
    const reservations = this.#readReservations([...found.keys()], counters);
    return {
      kept,
      votes: this.#tables.where("receipts", "seq", voteRows(kept)),
      reservations,
      ...this.#open(keys, at),
    };
  }

  /** Reads them once after each denial: a key may have thousands, and few of them matter to a call. */
  #denialsOf(key: string, at: number): readonly KeptDenial[] {
    return this.#denials.getOrInsertComputed(key, () => {
      const found = this.#database
        .prepare(
          `SELECT seq, ends, record, leaf FROM approvals JOIN receipts USING (seq)
             WHERE key = ? AND status = 'denied' AND ends > ? ORDER BY ends`,
        )
        .all(key, at);
      return found.map(({ seq, ends, record, leaf }) => {
        const { denial } = readProgress(String(record));
        const rule = parseLeaf(String(leaf))?.rule ?? "";
        const kept = { seq: Number(seq), ends: Number(ends), rule };
        // A record that is damaged is read with its row, which reports it.
        return { ...kept, at: denial?.at ?? at, scope: denial?.scope ?? ("rule" as const) };
      });
    });
  }

  #readReservations(rows: readonly number[], counters: KeptCounters): readonly StoredEffect[] {
    const digests = new Map([...counters.values()].map(({ id, digest }) => [id, digest]));
    const reservations = this.#tables.where("holds", "seq", rows);
    return reservations.map(({ counter, ...reservation }) => ({ ...reservation, counter: digests.get(counter) ?? "" }));
  }

  #open(keys: readonly string[], at: number): Pick<ApprovalsFound, "all" | "open"> {
    const counts = this.#statement(
      `SELECT place, count(*) AS count FROM approvals WHERE key = ? AND ${isOpen} AND ends > ? GROUP BY place`,
    );
    const open = keys.flatMap((key) =>
      counts
        .all(key, at)
        .map(({ place, count }) => [key, Buffer.from(place as Uint8Array).toString("hex"), Number(count)] as const),
    );
    const all = this.#statement(`SELECT count(*) AS count FROM approvals WHERE ${isOpen} AND ends > ?`).get(at)?.[
      "count"
    ];
    return { open, all: Number(all) };
  }

  /** Open approvals whose time has ended, and when the next of the others ends. */
  due(at: number): DueApprovals {
    const kept = select(this.#statement, `ends <= ? AND ${isOpen} ORDER BY ends LIMIT ${dueMax}`, at);
    const next = this.#database.prepare(`SELECT min(ends) AS next FROM approvals WHERE ends > ? AND ${isOpen}`).get(at);
    return { kept, next: next?.["next"] == null ? Infinity : Number(next["next"]) };
  }
}
