import type { Change } from "../../ledger/mod.ts";
import { openCheckpoint, type HashReader, type VerifierKey } from "../../ledger/tree/mod.ts";

/** A ledger, as far as those see it who anchor it. */
export interface AnchoredLog {
  /** The origin of its checkpoints. */
  readonly name: string;
  /** Keys that sign for it now. */
  readonly verifiers: readonly VerifierKey[];
  /** The latest signed head. */
  checkpoint(): Promise<string>;
  /** Hashes of the tree, as far as that head. */
  hashes(...asked: Parameters<HashReader>): ReturnType<HashReader>;
  /** What people did since a row. */
  changes(after: number): Promise<readonly Pick<Change, "act" | "at" | "body">[]>;
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

/** The head as it stands now. @throws where the ledger cannot be read, or signs what is not its own */
export async function readHead(log: AnchoredLog): Promise<Head> {
  const note = await log.checkpoint();
  const opened = openCheckpoint(note, log.verifiers);
  if (!opened.ok || opened.value.origin !== log.name)
    throw new Error(`the checkpoint of "${log.name}" is not one: ${opened.ok ? "another origin" : opened.problem}`);
  return { note, size: opened.value.size, root: opened.value.root };
}
