import { DatabaseError, Pool, type ClientBase, type ClientConfig, type PoolClient, type QueryResult } from "pg";
import { asLedger, begin, beginReading, commit, rollback, type BoundStatement } from "./sql.ts";
import { NotKept } from "../store.ts";

/** How long things may take, in milliseconds. What holds a ledger's head is bounded by the server, not by the gate. */
export interface Bounds {
  /** A connection, or a free one of the pool. */
  readonly connect: number;
  /** The ledger's head, while another gate has it. */
  readonly lock: number;
  /** One statement. Never a COMMIT: see `withoutTimeout`. */
  readonly statement: number;
  /** A gate that has the head and says nothing: it is cut off, and the head is free. */
  readonly idleInTransaction: number;
  /** No answer at all: the line is cut, nothing is cancelled. A COMMIT that waits for a standby waits so long. */
  readonly answer: number;
  /** To find out what became of a COMMIT whose answer was lost; longer than nobody can hold a head. */
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

/** Connects as the URL says. What a commit must wait for is asked for on each connection, whatever its role has. */
export function clientConfig(url: string, within: Bounds, synchronousCommit?: string): ClientConfig {
  const address = new URL(url);
  if (!address.searchParams.has("uselibpqcompat")) address.searchParams.set("uselibpqcompat", "true");
  const own = address.searchParams.get("options");
  address.searchParams.delete("options");
  return {
    connectionString: address.href,
    // On plain PostgreSQL the last one is a name without a meaning; Citus needs it to tell its workers which ledger it is.
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

/** Where the database is, without what must not be shown. */
export function placeOf(url: string): string {
  const { hostname, port, pathname, searchParams } = new URL(url);
  return `${searchParams.get("host") ?? hostname}:${port === "" ? "5432" : port}${pathname}`;
}

export function makePool(config: ClientConfig, max: number): Pool {
  const pool = new Pool({ ...config, max, idleTimeoutMillis: 60_000 });
  // A connection that breaks while nobody uses it is replaced; one in use says so to its user.
  pool.on("error", () => undefined);
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}

type Row = readonly unknown[];

/** Sends one statement; those that are sent before an answer comes travel together. */
export async function send(client: ClientBase, { statement, values }: BoundStatement): Promise<readonly Row[]> {
  const { name, text } = statement;
  const { rows }: QueryResult = await client.query({ name, text, values: [...values], rowMode: "array" });
  return rows as readonly Row[];
}

/**
 * Begins a transaction that sees one ledger, and sends what comes first in it on the same way.
 *
 * @returns the rows of each statement
 */
export async function beginOn(
  client: ClientBase,
  ledger: string,
  first: readonly BoundStatement[],
  reading = false,
): Promise<readonly (readonly Row[])[]> {
  const opening: readonly Promise<unknown>[] = [
    client.query(reading ? beginReading : begin),
    client.query(asLedger(ledger)),
  ];
  const asked = first.map((statement) => send(client, statement));
  const answers = await settleAll([...opening, ...asked]);
  return answers.slice(opening.length) as readonly (readonly Row[])[];
}

/** All answers, or the first error once none is outstanding. */
export async function settleAll<Value>(promises: readonly Promise<Value>[]): Promise<readonly Value[]> {
  const settled = await Promise.allSettled(promises);
  const failed = settled.find((outcome) => outcome.status === "rejected");
  if (failed !== undefined) throw failed.reason;
  return settled.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
}

/** Reads of one ledger in a transaction of their own, in one way there and back. */
export async function readOne(
  pool: Pool,
  ledger: string,
  ...asked: readonly BoundStatement[]
): Promise<readonly (readonly Row[])[]> {
  const client = await connect(pool);
  try {
    const rows = beginOn(client, ledger, asked, true);
    const ended = client.query(commit);
    await settleAll<unknown>([rows, ended]);
    client.release();
    return await rows;
  } catch (error) {
    client.release(true);
    throw explained(error);
  }
}

/** Ends a transaction of which nothing shall stay. A connection on which that fails is not used again. */
export async function rollBack(client: PoolClient): Promise<void> {
  try {
    await client.query(rollback);
    client.release();
  } catch {
    client.release(true);
  }
}

/** @throws {NotKept} where there is none within the time */
export async function connect(pool: Pool): Promise<PoolClient> {
  try {
    return await pool.connect();
  } catch (error) {
    throw explained(error);
  }
}

/** SQLSTATE, by its class or whole, of what may pass by itself: the database is away, full, busy, or has a new primary. */
const passing = /^(08|28|3D|40|53|55|57|25006|25P03|25P04|58)/;

/**
 * What an error before a COMMIT means: nothing was kept, and later batches may be, where the database is away or gives
 * up the transaction. A line that breaks is a plain error, or the system's. Anything else (a row that is there already, a
 * table that is not, a programmer's error) is a fault and stays what it is.
 */
export function explained(error: unknown): unknown {
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
  "55P03": "another gate holds the ledger's head, and has not let it go within 5 seconds",
  "57014": "a statement took longer than it may",
  "57P03": "the database is starting or stopping",
};
