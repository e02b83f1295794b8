import { parseSinks } from "../gate/mod.ts";
import { headOf, readCheckpoint, type AskOthers, type SeenHead } from "../ledger/mod.ts";
import { visible } from "../wire/mod.ts";
import { BadInput } from "./outcome.ts";

const askMs = 10_000;

/**
 * Who outside a data folder is asked how far a ledger went: the sinks that SVC_SINKS names, where they can be read, and
 * checkpoints in files, from wherever an operator has them.
 */
export function othersOf(tenant: string | null, files: readonly string[]): AskOthers {
  return async (log) => [...(await askSinks(tenant, log)), ...(await readFiles(files))];
}

async function askSinks(tenant: string | null, log: string): Promise<readonly SeenHead[]> {
  const sinks = parseSinks(process.env["SVC_SINKS"] ?? "");
  if (!sinks.ok) throw new BadInput(`SVC_SINKS: ${sinks.problem}`);
  const found: SeenHead[] = [];
  for (const { by, place, read } of sinks.value) {
    try {
      const kept = await read?.(tenant, log, AbortSignal.timeout(askMs));
      const head = kept && headOf(kept.note, by);
      if (head !== undefined) found.push(head);
    } catch (error) {
      throw new BadInput(
        `the ${by} ${visible(place)} cannot be asked how far the ledger went: ${visible(String(error))}`,
      );
    }
  }
  return found;
}

async function readFiles(files: readonly string[]): Promise<readonly SeenHead[]> {
  const heads: SeenHead[] = [];
  for (const file of files) {
    const head = await readCheckpoint(file);
    if (head === undefined) throw new BadInput(`there is no checkpoint ${visible(file)}`);
    heads.push({ ...head, by: `checkpoint ${visible(file)}`, file: undefined });
  }
  return heads;
}
