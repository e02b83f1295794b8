import { headOf, statedLosses, type Divergence } from "../../ledger/mod.ts";
import { rootAt, type HashReader } from "../../../../core/src/record/tree/mod.ts";
import { hashesOf, type AnchoredLog, type Head } from "./head.ts";
import { observedIn } from "./observed.ts";

/** Checkpoints in a file that somebody outside has collected. They may be of all ledgers of a gate, in any order. */
export interface CollectedCheckpoints {
  readonly file: string;
  /** Each is a whole signed note. */
  readonly notes: readonly string[];
}

/** A checkpoint of the ledger, read without its signatures. */
interface CollectedHead {
  readonly note: string;
  readonly size: number;
  /** Base64. */
  readonly root: string;
}

/**
 * Returns why the file is not of this gate, or undefined. It must have a checkpoint of the root, but not of each
 * tenant.
 */
export function strangeFile(
  { file, notes }: CollectedCheckpoints,
  name: string,
  tenant: string | null,
): string | undefined {
  if (tenant !== null || notes.some((note) => headIn(note, name) !== undefined)) return undefined;
  return `SVC_SEEN: ${file} has no checkpoint of the ledger ${name}: name the right file, or start once with --accept anchors`;
}

/**
 * Compares every checkpoint of the file with the ledger. A checkpoint that is not in the ledger is only accepted if a
 * row of `svc-gate resume` names it: the time of a checkpoint is unknown, and rows with the same numbers may be lost
 * twice.
 *
 * @returns the furthest checkpoint that is not in the ledger; a checkpoint signed by the ledger's key comes before any
 *   other
 */
export async function collectedDivergence(
  { file, notes }: CollectedCheckpoints,
  log: AnchoredLog,
  head: Head,
): Promise<readonly Divergence[]> {
  const absent = await absentFrom(log, head, notes);
  if (absent.length === 0) return [];
  const stated = statedLosses(await log.rows.changes(0));
  let best: Divergence | undefined;
  for (const { note, root, size } of absent.toSorted((a, b) => b.size - a.size)) {
    const observed = stated.names({ seq: size, root }) ? undefined : observedIn(note, log, `file ${file}`);
    if (observed === undefined) continue;
    const divergence: Divergence = { kind: size > head.size ? "truncated" : "forked", head: observed };
    if (observed.proof !== undefined) return [divergence];
    best ??= divergence;
  }
  return best === undefined ? [] : [best];
}

async function absentFrom(log: AnchoredLog, head: Head, notes: readonly string[]): Promise<readonly CollectedHead[]> {
  const read = cacheNodes(hashesOf(log));
  const isThere = new Map<string, boolean>();
  const absent: CollectedHead[] = [];
  for (const note of notes) {
    const said = headIn(note, log.name);
    if (said === undefined || said.size === 0) continue;
    const { root, size } = said;
    const id = idOf(size, root);
    const found = isThere.get(id) ?? (size <= head.size && (await rootAt(read, size)).toString("base64") === root);
    isThere.set(id, found);
    if (!found) absent.push(said);
  }
  return absent;
}

/**
 * Caches upper nodes, which trees of nearby sizes share, because a database is queried for each. Their last leaves
 * differ.
 */
function cacheNodes(read: HashReader): HashReader {
  const known = new Map<string, Promise<Buffer>>();
  return async (level, from, count) => {
    if (level === 0) return read(level, from, count);
    const id = `${level} ${from} ${count}`;
    const found = known.get(id) ?? Promise.resolve(read(level, from, count));
    known.set(id, found);
    return found;
  };
}

function headIn(note: string, name: string): CollectedHead | undefined {
  const said = headOf(note, "");
  return said?.log === name ? { note, size: said.seq, root: said.root ?? "" } : undefined;
}

function idOf(size: number, root: string): string {
  return `${size} ${root}`;
}
