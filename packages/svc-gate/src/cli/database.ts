import { dataFolder, type SharedPlace } from "../ledger/mod.ts";
import { BadInput } from "./outcome.ts";

/**
 * The ledger that `--database` means: the root's, or that of a tenant.
 *
 * @param tenant true where the option names none; undefined where it was not given
 */
export function sharedPlace(tenant: string | true | undefined): SharedPlace | undefined {
  if (tenant === undefined) return undefined;
  const url = process.env["SVC_DATABASE_URL"];
  if (url === undefined) throw new BadInput("--database is for a gate's own: set SVC_DATABASE_URL");
  return { url, ledger: dataFolder.ledgerIdOf(tenant === true ? null : tenant) };
}
