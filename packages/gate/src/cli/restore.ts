import { existsSync } from "node:fs";
import { join } from "node:path";
import { dataFolder } from "../ledger/mod.ts";
import { applyRestoration, planRestore, type Restoration } from "../ledger/restore.ts";
import { copyDigests, copySmall, keyFilesOf, ledgersOf, refuseDatabase } from "./backup.ts";
import { locateOffline } from "./offline-ledger.ts";
import { othersOf } from "./others.ts";
import { BadInput, type Outcome } from "./outcome.ts";

export interface RestoreOptions {
  readonly dataDir: string;
  readonly pin?: string | undefined;
  readonly tenant?: string | undefined;
  /** Files of checkpoints that were collected outside. */
  readonly seen?: readonly string[];
}

/** A ledger of a backup, and the action for it. */
export type RestorePlan = Restoration & { readonly tenant: string | null };

/**
 * `svc-gate restore`: copies a backup into a data folder without a ledger, unless an anchor has seen more rows than it
 * has.
 */
export async function restoreCommand(backup: string, options: RestoreOptions): Promise<Outcome> {
  refuseDatabase("restore");
  const plans = await planAll(backup, options, options.tenant);
  const diverged = plans.filter(({ divergences }) => divergences.length > 0);
  if (diverged.length > 0) throw new BadInput(diverged.map((plan) => divergedText(plan, backup)).join("\n"));
  await restoreAll(backup, options.dataDir, plans);
  const texts = [...plans.map(restoredText), ...keyText(plans, options.dataDir)];
  return { exitCode: 0, text: texts.join("\n") };
}

/** Checks everything before anything is written. */
export async function planAll(
  backup: string,
  { dataDir, pin, seen = [] }: RestoreOptions,
  tenant: string | null | undefined,
): Promise<readonly RestorePlan[]> {
  const plans: RestorePlan[] = [];
  for (const each of await ledgersOf(backup, tenant)) {
    const { folder, pinFile } = dataFolder.locateLedger(locateOffline(dataDir, each, pin), each);
    const from = dataFolder.ledgerFolder(backup, each);
    const restoration = await planRestore({ backup: from, folder, pinFile, askOthers: othersOf(each, seen) });
    plans.push({ tenant: each, ...restoration });
  }
  return plans;
}

/** Existing key files of the folder stay as they are. */
export async function restoreAll(backup: string, dataDir: string, plans: readonly RestorePlan[]): Promise<void> {
  for (const plan of plans) {
    await applyRestoration(plan);
    const { here, kept } = keyFilesOf(plan.tenant, dataDir, backup);
    if (here !== undefined) await copySmall(kept, here);
    if (plan.tenant === null) await copyDigests(backup, dataDir);
  }
}

function divergedText({ divergences, rows, tenant }: RestorePlan, backup: string): string {
  const truncated = divergences.filter(({ kind }) => kind === "truncated").map(({ head }) => head);
  const forked = divergences.filter(({ kind }) => kind === "forked").map(({ head }) => head);
  const far = truncated.toSorted((a, b) => b.seq - a.seq)[0];
  const sentences = [
    ...(far === undefined
      ? []
      : [`it ends at row ${rows}, and the ${far.by} has seen row ${far.seq}: rows ${rows + 1} to ${far.seq} are lost`]),
    ...forked.map(({ by, seq }) => `its row ${seq} is not the one that the ${by} has seen`),
  ];
  const of = tenant === null ? "" : ` --tenant ${tenant}`;
  return (
    `the backup ${backup}${tenant === null ? "" : ` (tenant ${tenant})`} lacks rows that the gate has answered: ${sentences.join("; ")}. ` +
    "Nothing was restored: use a later backup or the old disk, which have them. Without these, run " +
    `\`svc-gate resume --after-restore ${backup}${of} --reason "..."\`, which records the loss`
  );
}

function restoredText({ folder, pin, pinFile, rows, seen, tenant }: RestorePlan): string {
  const ofTenant = tenant === null ? "" : ` (tenant ${tenant})`;
  const what = `restored ${rows} ${rows === 1 ? "row" : "rows"} of ${pin.log} into ${folder}${ofTenant}`;
  const known = seen.toSorted((a, b) => b.seq - a.seq)[0];
  if (known !== undefined) return `${what}; the ${known.by} has seen row ${known.seq}, which was restored`;
  const gone = pinFile === undefined ? "" : ` (the head pin ${pinFile} does not exist)`;
  return (
    `${what}\nIt is unknown whether the backup is complete${gone}. Choose one before starting the gate:\n` +
    `  if rows after row ${rows} may be lost  svc-gate resume --after-restore --reason "..."\n` +
    "  if the gate was stopped before the backup  svc-gate serve --accept missing-pin, once"
  );
}

/** The key itself is not in a backup, and if its digest is there, a gate creates no other key. */
function keyText(plans: readonly RestorePlan[], dataDir: string): readonly string[] {
  const isThere = (name: string): boolean => existsSync(join(dataDir, name));
  const hasRoot = plans.some(({ tenant }) => tenant === null);
  if (!hasRoot || !isThere(dataFolder.files.keys) || isThere(dataFolder.files.firstKey)) return [];
  return [`${dataDir} has no first-key: use the key that callers have, or create one with \`svc-gate keys create\``];
}
