import { Client, type ClientConfig, type Pool } from "pg";
import { migrate, migrations as all, newer, readVersion, type Migration } from "./schema.ts";
import {
  beginTransaction,
  bounds,
  clientConfig,
  connect,
  explainError,
  makePool,
  formatAddress,
  rollBack,
  type Bounds,
} from "./session.ts";
import { ask } from "./sql.ts";
import { openStore } from "./store.ts";
import type { Database } from "../store.ts";
import { LedgerRefused, NotKept } from "../../errors.ts";

export interface DatabaseOptions {
  /** `postgres://user:password@host:port/database?sslmode=verify-full&sslrootcert=...` */
  readonly url: string;
  /** The maximum of connections, at least 2. One in five reads. */
  readonly connectionsMax?: number | undefined;
  /** Whether the schema may be migrated to the version of this gate. */
  readonly mayMigrate?: boolean | undefined;
  /** The migrations that this gate knows, instead of the default. */
  readonly migrations?: readonly Migration[] | undefined;
  /** Timeouts that replace the defaults. */
  readonly within?: Partial<Bounds> | undefined;
}

const connectionsDefault = 10;

/** @throws {LedgerRefused} with a sentence for the operator, if the database cannot be used */
export async function openPostgres(options: DatabaseOptions): Promise<Database> {
  const { url, connectionsMax = connectionsDefault } = options;
  if (connectionsMax < 2)
    throw new LedgerRefused("SVC_DATABASE_POOL must be 2 or more: one connection writes, one reads");
  const found = await inspect(options);
  const within = { ...bounds, ...options.within };
  const config = clientConfig(url, within, found.synchronousCommit);
  const readers = Math.max(1, Math.floor(connectionsMax / 5));
  const [transactions, reads] = [makePool(config, connectionsMax - readers), makePool(config, readers)];
  const pools = { config, settleMs: within.settle, transactions, reads };
  let closing: Promise<void> | undefined;
  return {
    warnings: found.warnings,
    open: (ledger) => openStore(pools, ledger),
    passHead: (ledger) => passHead(transactions, ledger),
    isReachable: () =>
      reads.query("SELECT 1").then(
        () => true,
        () => false,
      ),
    close: () => (closing ??= Promise.all([transactions.end(), reads.end()]).then(() => undefined)),
  };
}

async function passHead(transactions: Pool, ledger: string): Promise<void> {
  const client = await connect(transactions);
  try {
    await beginTransaction(client, ledger, [ask("lockHead", ledger)]);
  } catch (error) {
    client.release(true);
    throw explainError(error);
  }
  await rollBack(client);
}

export interface MigrateOptions {
  readonly url: string;
  /** The role that gates connect as. It receives only the rights that it needs. */
  readonly servingRole?: string | undefined;
  /** The migrations that this gate knows, instead of the default. */
  readonly migrations?: readonly Migration[] | undefined;
}

/**
 * Migrates the database's schema to the version of this gate.
 *
 * @returns the numbers of the migrations that were run
 * @throws {LedgerRefused} with a sentence for the operator, if the migration is not possible
 */
export function migratePostgres({ url, servingRole, migrations = all }: MigrateOptions): Promise<readonly number[]> {
  return withClient(url, (client) => migrate(client, migrations, servingRole));
}

async function withClient<Result>(url: string, work: (client: Client) => Promise<Result>): Promise<Result> {
  const config = { ...parseUrl(url), pipeline: false, query_timeout: undefined };
  let client: Client | undefined;
  try {
    client = new Client(config).on("error", () => undefined);
    await client.connect();
    return await work(client);
  } catch (error) {
    throw refusal(error, url);
  } finally {
    await client?.end().catch(() => undefined);
  }
}

function parseUrl(url: string): ClientConfig {
  const address = URL.parse(url);
  if (address === null || !["postgres:", "postgresql:"].includes(address.protocol))
    throw new LedgerRefused("SVC_DATABASE_URL must be like postgres://user:password@host:5432/database");
  return clientConfig(url, bounds);
}

interface DatabaseInspection {
  readonly warnings: readonly string[];
  readonly synchronousCommit: "on" | "remote_apply";
}

/** Checks the database before a gate serves from it. */
function inspect({ url, mayMigrate = false, migrations = all }: DatabaseOptions): Promise<DatabaseInspection> {
  return withClient(url, async (client) => {
    const warnings = isPlainFarAway(url)
      ? [`the connection to ${formatAddress(url)} is not encrypted: add ?sslmode=verify-full to SVC_DATABASE_URL`]
      : [];
    const strength = await requireDurable(client);
    let version = await readVersion(client);
    const needed = migrations.length;
    if (version < needed && mayMigrate) {
      await migrate(client, migrations, undefined);
      version = await readVersion(client);
    }
    if (version > needed) throw newer(version, needed);
    if (version < needed) {
      throw new LedgerRefused(
        `the database's schema is at version ${version}, and this gate needs version ${needed}: run \`svc-gate migrate\``,
      );
    }
    return { warnings: [...warnings, ...(await rightsWarnings(client))], synchronousCommit: strength };
  });
}

