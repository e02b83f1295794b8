/** The reason why nothing of a batch was kept. */
export type NotKeptWhy = "disk-full" | "unreachable" | "not-committed" | "forbidden";

/** Nothing of a batch was kept, and the ledger is unchanged. */
export class NotKept extends Error {
  readonly why: NotKeptWhy;
  constructor(why: NotKeptWhy, message: string) {
    super(message);
    this.why = why;
  }
}

/** An error that must stop the gate. A store must not treat it as a broken connection. */
export class Fault extends Error {}

/** A ledger that must not be served. The message names the problem and the remedy for the operator. */
export class LedgerRefused extends Error {}

/** The refusal of a ledger with a mistake in a row. */
export function damagedAt(seq: number, problem: string): LedgerRefused {
  return new LedgerRefused(
    `the ledger is damaged at row ${seq}: ${problem}; run \`svc-gate verify\`, and restore it from a backup`,
  );
}

/** A ledger that must exist and does not exist. Its name may be mistyped. */
export class NoLedger extends LedgerRefused {}

/** Data of a store that is damaged. Only a verification expects it; for everything else it is a fault. */
export class Unreadable extends Error {
  /** The index of the key that was read, among the keys of the call. */
  readonly index: number;
  constructor(message: string, index = 0) {
    super(message);
    this.index = index;
  }
}
