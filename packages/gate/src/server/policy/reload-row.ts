import type { AppendTransaction, InForce } from "../../ledger/mod.ts";
import { isWeaker, refuse, type InForceJson, type Mode, type Refusal } from "../../../../core/src/wire/mod.ts";

/** What was in force, as the row of a reload says it. */
export function inForceJson({ contract, mode }: InForce): InForceJson {
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

interface WantedMode {
  /** Undefined keeps the mode. */
  readonly mode: Mode | undefined;
  /** The setting that names the mode; undefined if a person requested it. */
  readonly setting?: string | undefined;
  readonly mayWeaken: boolean;
}

/**
 * Returns why a mode must not be put in force on a shared ledger; undefined if it may.
 *
 * @param now the mode in force, and the tenant of the ledger
 */
export function weakerRefusal(
  { inForce }: Pick<AppendTransaction["store"], "inForce">,
  { mode, setting, mayWeaken }: WantedMode,
  now: { readonly mode: Mode; readonly tenant: string | null },
  by: string,
): Refusal | undefined {
  if (inForce === undefined || mayWeaken || !isWeaker(mode ?? now.mode, now.mode)) return undefined;
  const others = `the gates on this ledger are in mode ${now.mode}, and one gate's setting must not weaken the others`;
  const way = `to weaken all of them, run \`${reloadCommand(now.tenant)} --mode ${mode}\``;
  const atStart = by === "start" ? ", or start once with --accept weaker-mode" : "";
  return refuse("contract-refused", `${setting} says ${mode}, but ${others}: ${way}${atStart}`);
}
