/**
 * Every statement of the PostgreSQL store. A test checks that each can run on engines that distribute ledgers over
 * machines: it compares or writes the ledger's id, and its rows come as VALUES. It uses no sequence, notification or
 * advisory lock.
 */

import { hash } from "node:crypto";
import { conditionsOf, type Filters } from "../search.ts";
import { columnsOf, keyOf, tableSpecs, type TableName } from "../tables.ts";

/** The allowed ids of ledgers. `asLedger` writes the id into `SET LOCAL`, which takes no parameters. */
export const ledgerIds: RegExp = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/** A statement, which each connection prepares once under its name. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

export const begin = "BEGIN ISOLATION LEVEL READ COMMITTED";
export const beginReading = "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY";
export const commit = "COMMIT";
export const rollback = "ROLLBACK";
/** A COMMIT may wait for a standby. If the server cancelled the wait, the answer would look like a commit. */
export const withoutTimeout = "SET LOCAL statement_timeout TO 0";

/** Restricts the transaction to one ledger. */
export function asLedger(ledger: string): string {
  if (!ledgerIds.test(ledger)) throw new Error(`"${ledger}" is not the id of a ledger`);
  return `SET LOCAL svc.ledger TO '${ledger}'`;
}

/** A statement and its parameters. */
export interface BoundStatement {
  readonly statement: Statement;
  readonly values: readonly unknown[];
}

export function ask(name: ComposedName | keyof typeof statements, ...values: readonly unknown[]): BoundStatement {
  return { statement: { name, text: texts[name] }, values };
}

/** The columns of a ledger's own row that describe its last row. */
export const headColumns = [
  "seq",
  "leaf",
  "changed",
  "counters",
  "contract",
  "mode",
  "engine",
  "frontier",
  "checkpoint",
  "signer",
  "approvals",
  "withdrawals",
] as const;
const head = headColumns.join(", ");

/** The columns of a receipt, in the order of `storedRow`. */
const receipt = columnsOf("receipts").join(", ");

/** Approvals with the rows that asked. */
const selectApprovals = `SELECT ${receipt}, record
    FROM svc_gate.approvals JOIN svc_gate.receipts USING (ledger, seq) WHERE ledger = $1`;

/** The statements that share a part with another one. */
export const composed: Readonly<Record<ComposedName, string>> = {
  findLedger: `SELECT log, counter_secret, seal, ${head} FROM svc_gate.ledgers WHERE ledger = $1`,
  lockHead: `SELECT ${head} FROM svc_gate.ledgers WHERE ledger = $1 FOR UPDATE`,
  readHead: `SELECT ${head} FROM svc_gate.ledgers WHERE ledger = $1`,
  moveHead: `UPDATE svc_gate.ledgers SET ${headColumns.map((name, index) => `${name} = $${index + 2}`).join(", ")} WHERE ledger = $1`,
  approvalsOfCalls: `${selectApprovals} AND attach = ANY($2::bytea[]) AND ends IS NOT NULL`,
  approvalsAt: `${selectApprovals} AND seq = ANY($2::bigint[])`,
  denials: `${selectApprovals} AND key = ANY($2::text[]) AND status = 'denied' AND ends > $3`,
  dueApprovals: `${selectApprovals} AND status IN ('pending', 'approved') AND ends <= $2 ORDER BY ends LIMIT 10000`,
  listApprovals: `${selectApprovals} AND seq < $2
    AND ($3::text[] IS NULL OR status = ANY($3)) AND ($4::text IS NULL OR key = $4) AND ($5::text IS NULL OR session = $5)
    AND ($6::bigint[] IS NULL OR seq = ANY($6)) ORDER BY seq DESC LIMIT $7`,
};

type ComposedName = "approvalsAt" | "approvalsOfCalls" | "denials" | "dueApprovals" | "listApprovals" | OfHead;
type OfHead = "findLedger" | "lockHead" | "moveHead" | "readHead";

