import { DatabaseError, Pool, type ClientBase, type ClientConfig, type PoolClient, type QueryResult } from "pg";
import { asLedger, begin, beginReading, commit, rollback, type BoundStatement } from "./sql.ts";
import { NotKept } from "../../errors.ts";

/** Timeouts in milliseconds. The server, not the gate, limits how long a transaction locks a ledger's head. */
export interface Bounds {
  /** The wait for a new connection, or for a free one of the pool. */
  readonly connect: number;
  /** The wait for the ledger's head while another gate has locked it. */
  readonly lock: number;
  /** One statement, but never a COMMIT: see `withoutTimeout`. */
  readonly statement: number;
  /** A silent gate that has locked the head. The server then closes its connection, which unlocks the head. */
  readonly idleInTransaction: number;
  /** The wait for any answer, also to a COMMIT that waits for a standby. Then the gate closes the connection. */
  readonly answer: number;
  /** Finding the outcome of a COMMIT whose answer was lost. It is longer than a gate can lock a head. */
  readonly settle: number;
}

export const bounds: Bounds = {
  connect: 5000,
  lock: 5000,
  statement: 10_000,
  idleInTransaction: 10_000,
  answer: 30_000,
  settle: 20_000,
};

/** The configuration for a URL. Each connection sets its own `synchronous_commit`, which overrides the role's. */
export function clientConfig(url: string, within: Bounds, synchronousCommit?: string): ClientConfig {
  const address = new URL(url);
  if (!address.searchParams.has("uselibpqcompat")) address.searchParams.set("uselibpqcompat", "true");
  const own = address.searchParams.get("options");
  address.searchParams.delete("options");
  return {
    connectionString: address.href,
    // Citus needs the last setting to pass the ledger to its workers. Plain PostgreSQL ignores it.
    options: [
      own,
      synchronousCommit && `-c synchronous_commit=${synchronousCommit}`,
      "-c citus.propagate_set_commands=local",
    ]
      .filter(Boolean)
      .join(" "),
    connectionTimeoutMillis: within.connect,
    lock_timeout: within.lock,
    statement_timeout: within.statement,
    idle_in_transaction_session_timeout: within.idleInTransaction,
    query_timeout: within.answer,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    application_name: address.searchParams.get("application_name") ?? "svc-gate",
    pipeline: true,
  };
}

/** The database's address without secrets. */
export function formatAddress(url: string): string {
  const { hostname, port, pathname, searchParams } = new URL(url);
  return `${searchParams.get("host") ?? hostname}:${port === "" ? "5432" : port}${pathname}`;
}

export function makePool(config: ClientConfig, max: number): Pool {
  const pool = new Pool({ ...config, max, idleTimeoutMillis: 60_000 });
  // The pool replaces an idle connection that breaks. A connection in use reports the error to its user.
  pool.on("error", () => undefined);
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}

type Row = readonly unknown[];

/** Sends one statement without waiting for the answers to earlier ones. */
export async function send(client: ClientBase, { statement, values }: BoundStatement): Promise<readonly Row[]> {
  const { name, text } = statement;
  const { rows }: QueryResult = await client.query({ name, text, values: [...values], rowMode: "array" });
  return rows as readonly Row[];
}

/**
 * Starts a transaction that sees one ledger, and sends its first statements in the same round trip.
 *
 * @returns the rows of each statement
 */
export async function beginTransaction(
  client: ClientBase,
  ledger: string,
  first: readonly BoundStatement[],
  reading = false,
): Promise<readonly (readonly Row[])[]> {
  const opening: readonly Promise<unknown>[] = [
    client.query(reading ? beginReading : begin),
    client.query(asLedger(ledger)),
  ];
  const sent = first.map((statement) => send(client, statement));
  const answers = await settleAll([...opening, ...sent]);
  return answers.slice(opening.length) as readonly (readonly Row[])[];
}

/** Waits for all answers, and then returns them or throws the first error. */
export async function settleAll<Value>(promises: readonly Promise<Value>[]): Promise<readonly Value[]> {
  const settled = await Promise.allSettled(promises);
  const failed = settled.find((outcome) => outcome.status === "rejected");
  if (failed !== undefined) throw failed.reason;
  return settled.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
}

/** Reads or writes one ledger in a separate transaction, in one round trip. */
export async function transact(
  pool: Pool,
  ledger: string,
  statements: readonly BoundStatement[],
  reading: boolean,
): Promise<readonly (readonly Row[])[]> {
  const client = await connect(pool);
  try {
    const rows = beginTransaction(client, ledger, statements, reading);
    const ended = client.query(commit);
    await settleAll<unknown>([rows, ended]);
    client.release();
    return await rows;
  } catch (error) {
    client.release(true);
    throw explainError(error);
  }
}

/** Rolls a transaction back. If that fails, the connection is not used again. */
export async function rollBack(client: PoolClient): Promise<void> {
  try {
    await client.query(rollback);
    client.release();
  } catch {
    client.release(true);
  }
}

/** @throws {NotKept} if there is no connection in time */
export async function connect(pool: Pool): Promise<PoolClient> {
  try {
    return await pool.connect();
  } catch (error) {
    throw explainError(error);
  }
}

/** SQLSTATE codes and classes of temporary errors: the database is away, full, busy, or has a new primary. */
const passing = /^(08|28|3D|40|53|55|57|25006|25P03|25P04|58)/;

/**
 * Explains an error before a COMMIT. If the database is away or aborts the transaction, nothing was kept and later batches
 * may succeed. A broken connection is a plain `Error`, or one of the operating system. Any other error is a fault and
 * stays unchanged, for example an existing row, a missing table, or a programmer's error.
 */
export function explainError(error: unknown): unknown {
  const isOfTheLine =
    error instanceof Error && [Error, AggregateError, DatabaseError].some((kind) => error.constructor === kind);
  if (!isOfTheLine) return error;
  const { code = "" } = error as { readonly code?: string };
  if (code === "53100") return new NotKept("disk-full", "the database has no room on its disk");
  if (error instanceof DatabaseError && !passing.test(code)) return error;
  return new NotKept(
    "unreachable",
    sentences[code] ?? `the database does not answer (${code === "" ? error.message : code})`,
  );
}

const sentences: Readonly<Record<string, string>> = {
  "25006": "the database is a standby that only reads: another server is the primary",
  "53300": "the database has no free connection: lower SVC_DATABASE_POOL, or raise its max_connections",
  "55P03": "another gate has locked the ledger's head for more than 5 seconds",
  "57014": "a statement took longer than it may",
  "57P03": "the database is starting or stopping",
};
