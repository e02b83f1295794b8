import type { InForce } from "../../ledger/mod.ts";
import type { Canonical } from "../../wire/mod.ts";

/** What was in force, as the row of a reload says it. */
export function inForceJson({ contract, mode }: InForce): Canonical {
  return { contract: `sha256:${contract}`, mode };
}

/** The sentence of the row of a reload. */
export function reloadReason(before: InForce, now: InForce, by: string, setting: string | undefined): string {
  const parts = [
    before.mode === now.mode ? "" : `mode ${before.mode} to ${now.mode}`,
    before.contract === now.contract ? "" : `contract ${before.contract.slice(0, 12)} to ${now.contract.slice(0, 12)}`,
  ];
  const told = before.mode === now.mode || setting === undefined ? "" : `, as set by ${setting}`;
  return `Svc: ${parts.filter(Boolean).join(", ")}, put in force by ${by}${told}`;
}

/** Returns the command that reloads the root (null) or a tenant. */
export function reloadCommand(tenant: string | null): string {
  return tenant === null ? "svc-gate reload" : `svc-gate reload --tenant ${tenant}`;
}
