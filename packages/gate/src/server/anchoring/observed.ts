import { divergenceOf, headOf, statedLosses, type Divergence, type ObservedHead } from "../../ledger/mod.ts";
import { openCheckpoint } from "../../../../core/src/record/tree/mod.ts";
import { hashesOf, type AnchoredLog, type Head } from "./head.ts";

/** The head that a checkpoint shows, with a proof if a key of the ledger has signed it; undefined if it is of another ledger. */
export function observedIn(
  note: string,
  { name, verifiers }: AnchoredLog,
  by: string,
  at?: number,
): ObservedHead | undefined {
  const head = headOf(note, by);
  if (head?.log !== name) return undefined;
  return { ...head, at, proof: openCheckpoint(note, verifiers).ok ? note : undefined };
}

/** How a ledger differs from an observed head; undefined if it has that head. */
export function findDivergenceKind(
  log: AnchoredLog,
  { size }: Head,
  observed: ObservedHead,
): Promise<Divergence["kind"] | undefined> {
  return divergenceOf({ rows: size, hashes: hashesOf(log) }, observed);
}

/** The divergence from an observed head, unless an operator has stated the rows lost. */
export async function unstatedDivergence(
  log: AnchoredLog,
  head: Head,
  observed: ObservedHead,
): Promise<Divergence | undefined> {
  const kind = await findDivergenceKind(log, head, observed);
  return kind === undefined || (await isStatedLost(log, observed)) ? undefined : { kind, head: observed };
}

/** Returns true if an operator has stated the rows lost, in a row of `svc-gate resume`. */
export async function isStatedLost(log: AnchoredLog, observed: ObservedHead): Promise<boolean> {
  return statedLosses(await log.rows.changes(0)).covers(observed);
}