function isPlainFarAway(url: string): boolean {
  const { hostname, searchParams } = new URL(url);
  const host = searchParams.get("host") ?? hostname;
  const isNear = host === "" || host.startsWith("/") || /^(localhost|127\..*|\[?::1\]?)$/.test(host);
  return !isNear && ["", "disable", "allow"].includes(searchParams.get("sslmode") ?? "");
}

/** A commit must be on disk, on this server and on the standby that it waits for. */
async function requireDurable(client: Client): Promise<DatabaseInspection["synchronousCommit"]> {
  const { rows } = await client.query<Readonly<Record<string, string | null>>>(
    `SELECT current_setting('fsync', true) AS fsync, current_setting('full_page_writes', true) AS full_page_writes,
       current_setting('server_encoding', true) AS server_encoding, current_setting('synchronous_commit', true) AS synchronous_commit`,
  );
  const { fsync, full_page_writes: pages, server_encoding: encoding } = rows[0] ?? {};
  const off = Object.entries({ fsync, full_page_writes: pages }).filter(([, value]) => value === "off");
  if (off.length > 0) {
    throw new LedgerRefused(
      `the database runs with ${off.map(([name]) => `${name}=off`).join(" and ")}, and loses receipts with its power: turn it on`,
    );
  }
  if (encoding !== null && encoding !== undefined && encoding !== "UTF8")
    throw new LedgerRefused(`the database's encoding is ${encoding}, and must be UTF8: create another`);
  return rows[0]?.["synchronous_commit"] === "remote_apply" ? "remote_apply" : "on";
}

interface Rights {
  readonly role: string;
  readonly bypasses: boolean;
  readonly may_add: boolean;
  readonly may_change: boolean;
}

async function rightsWarnings(client: Client): Promise<readonly string[]> {
  const { rows } = await client.query<Rights>(
    `SELECT current_user AS role, rolsuper OR rolbypassrls AS bypasses,
       has_table_privilege('svc_gate.receipts', 'INSERT') AND has_table_privilege('svc_gate.nodes', 'INSERT')
         AND has_column_privilege('svc_gate.ledgers', 'checkpoint', 'UPDATE') AS may_add,
       has_table_privilege('svc_gate.receipts', 'UPDATE') OR has_table_privilege('svc_gate.receipts', 'DELETE')
         OR has_table_privilege('svc_gate.receipts', 'TRUNCATE') AS may_change
     FROM pg_roles WHERE rolname = current_user`,
  );
  const { role = "", may_add: mayAdd, may_change: mayChange, bypasses }: Partial<Rights> = rows[0] ?? {};
  if (mayAdd === false) {
    throw new LedgerRefused(
      `the role "${role}" may not add receipts: run \`svc-gate migrate --role ${role}\` as the owner of the schema`,
    );
  }
  const can = [mayChange === true ? "change receipts" : "", bypasses === true ? "see every tenant's rows" : ""].filter(
    Boolean,
  );
  if (can.length === 0) return [];
  return [
    `the role "${role}" may ${can.join(" and ")}: let the gate connect as a role of its own (docs/guides/postgresql.md)`,
  ];
}

/** Explains an error of connecting or migrating to the operator. */
function refusal(error: unknown, url: string): unknown {
  if (!(error instanceof Error) || error instanceof LedgerRefused) return error;
  const { code = "", path } = error as { readonly code?: string; readonly path?: string };
  if (path !== undefined) return new LedgerRefused(`SVC_DATABASE_URL names ${path}, which cannot be read (${code})`);
  const address = formatAddress(url);
  if (["28P01", "28000"].includes(code))
    return new LedgerRefused(
      `the database at ${address} does not admit this role: check SVC_DATABASE_URL (${error.message})`,
    );
  if (code === "3D000") return new LedgerRefused(`the database at ${address} does not exist: create it`);
  if (code === "42501")
    return new LedgerRefused(
      `the role may not do that at ${address} (${error.message}): run \`svc-gate migrate --role ROLE\` as the owner`,
    );
  if (code === "25006")
    return new LedgerRefused(`the server at ${address} is a standby that only reads: name the primary`);
  const reason = explainError(error);
  return reason instanceof NotKept
    ? new LedgerRefused(
        `the database at ${address} cannot be reached (${code === "" ? error.message : code}): start it, or check SVC_DATABASE_URL`,
      )
    : error;
}
