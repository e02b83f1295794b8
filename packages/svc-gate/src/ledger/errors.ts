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

/** A ledger that must exist and does not exist. Its name may be mistyped. */
export class NoLedger extends LedgerRefused {}
