import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { dirname } from "node:path";
import { firstKeyFileFault, makeFirstKey, openOfflineKeys } from "../server/mod.ts";
import { migratePostgres, readSharedLedger } from "../ledger/in-database.ts";
import { dataFolder } from "../ledger/mod.ts";
import { LedgerRefused } from "../ledger/errors.ts";
import { io } from "./io.ts";
import { locateOffline } from "./offline-ledger.ts";
import { BadInput, notWritten, type Outcome } from "./outcome.ts";

export interface MigrateCommandOptions {
  /** SVC_DATABASE_URL by default. */
  readonly databaseUrl: string | undefined;
  /** The role with which gates connect. */
  readonly role: string | undefined;
  /** The file for the first key if the database has none. */
  readonly firstKey?: string | undefined;
  /** Contains `signing.key`, which the first row of a ledger needs. */
  readonly dataDir: string;
}

/** `svc-gate migrate`: brings the schema of a database up to this version, while gates are serving from it. */
export async function migrateCommand({
  databaseUrl,
  role,
  firstKey,
  dataDir,
}: MigrateCommandOptions): Promise<Outcome> {
  if (databaseUrl === undefined)
    throw new BadInput("no database is named: set SVC_DATABASE_URL, or give --database-url postgres://...");
  // Refuses before anything is created: a ledger without its first key would leave an unused signing key.
  if (firstKey !== undefined)
    await access(dirname(firstKey), constants.W_OK).catch((error: unknown) => {
      throw notWritten(firstKey, error);
    });
  const run = await migratePostgres({ url: databaseUrl, servingRole: role });
  const done =
    run.length === 0 ? "the schema is up to date" : `ran ${run.map((number) => `migration ${number}`).join(", ")}`;
  const schema = role === undefined ? done : `${done}; the role "${role}" may serve from it`;
  if (firstKey === undefined) return { exitCode: 0, text: schema };
  return { exitCode: 0, text: `${schema}\n${await firstKeyOf({ databaseUrl, dataDir, file: firstKey })}` };
}

/** @returns the result for the first key, in one sentence that does not contain the key */
async function firstKeyOf({
  databaseUrl,
  dataDir,
  file,
}: Readonly<Record<"databaseUrl" | "dataDir" | "file", string>>): Promise<string> {
  if (io().env["SVC_API_KEY"]) return `SVC_API_KEY is the first key, so ${file} was not written`;
  // A new ledger gets a signing key, so a bad file is refused before the ledger is created.
  const fault = firstKeyFileFault(file);
  if (fault !== undefined && !(await hasLedger(databaseUrl))) throw new BadInput(fault);
  return openOfflineKeys({ ...locateOffline(dataDir, null), databaseUrl, mayCreate: true }, async (ring) => {
    const made = await makeFirstKey(ring, file);
    if (!made.ok) throw new BadInput(made.problem.detail);
    if (made.value === undefined) return `the database already has a key, so ${file} was not written`;
    const signing = io().env["SVC_SIGNING_KEY"]
      ? ""
      : `; each gate needs ${dataFolder.signingKeyOf({ folder: dataDir })} too`;
    return `the first key is in ${file} (row ${made.value.seq} of the ledger records it)${signing}`;
  });
}

async function hasLedger(url: string): Promise<boolean> {
  try {
    await (await readSharedLedger({ url, ledger: dataFolder.ledgerIdOf(null) })).close();
    return true;
  } catch (error) {
    if (error instanceof LedgerRefused) return false;
    throw error;
  }
}
