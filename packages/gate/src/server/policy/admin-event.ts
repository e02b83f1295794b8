import type { AppendTransaction } from "../../ledger/mod.ts";
import type { Durable, Receipt } from "../../../../core/src/record/entry/mod.ts";
import type { Refusal, Result } from "../../../../core/src/wire/mod.ts";

type ChangeRow = Parameters<AppendTransaction["change"]>[0];

/** An administrative event: its row, without the time and the policy, which the transaction adds. */
export interface AdminEvent extends Omit<ChangeRow, "at" | "contract" | "mode"> {
  /** Events that are recorded before this one, in the same transaction. */
  readonly first?: readonly AdminEvent[] | undefined;
}

/** Makes the event from the transaction and the time of the row, before the event is appended. */
export type MakeAdminEvent = (transaction: AppendTransaction, at: number) => Promise<Result<AdminEvent, Refusal>>;

/** Appends rows of administrative events. */
export interface AdminEvents {
  /** Appends a row for an event that does not change the policy in force. */
  appendAdminEvent(makeEvent: MakeAdminEvent): Promise<Result<Durable<Receipt>, Refusal>>;
}
