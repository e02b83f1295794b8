/**
 * Databases on the one PostgreSQL server of a run. A file that runs without the runner starts the server for itself.
 *
 * A test uses `startPostgres` if it stops, kills or configures its server, reads the server's log, files or sessions, or
 * needs roles with fixed names.
 */
import { randomBytes } from "node:crypto";
import { migratePostgres } from "../../packages/gate/src/ledger/store/postgres/postgres.ts";
import {
  runOn,
  startPostgres,
  type Afterwards,
  type PostgresServer,
  type Rows,
  type UrlParts,
} from "./postgres-server.ts";
import { askForPostgres, type Offer } from "./shared-postgres.ts";

/** A database of one test or file. */
export interface TestDatabase {
  readonly name: string;
  /** The URL for the role that gates connect as. */
  readonly gateUrl: string;
  /** Returns the superuser's URL, or one for another role or with other parameters. */
  readonly url: (over?: UrlParts) => string;
  /** Runs statements as the superuser. */
  readonly run: (sql: string) => Promise<Rows>;
}

/** A server on which tests make databases. */
export interface Databases {
  /** Makes a copy of a database to which nobody is connected. Without a template, it has the gate's schema. */
  create(template?: string): Promise<TestDatabase>;
}

/** The template of databases without the gate's schema. */
export const empty = "template1";

const migrated = "migrated";
const gateRole = { user: "gate", password: "gate" };

/** Finds the server of the run, or returns why there is none. The databases are dropped at the end of the file. */
export async function sharedPostgres(t: Afterwards): Promise<Databases | string> {
  const offered = await askForPostgres();
  const offer = offered ?? (await startShared(t));
  if ("missing" in offer) return offer.missing;
  if ("failed" in offer) throw new Error(`the server of the run did not start: ${offer.failed}`);
  const names: string[] = [];
  const drop = async (): Promise<void> => {
    for (const name of names) await runOn(offer.url, `DROP DATABASE ${name} WITH (FORCE)`);
  };
  if (offered !== undefined) t.after(drop);
  return {
    create: async (template) => {
      const database = await createDatabase(offer.url, template);
      names.push(database.name);
      return database;
    },
  };
}

/** Makes a database on the server of the run, or returns why there is none. */
export async function openDatabase(t: Afterwards, template?: string): Promise<TestDatabase | string> {
  const databases = await sharedPostgres(t);
  return typeof databases === "string" ? databases : databases.create(template);
}

/** Prepares a test's own server for databases as on the server of the run. */
export async function databasesOn(server: PostgresServer): Promise<Databases> {
  await server.run(`CREATE ROLE ${gateRole.user} LOGIN PASSWORD '${gateRole.password}'`);
  await server.run(`CREATE DATABASE ${migrated}`);
  await migratePostgres({ url: urlOf(server.url(), migrated), servingRole: gateRole.user });
  return { create: (template) => createDatabase(server.url(), template) };
}

/** Starts the server of a run, with enough connections for the files that run at the same time. */
export async function startShared(t: Afterwards): Promise<Offer> {
  const settings = { max_connections: 300, shared_buffers: "128MB", wal_keep_size: 0, max_wal_size: "256MB" };
  const server = await startPostgres(t, settings);
  if (typeof server === "string") return { missing: server };
  await databasesOn(server);
  return { url: server.url() };
}

async function createDatabase(server: string, template = migrated): Promise<TestDatabase> {
  const name = `test_${randomBytes(8).toString("hex")}`;
  await runOn(server, `CREATE DATABASE ${name} TEMPLATE ${template}`);
  const url = (over?: UrlParts): string => urlOf(server, name, over);
  return { name, url, gateUrl: url(gateRole), run: (sql) => runOn(url(), sql) };
}

function urlOf(server: string, database: string, { user, password, port, query = "" }: UrlParts = {}): string {
  const url = new URL(server);
  url.pathname = `/${database}`;
  url.search = query;
  if (user !== undefined) url.username = user;
  if (password !== undefined) url.password = password;
  if (port !== undefined) url.port = String(port);
  return url.href;
}
