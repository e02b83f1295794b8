import type { RecordedChange } from "../../ledger/mod.ts";
import { openCheckpoint, type HashReader, type VerifierKey } from "../../../../core/src/record/tree/mod.ts";

/** The part of a ledger that its anchors see. */
export interface AnchoredLog {
  /** The origin of its checkpoints. */
  readonly name: string;
  /** The keys that sign for it now. */
  readonly verifiers: readonly VerifierKey[];
  /** The latest signed head. */
  checkpoint(): Promise<string>;
  /** Reads hashes of the tree, up to that head. */
  hashes(...range: Parameters<HashReader>): ReturnType<HashReader>;
  readonly rows: { changes(after: number): Promise<readonly Pick<RecordedChange, "act" | "at" | "body">[]> };
}

export function hashesOf(log: AnchoredLog): HashReader {
  return (level, from, count) => log.hashes(level, from, count);
}

/** A signed head of a ledger. */
export interface Head {
  readonly note: string;
  readonly size: number;
  readonly root: Buffer;
}

/**
 * Reads the head as it is now.
 *
 * @throws if the ledger cannot be read, or the checkpoint is not its own
 */
export async function readHead(log: AnchoredLog): Promise<Head> {
  const note = await log.checkpoint();
  const opened = openCheckpoint(note, log.verifiers);
  if (!opened.ok || opened.value.origin !== log.name)
    throw new Error(
      `the checkpoint of "${log.name}" is not valid: ${opened.ok ? "it has another origin" : opened.problem}`,
    );
  return { note, size: opened.value.size, root: opened.value.root };
}
