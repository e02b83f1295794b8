import type { Change, AppendTransaction } from "../../ledger/mod.ts";
import type { Durable, Erasure, Receipt } from "../../ledger/entry/mod.ts";
import type { Canonical, Refusal, Result } from "../../wire/mod.ts";

/** A person's act on a gate: who, what in one word, what exactly, and in one sentence. */
export interface Act {
  readonly by: string;
  readonly act: string;
  readonly body: Canonical;
  readonly reason: string;
  /** What it erases, of rows before its own; the body says the same. */
  readonly erases?: Erasure | undefined;
}

/** Sees the transaction, and the moment of the row, before the act is appended. */
export type ActOf = (transaction: AppendTransaction, at: number) => Promise<Result<Act, Refusal>>;

/** What writes rows of persons' acts and reads them back. */
export interface Acts {
  /** Appends a row for an act that changes nothing of what is in force. */
  enact(actOf: ActOf): Promise<Result<Durable<Receipt>, Refusal>>;
  /** What people did since a row, oldest first. */
  changes(after: number): Promise<readonly Change[]>;
}
