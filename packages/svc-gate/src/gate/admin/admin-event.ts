import type { Approval } from "../../approvals/mod.ts";
import type { Change, AppendTransaction } from "../../ledger/mod.ts";
import type { Durable, Erasure, Receipt } from "../../ledger/entry/mod.ts";
import type { Canonical, Refusal, Result } from "../../wire/mod.ts";

/** An administrative event: the person, the kind of act, its details, and a sentence. */
export interface AdminEvent {
  readonly by: string;
  readonly act: string;
  readonly body: Canonical;
  readonly reason: string;
  /** The parts and the earlier rows that the event erases; `body` has the same. */
  readonly erases?: Erasure | undefined;
  /** The open approvals that the event ends. */
  readonly ends?: readonly Approval[] | undefined;
  /** The open approvals whose votes the event ends. */
  readonly reopens?: readonly Approval[] | undefined;
}

/** Makes the event from the transaction and the time of the row, before the event is appended. */
export type MakeAdminEvent = (transaction: AppendTransaction, at: number) => Promise<Result<AdminEvent, Refusal>>;

/** Appends rows of administrative events and reads them. */
export interface AdminEvents {
  /** Appends a row for an event that does not change the policy in force. */
  appendAdminEvent(makeEvent: MakeAdminEvent): Promise<Result<Durable<Receipt>, Refusal>>;
  /** The administrative events after a row, oldest first. */
  changes(after: number): Promise<readonly Change[]>;
}
