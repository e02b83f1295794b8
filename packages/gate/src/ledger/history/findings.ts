import type { Mistake } from "../../../../core/src/record/entry/row.ts";
import { Unreadable } from "../errors.ts";

/** An error that carries a finding. */
export class BrokenHere extends Error {
  readonly broken: Mistake;

  constructor(broken: Mistake) {
    super(broken.problem);
    this.broken = broken;
  }
}

/** The finding that a store cannot be read from a row on. */
export function unreadable(seq: number, { message }: Unreadable): Mistake {
  return { seq, problem: "the ledger's file cannot be read from here on", expected: "a row", found: message };
}

/**
 * Runs a read of a walk, and throws damage as a finding.
 *
 * @param row the row to report if an entry cannot be read; or that of each key of the call
 * @throws {BrokenHere} if something cannot be read
 */
export async function reportDamageAt<Value>(
  row: number | readonly number[],
  read: () => Promise<Value>,
): Promise<Value> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    throw new BrokenHere(unreadable(typeof row === "number" ? row : (row[error.index] ?? 0), error));
  }
}

/** Runs a read, and returns a finding that it throws. */
export async function catchFinding<Value>(read: () => Promise<Value>): Promise<Mistake | Value> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof BrokenHere) return error.broken;
    throw error;
  }
}
