import { migratePostgres } from "../ledger/mod.ts";
import { BadInput, type Outcome } from "./outcome.ts";

export interface MigrateOptions {
  /** By default what SVC_DATABASE_URL says. */
  readonly databaseUrl: string | undefined;
  /** The role that gates connect as. */
  readonly role: string | undefined;
}

/** `svc-gate migrate`: brings the schema of a database up to this version, beside gates that are serving from it. */
export async function migrateCommand({ databaseUrl, role }: MigrateOptions): Promise<Outcome> {
  if (databaseUrl === undefined)
    throw new BadInput("no database is named: set SVC_DATABASE_URL, or give --database-url postgres://...");
  const run = await migratePostgres({ url: databaseUrl, servingRole: role });
  const done =
    run.length === 0 ? "the schema is up to date" : `ran ${run.map((number) => `migration ${number}`).join(", ")}`;
  return { exitCode: 0, text: role === undefined ? done : `${done}; the role "${role}" may serve from it` };
}
