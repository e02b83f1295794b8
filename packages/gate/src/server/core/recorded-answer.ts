import type { AppendTransaction } from "../../ledger/mod.ts";
import { answeredReason, type DecidedCheck } from "./answer.ts";

export type RepeatAnswer = Parameters<AppendTransaction["recordAnswer"]>[1];

/** Where the reason of the row belongs in a recorded reason. */
export const ownReason: string = "\0";

/** A check whose caller drew a `call_id`. */
export interface IdentifiedCheck {
  /** The digest of the key and the `call_id`. */
  readonly id: string;
  /** A keyed digest of the body, in hex. */
  readonly bodyDigest: string;
}

/** Records the answer of a decided check, in the transaction that decides it. */
export function recordAnswer(
  transaction: Pick<AppendTransaction, "recordAnswer">,
  { id, bodyDigest }: IdentifiedCheck,
  check: Omit<DecidedCheck, "receipt">,
  { row, at }: Pick<RepeatAnswer, "at" | "row">,
): void {
  const decision = { ...check.decision, reason: `Svc: ${ownReason}` };
  const approval = check.approval === undefined ? null : JSON.stringify(check.approval);
  transaction.recordAnswer(id, { row, at, bodyDigest, reason: answeredReason({ ...check, decision }), approval });
}
