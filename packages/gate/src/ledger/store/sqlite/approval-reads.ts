import type { DatabaseSync } from "node:sqlite";
import type { KeptApproval } from "../../../../../core/src/record/entry/row.ts";
import { columnsOf, entryReader, type ApprovalQuery } from "../tables.ts";

/** Lists approvals, newest first. */
export function listApprovals(database: DatabaseSync, query: ApprovalQuery): readonly KeptApproval[] {
  const { before, limit, statuses, key, session, rows } = query;
  const filters: readonly (readonly [sql: string, values: readonly (string | number)[]])[] = [
    ["seq < ?", [before]],
    ...(statuses === undefined ? [] : [[`status IN (${statuses.map(() => "?").join(", ")})`, statuses] as const]),
    ...(key === undefined ? [] : [["key = ?", [key]] as const]),
    ...(session === undefined ? [] : [["session = ?", [session]] as const]),
    ...(rows === undefined ? [] : [[`seq IN (${rows.map(() => "?").join(", ")})`, rows] as const]),
  ];
  const condition = `${filters.map(([sql]) => sql).join(" AND ")} ORDER BY seq DESC LIMIT ?`;
  const prepare: Prepare = (sql, options) => database.prepare(sql, options);
  return select(prepare, condition, ...filters.flatMap(([, values]) => values), limit);
}

/** A leaf of a check starts with its answer and its time. Late: less time is left than has passed. */
export const waitingSql = `SELECT count(*) AS calls,
  count(*) FILTER (WHERE 2 * ?1 - ends > CAST(substr(leaf, instr(leaf, '"at":') + 5, 15) AS INTEGER)) AS late
  FROM approvals JOIN receipts USING (seq) WHERE status = 'pending' AND ends > ?1`;

export type SqliteValue = string | number | Uint8Array;
export type Prepare = DatabaseSync["prepare"];

const columns = columnsOf("receipts");
const rowOf = entryReader("receipts", columns);

/** Reads approvals together with the rows that asked. */
export function select(
  prepare: Prepare,
  condition: string,
  ...values: readonly SqliteValue[]
): readonly KeptApproval[] {
  const found = prepare(
    `SELECT ${columns.join(", ")}, record FROM approvals JOIN receipts USING (seq) WHERE ${condition}`,
    { returnArrays: true },
  );
  return (found.all(...values) as unknown as readonly (readonly unknown[])[]).map((each) => {
    return { row: rowOf(each), record: String(each.at(-1)) };
  });
}
