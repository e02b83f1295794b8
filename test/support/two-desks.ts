import { join } from "node:path";
import type { TestContext } from "node:test";
import { startDesk, type Desk, type DeskOptions } from "./approvals.ts";
import { temporaryFolder } from "./gate.ts";
import type { TestDatabase } from "./databases.ts";
import type { Mutation } from "./mutation/mutate.ts";

/** A gate with this defect follows another gate's reload only with its next call. */
export const notFollowing: Mutation = { within: "followOthers", find: "lastRow === followed", put: "true" };

/** Starts two gates as processes on one database. */
export async function twoDesks(
  t: TestContext,
  { gateUrl }: TestDatabase,
  { env: more, ...given }: Pick<DeskOptions, "contract" | "defects" | "env" | "mode" | "persons" | "scopes"> = {},
): Promise<readonly [Desk, Desk]> {
  const env = {
    SVC_DATABASE_URL: gateUrl,
    SVC_SIGNING_KEY: join(temporaryFolder(t), "signing.key"),
    ...more,
  };
  const options = { env, ...given };
  const one = await startDesk(t, options);
  return [one, await startDesk(t, { ...options, peer: one })];
}
