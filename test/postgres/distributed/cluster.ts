import { randomBytes } from "node:crypto";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { startPostgres, type Afterwards, type PostgresServer } from "../../support/postgres-server.ts";
import { root } from "../../support/gate-process.ts";
import { migratePostgres } from "../../../packages/gate/src/ledger/store/postgres/postgres.ts";

/** A coordinator, to which gates connect, and two workers with the rows; all on loopback, in temporary folders. */
export interface Cluster {
  readonly coordinator: PostgresServer;
  readonly workers: readonly [PostgresServer, PostgresServer];
  /** The URL for a role that may add receipts but not change any. */
  readonly servingUrl: string;
  /** The worker that has a ledger's rows. */
  workerOf(ledger: string): Promise<PostgresServer>;
}

/** Returns the folder of `initdb` and `postgres` of an installation with Citus, or the missing program. */
export function findCitus(): { readonly binaries: string } | { readonly missing: string } {
  const named = process.env["SVC_CITUS_BIN"];
  const usual = ["/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin"];
  const folders = named === undefined ? globSync(usual) : [named];
  const has = (folder: string): boolean =>
    existsSync(join(folder, "initdb")) && existsSync(join(dirname(folder), "lib", "citus.so"));
  const binaries = folders.toSorted().findLast(has);
  return binaries === undefined
    ? { missing: `no initdb with ../lib/citus.so in ${named ?? usual.join(", ")}` }
    : { binaries };
}

/** Distributes the tables by ledger, as an operator does once after `svc-gate migrate`. */
export const distribution: string = readFileSync(join(root, "ops", "citus.sql"), "utf8");

const servingRole = "gate";

/** Starts a cluster, with the schema of the ledgers distributed over the workers. */
export async function startCluster(t: Afterwards, binaries: string): Promise<Cluster> {
  const passwords = { postgres: randomBytes(12).toString("hex"), [servingRole]: randomBytes(12).toString("hex") };
  const settings = {
    shared_preload_libraries: "citus",
    "citus.local_hostname": "127.0.0.1",
    "citus.node_conninfo": "sslmode=disable",
    max_connections: 100,
  };
  const start = async (): Promise<PostgresServer> => {
    const server = await startPostgres(t, settings, { binaries, passwords });
    if (typeof server === "string") throw new Error(server);
    await server.run("CREATE EXTENSION citus");
    return server;
  };
  const [coordinator, one, two] = [await start(), await start(), await start()];
  await coordinator.run(`SELECT citus_set_coordinator_host('127.0.0.1', ${coordinator.port})`);
  for (const { port } of [one, two]) await coordinator.run(`SELECT citus_add_node('127.0.0.1', ${port})`);
  await coordinator.run(`CREATE ROLE ${servingRole} LOGIN PASSWORD '${passwords[servingRole]}'`);
  await migratePostgres({ url: coordinator.url(), servingRole });
  await coordinator.run(distribution);
  return {
    coordinator,
    workers: [one, two],
    servingUrl: coordinator.url({ user: servingRole, password: passwords[servingRole] ?? "" }),
    workerOf: async (ledger) => {
      const [shard] = await shardsOf(coordinator, [ledger]);
      return shard?.port === one.port ? one : two;
    },
  };
}

/** Returns the shards of ledgers, each with the port of its worker. */
export async function shardsOf(
  coordinator: PostgresServer,
  ledgers: readonly string[],
): Promise<readonly { readonly ledger: string; readonly shard: string; readonly port: number }[]> {
  const found = await coordinator.run(`
    SELECT ledger, s.shardid::text AS shard, s.nodeport::int AS port
    FROM unnest(ARRAY[${ledgers.map((ledger) => `'${ledger}'`).join(", ")}]) AS ledger
    JOIN citus_shards s ON s.shardid = get_shard_id_for_distribution_column('svc_gate.receipts', ledger)`);
  return found.map(({ ledger, shard, port }) => ({ ledger: String(ledger), shard: String(shard), port: Number(port) }));
}
