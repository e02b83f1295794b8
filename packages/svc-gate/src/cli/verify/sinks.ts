import { partings, readResume, type LedgerCheck, type LedgerHistory, type SeenHead } from "../../ledger/mod.ts";
import { parseLeaf, type Broken } from "../../ledger/entry/mod.ts";
import { rootAt } from "../../ledger/tree/mod.ts";
import type { LedgerSource } from "../ledger-source.ts";
import { areOthersNamed, othersOf } from "../others.ts";
import { BadInput } from "../outcome.ts";

/** A ledger that was walked, held against file sinks and collected checkpoints too. */
export interface HeldCheck {
  readonly check: LedgerCheck;
  /** Files are named, and none of them has a checkpoint of the ledger. */
  readonly isUnknown: boolean;
}

/**
 * Asks file sinks and collected checkpoints how far the ledger went, as a start, a restore and a resume do.
 *
 * @param walked what is broken in itself stays that
 * @param source is opened after the files were read, since the gate that serves the ledger goes on
 * @param files collected checkpoints; empty: the file that SVC_SEEN names
 * @throws {BadInput} where one cannot be asked
 */
export async function holdAgainstSinks(
  walked: LedgerCheck,
  { tenant, open }: LedgerSource,
  files: readonly string[],
): Promise<HeldCheck> {
  if (walked.broken !== undefined || !areOthersNamed(files)) return { check: walked, isUnknown: false };
  const seen = await ask(walked, tenant, files);
  if (seen.length === 0) return { check: walked, isUnknown: true };
  const ledger = await open();
  try {
    return { check: await held(walked, ledger, seen), isUnknown: false };
  } finally {
    await ledger.close();
  }
}

async function ask(
  { log, rows }: LedgerCheck,
  tenant: string | null,
  files: readonly string[],
): Promise<readonly SeenHead[]> {
  try {
    return await othersOf(tenant, files)(log);
  } catch (error) {
    if (error instanceof BadInput) throw new BadInput(`the ledger's ${rows} rows hold together, and ${error.message}`);
    throw error;
  }
}

async function held(walked: LedgerCheck, ledger: LedgerHistory, seen: readonly SeenHead[]): Promise<LedgerCheck> {
  const parted = await partings(ledger, seen);
  const stated = parted.length === 0 ? new Set() : await statedLost(ledger);
  const parting = parted.find((candidate) => !stated.has(idOf(candidate.seen)));
  if (parting !== undefined)
    return { ...walked, rows: ledger.rows, broken: await brokenBy(parting.seen, parting.is, ledger) };
  const there = seen.filter((head) => parted.every((candidate) => candidate.seen !== head));
  const anchors = [...(walked.anchored === undefined ? [] : [walked.anchored]), ...there];
  const furthest = anchors.toSorted((a, b) => b.seq - a.seq)[0];
  return { ...walked, anchored: furthest && { seq: furthest.seq, by: furthest.by } };
}

async function brokenBy(
  { by, root = "", seq }: SeenHead,
  is: "beyond" | "beside",
  { hashes, rows }: LedgerHistory,
): Promise<Broken> {
  if (is === "beside") {
    const problem = `the root of the tree is not the one that the ${by} has seen`;
    return { seq, problem, expected: root, found: (await rootAt(hashes, seq)).toString("base64") };
  }
  const problem = `rows are missing from the end: the ${by} has seen row ${seq}`;
  return { seq: rows + 1, problem, expected: `row ${seq}`, found: `row ${rows}` };
}

/** The heads that rows of `svc-gate resume` state lost: whoever has seen them has seen rows that were answered. */
async function statedLost(ledger: LedgerHistory): Promise<ReadonlySet<string>> {
  const stated = new Set<string>();
  for await (const rows of ledger.scan(1))
    for (const { leaf: text, evidence } of rows) {
      const leaf = parseLeaf(text);
      const lost = leaf && readResume(leaf, evidence);
      for (const [seq, root] of lost?.checkpoints ?? []) stated.add(idOf({ seq, root }));
    }
  return stated;
}

function idOf({ root, seq }: Pick<SeenHead, "root" | "seq">): string {
  return `${seq} ${root}`;
}
