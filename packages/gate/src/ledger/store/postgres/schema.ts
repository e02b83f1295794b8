import { setTimeout as wait } from "node:timers/promises";
import type { Client } from "pg";
import { LedgerRefused } from "../../errors.ts";
import { headColumns } from "./sql.ts";

/** The tables with rows of ledgers. A transaction sees only the rows of one ledger. */
export const ledgerTables = [
  "ledgers",
  "receipts",
  "effects",
  "counters",
  "contracts",
  "key_uses",
  "nodes",
  "approvals",
  "holds",
  "repeats",
  "deliveries",
  "outcomes",
  "withdrawals",
] as const;

/** The tables of the first migration. */
const firstTables = ledgerTables.slice(0, 7);

/** The statements of one numbered step. */
export type Migration = readonly string[];

/**
 * All migrations, in order. A released migration never changes. Gates of the previous release must be able to serve after
 * a new migration.
 */
export const migrations: readonly Migration[] = [
  [
    `CREATE TABLE svc_gate.ledgers (
      ledger text NOT NULL, log text NOT NULL, counter_secret text NOT NULL, seal text NOT NULL, seq bigint NOT NULL, leaf text,
      changed bigint NOT NULL, counters bigint NOT NULL, contract text, mode text, engine text,
      frontier text, checkpoint text, signer text, PRIMARY KEY (ledger))`,
    `CREATE TABLE svc_gate.receipts (
      ledger text NOT NULL, seq bigint NOT NULL, session text, tool text NOT NULL, verdict text NOT NULL, leaf text NOT NULL,
      evidence text NOT NULL, PRIMARY KEY (ledger, seq))`,
    "CREATE INDEX receipts_by_session ON svc_gate.receipts (ledger, session, seq) WHERE session IS NOT NULL",
    "CREATE INDEX receipts_by_tool ON svc_gate.receipts (ledger, tool, seq)",
    "CREATE INDEX receipts_refused ON svc_gate.receipts (ledger, verdict, seq) WHERE verdict <> 'ALLOW'",
    `CREATE TABLE svc_gate.effects (
      ledger text NOT NULL, counter int NOT NULL, key bytea NOT NULL, at bigint NOT NULL, seq bigint NOT NULL, total text NOT NULL,
      folded text, PRIMARY KEY (ledger, counter, key, at, seq))`,
    `CREATE TABLE svc_gate.counters (
      ledger text NOT NULL, digest text NOT NULL, id int NOT NULL, definition text NOT NULL, through bigint,
      unknown_through bigint NOT NULL, reset_through bigint NOT NULL, folded bigint NOT NULL, seal text NOT NULL,
      PRIMARY KEY (ledger, digest), UNIQUE (ledger, id))`,
    "CREATE TABLE svc_gate.contracts (ledger text NOT NULL, digest text NOT NULL, text text NOT NULL, PRIMARY KEY (ledger, digest))",
    "CREATE TABLE svc_gate.key_uses (ledger text NOT NULL, key_name text NOT NULL, at bigint NOT NULL, PRIMARY KEY (ledger, key_name))",
    `CREATE TABLE svc_gate.nodes (
      ledger text NOT NULL, level int NOT NULL, place bigint NOT NULL, hash bytea NOT NULL, PRIMARY KEY (ledger, level, place))`,
    ...firstTables.flatMap(apart),
  ],
  [
    "ALTER TABLE svc_gate.ledgers ADD COLUMN approvals bigint NOT NULL DEFAULT 0",
    `CREATE TABLE svc_gate.approvals (
      ledger text NOT NULL, seq bigint NOT NULL, attach bytea NOT NULL, key text NOT NULL, place bytea NOT NULL,
      status text NOT NULL, ends bigint, record text NOT NULL, PRIMARY KEY (ledger, seq))`,
    "CREATE INDEX approvals_by_attach ON svc_gate.approvals (ledger, attach) WHERE ends IS NOT NULL",
    "CREATE INDEX approvals_by_key ON svc_gate.approvals (ledger, key, status, ends) WHERE ends IS NOT NULL",
    "CREATE INDEX approvals_by_end ON svc_gate.approvals (ledger, ends) WHERE status IN ('pending', 'approved')",
    `CREATE TABLE svc_gate.holds (
      ledger text NOT NULL, counter int NOT NULL, key bytea NOT NULL, at bigint NOT NULL, seq bigint NOT NULL, amount text NOT NULL,
      PRIMARY KEY (ledger, counter, key, at, seq))`,
    "CREATE INDEX holds_by_row ON svc_gate.holds (ledger, seq)",
    `CREATE TABLE svc_gate.repeats (
      ledger text NOT NULL, id bytea NOT NULL, at bigint NOT NULL, record text NOT NULL, PRIMARY KEY (ledger, id))`,
    "CREATE INDEX repeats_by_time ON svc_gate.repeats (ledger, at)",
    `CREATE TABLE svc_gate.deliveries (
      ledger text NOT NULL, endpoint text NOT NULL, owner text NOT NULL, until bigint NOT NULL, note text NOT NULL,
      PRIMARY KEY (ledger, endpoint))`,
    "ALTER TABLE svc_gate.ledgers ADD COLUMN withdrawals bigint NOT NULL DEFAULT 0",
    `CREATE TABLE svc_gate.outcomes (
      ledger text NOT NULL, seq bigint NOT NULL, outcome bigint NOT NULL, status text NOT NULL, PRIMARY KEY (ledger, seq))`,
    `CREATE TABLE svc_gate.withdrawals (
      ledger text NOT NULL, counter int NOT NULL, key bytea NOT NULL, at bigint NOT NULL, seq bigint NOT NULL, amount text NOT NULL,
      outcome bigint NOT NULL, folded text, PRIMARY KEY (ledger, counter, key, at, seq))`,
    ...["approvals", "holds", "repeats", "deliveries", "outcomes", "withdrawals"].flatMap(apart),
  ],
];

