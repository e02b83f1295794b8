import { existsSync } from "node:fs";
import { join } from "node:path";
import { placeRestoration, planRestore, type Restoration } from "../ledger/mod.ts";
import { copySmall, digestsFile, ledgersOf, refuseDatabase, signingKeyOf, type LedgerPath } from "./backup.ts";
import { pinOf } from "./ledger-place.ts";
import { othersOf } from "./others.ts";
import { BadInput, type Outcome } from "./outcome.ts";

export interface RestoreOptions {
  readonly dataDir: string;
  readonly pin?: string | undefined;
  readonly tenant?: string | undefined;
  /** Files of checkpoints that somebody outside has collected. */
  readonly seen?: readonly string[];
}

/** A ledger of a backup, and what is to be done with it. */
export type Planned = LedgerPath & Restoration;

/** `svc-gate restore`: a backup put into a data folder without a ledger, unless more was seen of it than it has. */
export async function restoreCommand(backup: string, options: RestoreOptions): Promise<Outcome> {
  refuseDatabase("restore");
  const plans = await planAll(backup, options, options.tenant);
  const diverged = plans.filter(({ divergences }) => divergences.length > 0);
  if (diverged.length > 0) throw new BadInput(diverged.map((plan) => divergedText(plan, backup)).join("\n"));
  await placeAll(backup, options.dataDir, plans);
  const texts = [...plans.map((plan) => restoredText(plan, options)), ...keyText(plans, options.dataDir)];
  return { exitCode: 0, text: texts.join("\n") };
}

/** Looks at everything before anything is written. */
export async function planAll(
  backup: string,
  { dataDir, pin, seen = [] }: RestoreOptions,
  tenant: string | null | undefined,
): Promise<readonly Planned[]> {
  const plans: Planned[] = [];
  for (const ledger of await ledgersOf(backup, tenant)) {
    const [from, folder] = [join(backup, ledger.path), join(dataDir, ledger.path)];
    const place = {
      backup: from,
      folder,
      pinFile: pinOf(pin, ledger.tenant),
      askOthers: othersOf(ledger.tenant, seen),
    };
    plans.push({ ...ledger, ...(await planRestore(place)) });
  }
  return plans;
}

/** What the folder has already of keys is left as it is. */
export async function placeAll(backup: string, dataDir: string, plans: readonly Planned[]): Promise<void> {
  for (const plan of plans) {
    await placeRestoration(plan);
    const { here, kept } = signingKeyOf(plan, dataDir, backup);
    if (here !== undefined) await copySmall(kept, here);
    if (plan.tenant === null) await copySmall(join(backup, digestsFile), join(dataDir, digestsFile));
  }
}

function divergedText({ divergences, rows, tenant }: Planned, backup: string): string {
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
    `the backup ${backup}${tenant === null ? "" : ` (tenant ${tenant})`} is behind what was answered: ${sentences.join("; ")}. ` +
    "Nothing was restored: a later backup or the old disk has them. Without these, the one way on is " +
    `\`svc-gate resume --after-restore ${backup}${of} --reason "..."\`, which records the loss`
  );
}

function restoredText({ folder, pin, rows, seen, tenant }: Planned, options: RestoreOptions): string {
  const what = `restored ${rows} ${rows === 1 ? "row" : "rows"} of ${pin.log} into ${folder}${tenant === null ? "" : ` (tenant ${tenant})`}`;
  const known = seen.toSorted((a, b) => b.seq - a.seq)[0];
  if (known !== undefined) return `${what}; the ${known.by} has seen row ${known.seq}, and it is there`;
  const pinFile = pinOf(options.pin, tenant);
  const gone = pinFile === undefined ? "" : ` (the head pin ${pinFile} is not there)`;
  return (
    `${what}\nI cannot tell whether the backup is complete${gone}. Choose one before starting the gate:\n` +
    `  if rows after row ${rows} may be lost  svc-gate resume --after-restore --reason "..."\n` +
    "  if the gate was stopped before the backup  svc-gate serve --accept missing-pin, once"
  );
}

/** The key itself is in no backup, and where its digest is, no gate makes another. */
function keyText(plans: readonly Planned[], dataDir: string): readonly string[] {
  const isThere = (name: string): boolean => existsSync(join(dataDir, name));
  if (plans.every(({ tenant }) => tenant !== null) || !isThere(digestsFile) || isThere("first-key")) return [];
  return [`${dataDir} holds no first-key: use the key that callers have, or make one with \`svc-gate keys create\``];
}
