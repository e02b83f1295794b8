import { resumeOf } from "../../ledger/mod.ts";
import { openCheckpoint, parseCheckpointText, parseNote, rootAt } from "../../ledger/tree/mod.ts";
import { hashesOf, type AnchoredLog, type Head } from "./head.ts";

/** How far somebody outside has seen a ledger. */
export interface Known {
  readonly size: number;
  /** Undefined where only a number was said. */
  readonly root?: Buffer;
  /** When it was seen, in milliseconds; undefined where that was not said. */
  readonly at?: number | undefined;
  /** The checkpoint, where a key of the ledger has signed it: then it was so. What was only said may be wrong, or a lie. */
  readonly proof?: string | undefined;
}

/** What a checkpoint says. */
export interface Seen extends Known {
  readonly root: Buffer;
}

/** What somebody knows is not in the ledger: rows are missing from its end, or other ones stand there. */
export interface Parting extends Known {
  readonly kind: "missing" | "other";
}

/** What a checkpoint says of a ledger; undefined where it says nothing of it. */
export function knownOf(note: string, { name, verifiers }: AnchoredLog, at?: number): Seen | undefined {
  const said = parseCheckpointText(parseNote(note)?.text ?? "");
  if (said === undefined || said.origin !== name) return undefined;
  const isSigned = openCheckpoint(note, verifiers).ok;
  return { size: said.size, root: said.root, at, proof: isSigned ? note : undefined };
}

/** Is what somebody knows in the ledger, missing from its end, or another than what stands there? */
export async function relationTo(log: AnchoredLog, head: Head, known: Known): Promise<"within" | Parting["kind"]> {
  const { size, root } = known;
  if (size > head.size) return "missing";
  if (root === undefined || size === 0) return "within";
  return root.equals(await rootAt(hashesOf(log), size)) ? "within" : "other";
}

/** @returns what somebody knows that is not in the ledger, and that no operator has stated lost */
export async function partingFrom(log: AnchoredLog, head: Head, known: Known): Promise<Parting | undefined> {
  const kind = await relationTo(log, head, known);
  return kind === "within" || (await isStatedLost(log, known)) ? undefined : { ...known, kind };
}

/**
 * Has an operator stated, in a row of `svc-gate resume`, that these rows were lost? What was seen after that row is none
 * of them, though it has their numbers.
 */
export async function isStatedLost(log: AnchoredLog, { size, root, at = 0 }: Known): Promise<boolean> {
  const seen = root?.toString("base64");
  return (await log.changes(0)).some(({ act, at: resumedAt, body }) => {
    const { lost: [from, to] = [1, 0], checkpoints = [] } = resumeOf(act, body) ?? {};
    const isNamed = checkpoints.some(([seq, its]) => seq === size && its === seen);
    return isNamed || (size >= from && size <= (to ?? Number.MAX_SAFE_INTEGER) && at <= resumedAt);
  });
}
