import { join } from "node:path";
import type { TestContext } from "node:test";
import { migratePostgres } from "../../packages/svc-gate/src/ledger/store/postgres/postgres.ts";
import { startDesk, type Desk, type DeskOptions } from "./approvals.ts";
import { temporaryFolder } from "./gate.ts";
import type { PostgresServer } from "./postgres-server.ts";

/** Starts two gates as processes on one new database, whose server has the role "gate". */
export async function twoDesks(
  t: TestContext,
  there: PostgresServer,
  name: string,
  { env: more, ...given }: Pick<DeskOptions, "contract" | "defects" | "env" | "scopes"> = {},
): Promise<readonly [Desk, Desk]> {
  await there.run(`CREATE DATABASE ${name}`);
  const at = (url: string): string => url.replace(/\/postgres$/, `/${name}`);
  await migratePostgres({ url: at(there.url()), servingRole: "gate" });
  const env = {
    SVC_DATABASE_URL: at(there.url({ user: "gate", password: "gate" })),
    SVC_SIGNING_KEY: join(temporaryFolder(t), "signing.key"),
    ...more,
  };
  const options = { env, ...given };
  const one = await startDesk(t, options);
  return [one, await startDesk(t, { ...options, peer: one })];
}