/** Restricts each transaction to one ledger's rows of a table. */
function apart(table: string): readonly string[] {
  return [
    `ALTER TABLE svc_gate.${table} ENABLE ROW LEVEL SECURITY`,
    `ALTER TABLE svc_gate.${table} FORCE ROW LEVEL SECURITY`,
    `CREATE POLICY one_ledger ON svc_gate.${table} USING (ledger = current_setting('svc.ledger', true))
       WITH CHECK (ledger = current_setting('svc.ledger', true))`,
  ];
}

/**
 * The rights of the serving role. It may add receipts, events and contracts, but not change them. The exception is the
 * data that an erasure deletes from a receipt. It may never change a leaf.
 */
function grants(role: string): readonly string[] {
  return [
    `GRANT USAGE ON SCHEMA svc_gate TO ${role}`,
    `GRANT SELECT ON svc_gate.migrations TO ${role}`,
    ...["receipts", "effects", "contracts", "nodes", "withdrawals"].map(
      (table) => `GRANT SELECT, INSERT ON svc_gate.${table} TO ${role}`,
    ),
    `GRANT UPDATE (evidence, session, tool) ON svc_gate.receipts TO ${role}`,
    `GRANT SELECT, INSERT, UPDATE (${headColumns.join(", ")}) ON svc_gate.ledgers TO ${role}`,
    `GRANT SELECT, INSERT, UPDATE (through, unknown_through, reset_through, folded, seal) ON svc_gate.counters TO ${role}`,
    `GRANT SELECT, INSERT, UPDATE (at) ON svc_gate.key_uses TO ${role}`,
    `GRANT SELECT, INSERT, UPDATE (status, ends, record), DELETE ON svc_gate.approvals TO ${role}`,
    `GRANT SELECT, INSERT, DELETE ON svc_gate.holds TO ${role}`,
    `GRANT SELECT, INSERT, UPDATE (at, record), DELETE ON svc_gate.repeats TO ${role}`,
    `GRANT SELECT, INSERT, UPDATE (owner, until, note) ON svc_gate.deliveries TO ${role}`,
    `GRANT SELECT, INSERT, UPDATE (outcome, status) ON svc_gate.outcomes TO ${role}`,
  ];
}

/** The version of the database's schema; 0 before the first migration. */
export async function readVersion(client: Client): Promise<number> {
  try {
    const { rows } = await client.query<{ version: number | null }>(
      "SELECT max(number)::int AS version FROM svc_gate.migrations",
    );
    return rows[0]?.version ?? 0;
  } catch (error) {
    if (["3F000", "42P01"].includes(codeOf(error) ?? "")) return 0;
    throw error;
  }
}

/**
 * Migrates the schema with one transaction for each migration, while gates serve. A second migrator waits for the first,
 * because both insert the primary key of the migration. Then it skips the migration.
 *
 * @param known all migrations that this code knows, in order
 * @param servingRole the role that gates connect as, which receives its rights
 * @returns the numbers of the migrations that were run
 */
export async function migrate(
  client: Client,
  known: readonly Migration[],
  servingRole: string | undefined,
): Promise<readonly number[]> {
  const found = await readVersion(client);
  if (found > known.length) throw newer(found, known.length);
  await client.query("SET lock_timeout TO '10s'; SET statement_timeout TO 0");
  if (found === 0) await withPatience(() => makeMigrationsTable(client));
  const done: number[] = [];
  for (const [at, steps] of known.entries()) {
    if (at + 1 > found && (await runOnce(client, at + 1, steps))) done.push(at + 1);
  }
  if (servingRole !== undefined) await withPatience(() => grant(client, servingRole));
  return done;
}

export function newer(found: number, known: number): LedgerRefused {
  return new LedgerRefused(
    `the database's schema is at version ${found}, and this gate knows version ${known}: run a newer gate`,
  );
}

async function makeMigrationsTable(client: Client): Promise<void> {
  await client.query("CREATE SCHEMA IF NOT EXISTS svc_gate");
  await client.query(
    "CREATE TABLE IF NOT EXISTS svc_gate.migrations (number int PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())",
  );
}

/** Retries the work, because two migrators at once may collide in the catalogue. */
async function withPatience(work: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (attempt === 10 || !["23505", "42710", "42P06", "42P07", "XX000"].includes(codeOf(error) ?? "")) throw error;
    }
    await wait(20 * attempt);
  }
}

async function runOnce(client: Client, number: number, steps: readonly string[]): Promise<boolean> {
  await client.query("BEGIN");
  try {
    await client.query("INSERT INTO svc_gate.migrations (number) VALUES ($1)", [number]);
    for (const step of steps) await client.query(step);
    await client.query("COMMIT");
    return true;
  } catch (error) {
    await client.query("ROLLBACK");
    if (codeOf(error) === "23505") return false;
    throw error;
  }
}

async function grant(client: Client, role: string): Promise<void> {
  const { rowCount } = await client.query("SELECT 1 FROM pg_roles WHERE rolname = $1", [role]);
  if (rowCount === 0)
    throw new LedgerRefused(
      `the role "${role}" does not exist: make it first, with CREATE ROLE "${role}" LOGIN PASSWORD '...'`,
    );
  for (const step of grants(client.escapeIdentifier(role))) await client.query(step);
}

function codeOf(error: unknown): string | undefined {
  return (error as { readonly code?: string }).code;
}
