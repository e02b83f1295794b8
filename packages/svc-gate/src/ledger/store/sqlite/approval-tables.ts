import type { DatabaseSync, StatementSync } from "node:sqlite";
import { holdRows, withHeld, type KeptCounters, type TotalQuery } from "../running-totals.ts";
import type { ApprovalLookup, ApprovalQuery, ApprovalsFound, StoredApproval, StoredEffect } from "../store.ts";

/** The most approvals that are read at once: as many as may be open. */
const dueMax = 10_000;

/** The tables of approvals and of the amounts that they hold, for the connection that writes. */
export class ApprovalTables {
  readonly #database: DatabaseSync;
  readonly #held: StatementSync;
  readonly #insertHold: StatementSync;
  readonly #release: StatementSync;
  readonly #keep: StatementSync;
  #hasApprovals: boolean;

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#held = database.prepare("SELECT amount FROM holds WHERE counter = ? AND key = ? AND at > ?");
    this.#insertHold = database.prepare("INSERT INTO holds (seq, counter, key, at, amount) VALUES (?, ?, ?, ?, ?)");
    this.#release = database.prepare("DELETE FROM holds WHERE seq = ?");
    this.#keep = database.prepare(
      `INSERT INTO approvals (seq, attach, key, session, status, ends, record) VALUES (?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (seq) DO UPDATE SET status = excluded.status, ends = excluded.ends, record = excluded.record`,
    );
    this.#hasApprovals = database.prepare("SELECT 1 FROM approvals LIMIT 1").get() !== undefined;
  }

  /** True if a call was ever parked for a person. */
  get hasApprovals(): boolean {
    return this.#hasApprovals;
  }

  /** Adds the amounts that are held in a query's window to a total. */
  withHeld({ id, bytes, after }: TotalQuery, total: string): string {
    if (!this.#hasApprovals) return total;
    return withHeld(
      total,
      this.#held.all(id, bytes, after).map(({ amount }) => String(amount)),
    );
  }

  /** Adds the rows of held amounts, within a transaction of the caller. */
  hold(effects: readonly StoredEffect[], counters: KeptCounters): void {
    for (const row of holdRows(effects, counters)) this.#insertHold.run(...row);
  }

  /** Keeps approvals and ends holds, within a transaction of the caller. */
  keep(approvals: readonly StoredApproval[], released: readonly number[]): void {
    for (const row of released) this.#release.run(row);
    for (const { row, attach, key, session, status, ends, record } of approvals)
      this.#keep.run(row, Buffer.from(attach, "hex"), key, session, status, ends, record);
    this.#hasApprovals ||= approvals.length > 0;
  }

  find({ attaches, rows, keys, at }: ApprovalLookup, counters: KeptCounters): ApprovalsFound {
    const found = new Map<number, string>();
    const add = (sql: string, ...values: readonly (string | number | Uint8Array)[]): void => {
      for (const { seq, record } of this.#database.prepare(sql).all(...values)) found.set(Number(seq), String(record));
    };
    for (const attach of attaches)
      add("SELECT seq, record FROM approvals WHERE attach = ? AND ends IS NOT NULL", Buffer.from(attach, "hex"));
    for (const row of rows) add("SELECT seq, record FROM approvals WHERE seq = ?", row);
    for (const key of keys)
      add("SELECT seq, record FROM approvals WHERE key = ? AND status = 'denied' AND ends > ?", key, at);
    return { records: [...found.values()], holds: this.#holdsOf([...found.keys()], counters), ...this.#open(keys, at) };
  }

  #holdsOf(rows: readonly number[], counters: KeptCounters): readonly StoredEffect[] {
    const digests = new Map([...counters.values()].map(({ id, digest }) => [id, digest]));
    const holds = this.#database.prepare("SELECT counter, key, at, seq, amount FROM holds WHERE seq = ?");
    return rows.flatMap((seq) =>
      holds.all(seq).map(({ counter, key, at, amount }) => ({
        seq,
        at: Number(at),
        counter: digests.get(Number(counter)) ?? "",
        key: Buffer.from(key as Uint8Array).toString("hex"),
        amount: String(amount),
      })),
    );
  }

  #open(keys: readonly string[], at: number): Pick<ApprovalsFound, "all" | "open"> {
    const isOpen = "status IN ('pending', 'approved') AND ends > ?";
    const counts = this.#database.prepare(
      `SELECT session, count(*) AS count FROM approvals WHERE key = ? AND ${isOpen} GROUP BY session`,
    );
    const open = keys.flatMap((key) =>
      counts.all(key, at).map(({ session, count }) => [key, textOrNull(session), Number(count)] as const),
    );
    const all = this.#database.prepare(`SELECT count(*) AS count FROM approvals WHERE ${isOpen}`).get(at)?.["count"];
    return { open, all: Number(all) };
  }

  /** Open approvals whose time has ended. */
  due(at: number): readonly string[] {
    return this.#database
      .prepare(
        `SELECT record FROM approvals WHERE ends <= ? AND status IN ('pending', 'approved') ORDER BY ends LIMIT ${dueMax}`,
      )
      .all(at)
      .map(({ record }) => String(record));
  }
}

/** Lists approvals, newest first. */
export function listApprovals(database: DatabaseSync, query: ApprovalQuery): readonly string[] {
  const { before, limit, statuses, key, session, rows } = query;
  const filters: readonly (readonly [sql: string, values: readonly (string | number)[]])[] = [
    ["seq < ?", [before]],
    ...(statuses === undefined ? [] : [[`status IN (${statuses.map(() => "?").join(", ")})`, statuses] as const]),
    ...(key === undefined ? [] : [["key = ?", [key]] as const]),
    ...(session === undefined ? [] : [["session = ?", [session]] as const]),
    ...(rows === undefined ? [] : [[`seq IN (${rows.map(() => "?").join(", ")})`, rows] as const]),
  ];
  return database
    .prepare(
      `SELECT record FROM approvals WHERE ${filters.map(([sql]) => sql).join(" AND ")} ORDER BY seq DESC LIMIT ?`,
    )
    .all(...filters.flatMap(([, values]) => values), limit)
    .map(({ record }) => String(record));
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
