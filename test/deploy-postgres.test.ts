/**
 * Goal: compose.yaml comes up on PostgreSQL: the role that it makes, the migration that it runs and the gate that it starts
 * fit each other. Method: no engine need be here; its statement, its commands and its URLs are taken from the file and used
 * on a server of the test's own. Control: before the migration the gate is refused, and its role can change no receipt.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import pg from "pg";
import { parse } from "yaml";
import { check, finish, key, root, spawnGate, temporaryFolder } from "./e2e/gate.ts";
import { startPostgres } from "./postgres-server.ts";

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly configs: Readonly<Record<string, { readonly content: string }>>;
}

interface Service {
  readonly command?: readonly string[];
  readonly environment: Readonly<Record<string, string | number>>;
}

const { services, configs }: Compose = parse(readFileSync(join(root, "compose.yaml"), "utf8"));
const password = "one-of-this-test";
const filledIn = (text: unknown): string => String(text).replaceAll(/\$\{[A-Z_]+:\?[^}]*\}/g, password);

async function query(url: string, statement: string): Promise<readonly unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(statement)).rows;
  } finally {
    await client.end();
  }
}

test("compose.yaml on PostgreSQL: its role, its migration, its gate, its readiness", async (t) => {
  const server = await startPostgres(t);
  if (typeof server === "string") return t.skip(server);
  const { gate, migrate, postgres } = services;
  const owner = String(postgres?.environment["POSTGRES_USER"]);
  await server.run(`CREATE ROLE ${owner} LOGIN SUPERUSER PASSWORD '${password}'`);
  await server.run(`CREATE DATABASE ${String(postgres?.environment["POSTGRES_DB"])} OWNER ${owner}`);
  await server.run(filledIn(configs["roles"]?.content));
  const urlOf = (service: Service | undefined): string =>
    filledIn(service?.environment["SVC_DATABASE_URL"]).replace("@postgres:5432/", `@127.0.0.1:${server.port}/`);

  const folder = temporaryFolder(t);
  const settings = { SVC_API_KEY: key, SVC_DATA_DIR: folder, SVC_DATABASE_URL: urlOf(gate), SVC_OPS_PORT: "0" };
  const serving = ["--mandate", join(root, "mandate.yaml")];
  const early = await finish(t, ["serve", "--port", "0", ...serving], { env: settings });
  assert.notEqual(early.code, 0);
  assert.match(early.stderr, /run `svc-gate migrate --role ROLE`/);

  const [, , ...command] = migrate?.command ?? [];
  const migrated = await finish(t, command, { env: { SVC_DATABASE_URL: urlOf(migrate) } });
  assert.equal(migrated.code, 0, migrated.stderr);

  const running = await spawnGate(t, serving, { env: settings });
  assert.equal((await check(running, { tool_name: "note.add", tool_input: {} })).status, 200);
  const [, ops] = /(http:\/\/127\.0\.0\.1:\d+)\/metrics/.exec(running.stdout()) ?? [];
  for (const path of ["/ready", "/health", "/metrics"]) assert.equal((await fetch(`${ops}${path}`)).status, 200, path);

  const count = "SELECT count(*)::int AS receipts FROM svc_gate.receipts";
  assert.deepEqual(await query(urlOf(migrate), count), [{ receipts: 1 }]);
  assert.deepEqual(await query(urlOf(gate), count), [{ receipts: 0 }], "of no ledger but the one that it names");
  for (const change of ["UPDATE svc_gate.receipts SET leaf = ''", "DELETE FROM svc_gate.receipts"])
    await assert.rejects(query(urlOf(gate), change), /permission denied/);
  return undefined;
});
