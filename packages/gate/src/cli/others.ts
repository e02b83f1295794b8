import { parseSinks } from "../server/mod.ts";
import { headOf, readCollected, type AskOthers, type ObservedHead } from "../ledger/mod.ts";
import { LedgerRefused } from "../ledger/errors.ts";
import { visible } from "../../../core/src/wire/mod.ts";
import { io } from "./io.ts";
import { BadInput } from "./outcome.ts";

/**
 * Asks anchors outside the data folder how far a ledger went: the file sinks of SVC_SINKS, and files of collected
 * checkpoints.
 *
 * @param files undefined or empty: the file that SVC_SEEN names
 */
export function othersOf(tenant: string | null, files: readonly string[]): AskOthers {
  return async (log) => [...(await askSinks(tenant, log)), ...(await readFiles(files, tenant, log))];
}

/** Does a setting or an option name an anchor? */
export function areOthersNamed(files: readonly string[]): boolean {
  return files.length > 0 || Boolean(io().env["SVC_SINKS"]) || Boolean(io().env["SVC_SEEN"]);
}

async function askSinks(tenant: string | null, log: string): Promise<readonly ObservedHead[]> {
  const sinks = parseSinks(io().env["SVC_SINKS"] ?? "");
  if (!sinks.ok) throw new BadInput(`SVC_SINKS: ${sinks.problem}`);
  const found: ObservedHead[] = [];
  for (const { by, address, read } of sinks.value) {
    try {
      const kept = await read(tenant, log);
      const head = kept && headOf(kept.note, by);
      if (head !== undefined) found.push(head);
    } catch (error) {
      throw new BadInput(
        `the ${by} ${visible(address)} cannot be read, so it is unknown how far the ledger went: ${visible((error as Error).message)}`,
      );
    }
  }
  return found;
}

async function readFiles(
  files: readonly string[],
  tenant: string | null,
  log: string,
): Promise<readonly ObservedHead[]> {
  const all = files.length > 0 ? files : [io().env["SVC_SEEN"] ?? ""].filter(Boolean);
  const heads = new Map<string, ObservedHead>();
  for (const file of all) {
    const found = (await readNotes(file)).flatMap((note) => headOf(note, `file ${visible(file)}`) ?? []);
    const own = found.filter((head) => head.log === log);
    // The file of a gate may contain checkpoints of the root, but not of every tenant.
    if (own.length === 0 && (files.length > 0 || tenant === null))
      throw new BadInput(`${visible(file)} has no checkpoint of the ledger ${log}: name the right file`);
    for (const head of own) heads.set(`${head.seq} ${head.root}`, head);
  }
  return [...heads.values()];
}

async function readNotes(file: string): Promise<readonly string[]> {
  try {
    return await readCollected(file);
  } catch (error) {
    if (error instanceof LedgerRefused) throw new BadInput(error.message);
    throw error;
  }
}
