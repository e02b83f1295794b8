import { constants } from "node:fs";
import { chmod, copyFile, mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { whyNot } from "../server/errors.ts";
import { backUpLedger, type Backup } from "../ledger/backup.ts";
import { dataFolder, flushFile, flushFolder, makeFolders } from "../ledger/mod.ts";
import { LedgerRefused } from "../ledger/errors.ts";
import { isKeyText } from "../ledger/signing/mod.ts";
import { visible } from "../../../core/src/wire/mod.ts";
import { io } from "./io.ts";
import { BadInput, type Outcome } from "./outcome.ts";
import { showProgress, type ProgressBar } from "./progress.ts";
import { counted } from "./counted.ts";

export interface BackupOptions {
  readonly dataDir: string;
  readonly tenant?: string | undefined;
  readonly withSigningKey: boolean;
  readonly json: boolean;
}

/** `svc-gate backup`: copies the ledgers of a data folder, served or not, into a new folder and verifies them. */
export async function backupCommand(to: string, options: BackupOptions): Promise<Outcome> {
  const { dataDir, json, tenant, withSigningKey } = options;
  refuseDatabase("back up");
  const ledgers = await ledgersOf(dataDir, tenant);
  await makeFolder(to);
  try {
    const made = await backUpAll(dataDir, to, ledgers);
    if (ledgers.includes(null)) await copyDigests(dataDir, to);
    if (withSigningKey) await copyKeys(dataDir, to, ledgers);
    await flushFolder(to);
    await flushFolder(dirname(to));
    return { exitCode: 0, text: json ? jsonOf(made) : describeBackups(to, made, withSigningKey) };
  } catch (error) {
    await rm(to, { recursive: true, force: true });
    throw error;
  }
}

/** A database is backed up with its own tools. */
export function refuseDatabase(verb: string): void {
  if (io().env["SVC_DATABASE_URL"] === undefined) return;
  throw new BadInput(
    `SVC_DATABASE_URL names a PostgreSQL: ${verb} it with pg_basebackup and its archive of write-ahead logs, or pg_dump, ` +
      "as described in docs/guides/backup.md; this command copies data folders, without that variable",
  );
}

/**
 * The tenants that have a ledger in a data folder or a backup; null is the root, which comes first.
 *
 * @param tenant only this tenant; undefined for all
 * @throws {LedgerRefused} if there is none
 */
export async function ledgersOf(
  folder: string,
  tenant: string | null | undefined,
): Promise<readonly (string | null)[]> {
  const all = [...(dataFolder.hasLedger(folder) ? [null] : []), ...(await dataFolder.tenantsIn(folder))];
  const found = all.filter((each) => tenant === undefined || each === tenant);
  if (found.length > 0) return found;
  throw new LedgerRefused(
    `no ledger exists${typeof tenant === "string" ? ` of the tenant ${visible(tenant)}` : ""} in ${folder}`,
  );
}

async function makeFolder(folder: string): Promise<void> {
  try {
    await makeFolders(dirname(folder));
    await mkdir(folder, { mode: 0o700 });
  } catch (error) {
    throw new BadInput(`${folder} cannot be created: ${whyNot(error)}; a backup needs a new folder`);
  }
}

type LedgerBackups = readonly (Backup & { readonly tenant: string | null })[];

async function backUpAll(dataDir: string, to: string, ledgers: readonly (string | null)[]): Promise<LedgerBackups> {
  const made: LedgerBackups[number][] = [];
  for (const tenant of ledgers) {
    const target = dataFolder.ledgerFolder(to, tenant);
    await makeFolders(target, 0o700);
    let progress: ProgressBar | undefined;
    const backup = await backUpLedger(dataFolder.ledgerFolder(dataDir, tenant), target, (done, all) => {
      progress ??= showProgress(all, "pages");
      progress.at(done);
    });
    progress?.[Symbol.dispose]();
    await flushFolder(dirname(target));
    made.push({ tenant, ...backup });
  }
  return made;
}

/** Copies a file for its owner only, if it exists and its copy does not. Returns whether it was copied. */
export async function copySmall(from: string, to: string): Promise<boolean> {
  try {
    await copyFile(from, to, constants.COPYFILE_EXCL);
  } catch (error) {
    if (["EEXIST", "ENOENT"].includes((error as NodeJS.ErrnoException).code ?? "")) return false;
    throw error;
  }
  await chmod(to, 0o600);
  await flushFile(to);
  return true;
}

/** Copies the digests of keys next to the root's ledger, which a restored gate needs. Copies no key. */
export function copyDigests(from: string, to: string): Promise<boolean> {
  return copySmall(join(from, dataFolder.files.keys), join(to, dataFolder.files.keys));
}

async function copyKeys(dataDir: string, to: string, ledgers: readonly (string | null)[]): Promise<void> {
  for (const tenant of ledgers) {
    const { here, kept } = keyFilesOf(tenant, dataDir, to);
    if (here === undefined)
      throw new BadInput(
        "SVC_SIGNING_KEY is the key itself, not a file: keep a copy of it at its source, and omit --with-signing-key",
      );
    if (await copySmall(here, kept)) continue;
    throw new BadInput(
      `the signing key ${here} does not exist: name it with SVC_SIGNING_KEY, or omit --with-signing-key`,
    );
  }
}

/** The path of a ledger's key, unless it is an environment variable, and its path in a backup. */
export function keyFilesOf(
  tenant: string | null,
  dataDir: string,
  backup: string,
): { readonly here: string | undefined; readonly kept: string } {
  const here =
    io().env["SVC_SIGNING_KEY"] || dataFolder.signingKeyOf({ folder: dataFolder.ledgerFolder(dataDir, tenant) });
  return {
    here: isKeyText(here) ? undefined : here,
    kept: dataFolder.signingKeyOf({ folder: dataFolder.ledgerFolder(backup, tenant) }),
  };
}

function jsonOf(made: LedgerBackups): string {
  const ledgers = made.map(({ tenant, pin: { log, seq, hash } }) => ({ tenant, log, rows: seq, head: { seq, hash } }));
  return JSON.stringify({ ledgers });
}

function describeBackups(to: string, made: LedgerBackups, hasKey: boolean): string {
  const ledgers = made.flatMap(({ tenant, pin: { log, hash }, rows }) => [
    `  ${tenant === null ? "ledger" : `tenant ${tenant}`}  ${log}: ${counted(rows, "row")}, chain and evidence verified`,
    `    head  ${hash}`,
  ]);
  const key = hasKey
    ? `it contains the signing key: anyone who can read ${dataFolder.signingKeyOf({ folder: to })} can sign heads as this gate`
    : "it does not contain the signing key: keep a copy of the key elsewhere, or a restored gate signs with another key";
  return [`backed up to ${to}`, ...ledgers, `  ${key}`].join("\n");
}