export const statements = {
  addLedger: `INSERT INTO svc_gate.ledgers (ledger, log, counter_secret, seal, seq, changed, counters)
    VALUES ($1, $2, $3, $4, 0, 0, 0) ON CONFLICT DO NOTHING`,
  /**
   * The time, and when the first open approval ends. Sent after the lock: the statement that locks would read both before
   * its wait.
   */
  clock: `SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS at,
      CASE WHEN approvals > 0 THEN (SELECT min(a.ends) FROM svc_gate.approvals a
        WHERE a.ledger = $1 AND a.status IN ('pending', 'approved')) END AS next_end
    FROM svc_gate.ledgers WHERE ledger = $1`,
  touchHead: `UPDATE svc_gate.ledgers SET seq = seq WHERE ledger = $1`,
  leafAt: `SELECT leaf FROM svc_gate.receipts WHERE ledger = $1 AND seq = $2`,
  /** The latest event of each counter and key, and its total at a moment. */
  totals: `SELECT latest.at, latest.total, earlier.total AS before
    FROM unnest($2::int[], $3::bytea[], $4::bigint[]) WITH ORDINALITY AS wanted (counter, key, after, nth)
    LEFT JOIN LATERAL (SELECT e.at, e.total FROM svc_gate.effects e
      WHERE e.ledger = $1 AND e.counter = wanted.counter AND e.key = wanted.key ORDER BY e.at DESC, e.seq DESC LIMIT 1) latest ON true
    LEFT JOIN LATERAL (SELECT e.total FROM svc_gate.effects e
      WHERE e.ledger = $1 AND e.counter = wanted.counter AND e.key = wanted.key AND e.at <= wanted.after
      ORDER BY e.at DESC, e.seq DESC LIMIT 1) earlier ON true
    ORDER BY wanted.nth`,
  /** The amounts that are reserved under each counter and key, after a moment. */
  reserved: `SELECT wanted.nth, h.amount
    FROM unnest($2::int[], $3::bytea[], $4::bigint[]) WITH ORDINALITY AS wanted (counter, key, after, nth)
    JOIN LATERAL (SELECT e.amount FROM svc_gate.holds e
      WHERE e.ledger = $1 AND e.counter = wanted.counter AND e.key = wanted.key AND e.at > wanted.after) h ON true`,
  /** The amounts of events after a moment that outcomes took back, under each counter and key. */
  taken: `SELECT wanted.nth, w.amount
    FROM unnest($2::int[], $3::bytea[], $4::bigint[]) WITH ORDINALITY AS wanted (counter, key, after, nth)
    JOIN LATERAL (SELECT e.amount FROM svc_gate.withdrawals e WHERE e.ledger = $1 AND e.counter = wanted.counter
      AND e.key = wanted.key AND e.at > wanted.after) w ON true`,
  keepOutcome: `INSERT INTO svc_gate.outcomes (ledger, seq, outcome, status) VALUES ($1, $2, $3, $4)
    ON CONFLICT (ledger, seq) DO UPDATE SET outcome = excluded.outcome, status = excluded.status`,
  openByKey: `SELECT key, place, count(*) AS count FROM svc_gate.approvals
    WHERE ledger = $1 AND key = ANY($2::text[]) AND status IN ('pending', 'approved') AND ends > $3 GROUP BY key, place`,
  openAll: `SELECT count(*) AS count FROM svc_gate.approvals
    WHERE ledger = $1 AND status IN ('pending', 'approved') AND ends > $2`,
  /** A leaf of a check starts with its answer and its time. Late: less time is left than has passed. */
  waitingApprovals: `SELECT count(*), count(*) FILTER (WHERE 2 * $2::bigint - ends > substring(leaf from '"at":([0-9]+)')::bigint)
    FROM svc_gate.approvals JOIN svc_gate.receipts USING (ledger, seq)
    WHERE ledger = $1 AND status = 'pending' AND ends > $2::bigint`,
  keepApproval: `INSERT INTO svc_gate.approvals (ledger, seq, attach, key, place, status, ends, record)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (ledger, seq) DO UPDATE SET status = excluded.status, ends = excluded.ends, record = excluded.record`,
  release: `DELETE FROM svc_gate.holds WHERE ledger = $1 AND seq = ANY($2::bigint[])`,
  eraseApprovals: `DELETE FROM svc_gate.approvals WHERE ledger = $1 AND seq BETWEEN $2 AND $3
    AND NOT (status = 'denied' AND record LIKE '%"call":{"attach":"%')`,
  eraseReservations: `DELETE FROM svc_gate.holds WHERE ledger = $1 AND seq BETWEEN $2 AND $3`,
  /** The right to send has an end, by the database's clock. */
  takeDelivery: `INSERT INTO svc_gate.deliveries (ledger, endpoint, owner, until, note)
    VALUES ($1, $2, $3, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint + $4::bigint, '')
    ON CONFLICT (ledger, endpoint) DO UPDATE SET owner = excluded.owner, until = excluded.until
    WHERE svc_gate.deliveries.owner = excluded.owner OR svc_gate.deliveries.until < excluded.until - $4::bigint OR $5::boolean`,
  keepDelivery: `UPDATE svc_gate.deliveries SET note = $4 WHERE ledger = $1 AND endpoint = $2 AND owner = $3`,
  deliveryOf: `SELECT owner, note FROM svc_gate.deliveries WHERE ledger = $1 AND endpoint = $2`,
  deliveries: `SELECT endpoint, note FROM svc_gate.deliveries WHERE ledger = $1`,
  keepRepeat: `INSERT INTO svc_gate.repeats (ledger, id, at, record) VALUES ($1, $2, $3, $4)
    ON CONFLICT (ledger, id) DO UPDATE SET at = excluded.at, record = excluded.record`,
  deleteRepeats: `DELETE FROM svc_gate.repeats WHERE ledger = $1 AND id IN (
    SELECT r.id FROM svc_gate.repeats r WHERE r.ledger = $1 AND r.at < $2 ORDER BY r.at LIMIT $3)`,
  counters: `SELECT id, digest, definition, through, unknown_through, reset_through, folded, seal
    FROM svc_gate.counters WHERE ledger = $1 ORDER BY id`,
  keepCounter: `INSERT INTO svc_gate.counters (ledger, id, digest, definition, through, unknown_through, reset_through, folded, seal)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    ON CONFLICT (ledger, digest) DO UPDATE SET through = excluded.through, unknown_through = excluded.unknown_through,
      reset_through = excluded.reset_through, folded = excluded.folded, seal = excluded.seal`,
  keepContract: `INSERT INTO svc_gate.contracts (ledger, digest, text) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
  contract: `SELECT text FROM svc_gate.contracts WHERE ledger = $1 AND digest = $2`,
  uses: `SELECT key_name, at FROM svc_gate.key_uses WHERE ledger = $1`,
  keepUse: `INSERT INTO svc_gate.key_uses (ledger, key_name, at) VALUES ($1, $2, $3)
    ON CONFLICT (ledger, key_name) DO UPDATE SET at = greatest(svc_gate.key_uses.at, excluded.at)`,
  /** The last of the next $6 events after the event ($2, $3, $4, $5). */
  tallyEnd: `SELECT counter, key, at, seq FROM svc_gate.effects
    WHERE ledger = $1 AND (counter, key, at, seq) > ($2, $3, $4, $5) ORDER BY counter, key, at, seq LIMIT 1 OFFSET $6`,
  /** Counts events after ($2 to $5) up to ($6 to $9): of receipts up to $10, of folds, and of missing rows. */
  tally: `SELECT count(*) FILTER (WHERE folded IS NULL AND seq <= $10) AS live, count(folded) AS folded,
      count(*) FILTER (WHERE seq > (SELECT l.seq FROM svc_gate.ledgers l WHERE l.ledger = $1)) AS beyond,
      (SELECT l.seq FROM svc_gate.ledgers l WHERE l.ledger = $1) AS last
    FROM svc_gate.effects WHERE ledger = $1 AND (counter, key, at, seq) > ($2, $3, $4, $5)
      AND (counter, key, at, seq) <= ($6, $7, $8, $9)`,
  /** The total before each position ($2 counters, $3 keys, $4 times, $5 rows). */
  totalsBefore: `SELECT earlier.total
    FROM unnest($2::int[], $3::bytea[], $4::bigint[], $5::bigint[]) WITH ORDINALITY AS wanted (counter, key, at, seq, nth)
    LEFT JOIN LATERAL (SELECT e.total FROM svc_gate.effects e WHERE e.ledger = $1 AND e.counter = wanted.counter
      AND e.key = wanted.key AND (e.at, e.seq) < (wanted.at, wanted.seq) ORDER BY e.at DESC, e.seq DESC LIMIT 1) earlier ON true
    ORDER BY wanted.nth`,
  checksIn: `SELECT seq, evidence FROM svc_gate.receipts WHERE ledger = $1 AND seq >= $2 AND seq <= $3 AND verdict <> 'CHANGE'`,
  erase: `UPDATE svc_gate.receipts SET evidence = $3 WHERE ledger = $1 AND seq = $2`,
  eraseWithCall: `UPDATE svc_gate.receipts SET evidence = $3, session = NULL, tool = '' WHERE ledger = $1 AND seq = $2`,
} as const;

const texts = { ...composed, ...statements };

/** The values of a page's bounds, as the database stores them. */
interface Page {
  readonly table: TableName;
  readonly columns: readonly string[];
  readonly after?: readonly unknown[] | undefined;
  readonly through?: readonly unknown[] | undefined;
  readonly limit: number;
}

/** Characters of one page or slice, which limits memory if rows are large. */
export const sliceCharacters = 1_000_000;

/** The receipts of a slice up to a number of characters, at least one. */
function limitCharacters(columns: string, slice: string, order: string, most: string): string {
  const bytes = "octet_length(leaf) + octet_length(evidence)";
  return `SELECT ${columns} FROM (SELECT slice.*, sum(${bytes}) OVER (ORDER BY ${order}) - (${bytes}) AS before
    FROM (${slice}) slice) sized WHERE before < ${most} ORDER BY ${order}`;
}

/** Entries of a table in the order of its key. */
export function pageOf(ledger: string, { table, columns, after = [], through = [], limit }: Page): BoundStatement {
  const key = keyOf(table);
  const placeholder = (index: number): string => `$${index + 2}`;
  const bound = (operator: string, count: number, from: number): string =>
    count === 0
      ? ""
      : ` AND (${key.slice(0, count).join(", ")}) ${operator} ` +
        `(${Array.from({ length: count }, (_, at) => placeholder(from + at)).join(", ")})`;
  const bounds = bound(">", after.length, 0) + bound("<=", through.length, after.length);
  const [names, order] = [columns.join(", "), key.join(", ")];
  const count = placeholder(after.length + through.length);
  const page = `SELECT ${names} FROM svc_gate.${table} WHERE ledger = $1${bounds} ORDER BY ${order} LIMIT ${count}`;
  const text = columns.includes("evidence") ? limitCharacters(names, page, order, String(sliceCharacters)) : page;
  const name = formatStatementName(`page ${after.length} ${through.length}`, table, columns);
  return { statement: { name, text }, values: [ledger, ...after, ...through, limit] };
}

const arrays = { digest: "bytea[]", number: "bigint[]", text: "text[]" } as const;

function arrayOf(table: TableName, column: string): string {
  const kinds: Readonly<Record<string, string>> = tableSpecs[table].columns;
  return arrays[(kinds[column] ?? "text").replace("?", "") as keyof typeof arrays];
}

/** The number of each key that has an entry, and columns of the entry. @param keys column by column */
export function entriesAt(
  ledger: string,
  table: TableName,
  keys: readonly (readonly unknown[])[],
  columns: readonly string[],
): BoundStatement {
  const key = keyOf(table);
  const placeholders = key.map((column, index) => `$${index + 2}::${arrayOf(table, column)}`);
  const text = `SELECT wanted.nth, ${columns.map((name) => `e.${name}`).join(", ")}
    FROM unnest(${placeholders.join(", ")}) WITH ORDINALITY AS wanted (${key.join(", ")}, nth)
    JOIN svc_gate.${table} e ON ${key.map((name) => `e.${name} = wanted.${name}`).join(" AND ")} WHERE e.ledger = $1`;
  return { statement: { name: formatStatementName("at", table, columns), text }, values: [ledger, ...keys] };
}

/** Entries of which a column has one of some values. */
export function entriesWhere(
  ledger: string,
  table: TableName,
  column: string,
  values: readonly unknown[],
): BoundStatement {
  const names = columnsOf(table).join(", ");
  const text = `SELECT ${names} FROM svc_gate.${table} WHERE ledger = $1 AND ${column} = ANY($2::${arrayOf(table, column)})`;
  return { statement: { name: `where ${table} ${column}`, text }, values: [ledger, values] };
}

/** A name has at most 63 bytes. */
function formatStatementName(read: string, table: TableName, columns: readonly string[]): string {
  return `${read} ${table} ${columns.length === columnsOf(table).length ? "" : columns.join()}`;
}

/** Rows from $5 on below $2, newest first: at most $3 rows and $4 characters. Each filter adds a parameter. */
export function readRows(filters: Filters): BoundStatement {
  const { where, parameters } = conditionsOf(filters, {
    placeholder: (index) => `$${index + 6}`,
    leafHas: (text) => `(strpos(leaf, ${text}) > 0)`,
    outcomes: "SELECT FROM svc_gate.outcomes o WHERE o.ledger = $1 AND o.seq = svc_gate.receipts.seq",
  });
  const slice = `SELECT ${receipt} FROM svc_gate.receipts
    WHERE ledger = $1 AND seq < $2 AND seq >= $5${where} ORDER BY seq DESC LIMIT $3`;
  const text = limitCharacters(receipt, slice, "seq DESC", "$4");
  return { statement: { name: `read ${hash("sha256", text, "base64url")}`, text }, values: parameters };
}

/** The numbers of rows in one statement. They are few, so that each statement is planned once. */
const sizes = [64, 16, 4, 1] as const;

/** The tables that one statement may add several rows to. */
type BulkTable = "effects" | "holds" | "nodes" | "receipts" | "withdrawals";

export type PostgresValue = string | number | Uint8Array | null;

/** The statements that add rows of one ledger. */
export function insertions(
  table: BulkTable,
  ledger: string,
  rows: readonly (readonly PostgresValue[])[],
): readonly BoundStatement[] {
  const written = [];
  for (let from = 0; from < rows.length;) {
    const size = sizes.find((candidate) => candidate <= rows.length - from) ?? 1;
    written.push({
      statement: insertion(table, size),
      values: [ledger, ...rows.slice(from, from + size).flat()],
    });
    from += size;
  }
  return written;
}

const inserting = new Map<string, Statement>();

/** The statement that adds a number of rows. $1 is the ledger, and the columns of each row follow. */
export function insertion(table: BulkTable, rows: number): Statement {
  return inserting.getOrInsertComputed(`${table} ${rows}`, (name) => {
    const columns = columnsOf(table);
    const tuples = Array.from({ length: rows }, (_, at) => {
      const placeholders = columns.map((_column, index) => `$${at * columns.length + index + 2}`);
      return `($1, ${placeholders.join(", ")})`;
    });
    const unlessThere = table === "holds" ? " ON CONFLICT DO NOTHING" : "";
    const text = `INSERT INTO svc_gate.${table} (ledger, ${columns.join(", ")}) VALUES ${tuples.join(", ")}${unlessThere}`;
    return { name, text };
  });
}
