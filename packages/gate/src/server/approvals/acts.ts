import {
  actBody,
  applyAct,
  approvalText,
  isOpen,
  quorumOf,
  type Approval,
  type ApprovalAct,
  type Quorum,
} from "../../../../core/src/approvals/mod.ts";
import { foldApproval } from "../../../../core/src/record/entry/mod.ts";
import { Fault } from "../../ledger/errors.ts";
import type { AppendTransaction, StoredEffect } from "../../ledger/mod.ts";
import type { TimedTransaction } from "../policy/active-ledger.ts";
import type { ActivePolicy } from "../policy/active-policy.ts";
import { gateName } from "../policy/reserved-names.ts";
import { mayApprove, sharedVoice, type DecidedByPeople, type Deciders } from "./deciders.ts";

/** The amounts that open approvals reserve, by their rows. */
export type Reservations = ReadonlyMap<number, readonly StoredEffect[]>;

/** An act about approvals, and who did it. */
export interface OwnedAct {
  readonly act: ApprovalAct;
  /** The name of the key, or of the gate. */
  readonly by: string;
  readonly reason: string;
}

/** Counts the votes of an approval with the keys, people and groups of now. */
export function quorumNow(
  approval: DecidedByPeople & Pick<Approval, "votes">,
  deciders: Deciders,
  policy: ActivePolicy,
  now: number,
): Quorum {
  return quorumOf(approval.asking.needs, approval.votes, (vote) => {
    const voter = deciders.voter(vote.key, now);
    if (voter === undefined) return undefined;
    return mayApprove(sharedVoice(voter, approval, deciders), approval, policy) ? voter : undefined;
  });
}

/**
 * Appends the row of an act, and keeps the approvals as it leaves them.
 *
 * @param reservations of the approvals, which end with them; absent if it has ended already
 * @returns the approvals afterwards
 */
export function enact(
  { transaction, at }: TimedTransaction,
  { contract, mode }: Pick<ActivePolicy, "contract" | "mode">,
  { act, by, reason }: OwnedAct,
  { approvals, reservations }: { readonly approvals: readonly Approval[]; readonly reservations?: Reservations },
): readonly Approval[] {
  transaction.change({ act: act.act, at, body: actBody(act), by, contract, mode, reason: `Svc: ${reason}` });
  const row = { seq: transaction.head.seq, at, by };
  return approvals.map((approval) => {
    const after = applyAct(approval, act, row);
    if (after === undefined) throw new Fault(`the approval of row ${approval.row} cannot take ${act.act}`);
    if (reservations !== undefined && !isOpen(after)) transaction.release(after.row, reservations.get(after.row) ?? []);
    transaction.keepApproval(after);
    return after;
  });
}

/** Ends the approvals whose time is over with one row, and what they reserve with them. @returns them afterwards */
export async function endDue(timed: TimedTransaction, policy: ActivePolicy): Promise<readonly Approval[]> {
  const due = await timed.transaction.dueApprovals(timed.at);
  if (due.length === 0) return [];
  const rows = due.map(({ row }) => row).toSorted((a, b) => a - b);
  const { reservations } = await timed.transaction.approvals({ attaches: [], rows, keys: [], at: timed.at });
  const reason = due.length === 1 ? "an approval expired" : `${due.length} approvals expired`;
  const act = { act: { act: "approval.expire", rows }, by: gateName, reason } as const;
  return enact(timed, policy, act, { approvals: due, reservations: groupReservations(reservations) });
}

export function groupReservations(reservations: readonly StoredEffect[]): Reservations {
  return Map.groupBy(reservations, ({ seq }) => seq);
}

type FoundApprovals = Awaited<ReturnType<AppendTransaction["approvals"]>>;

/**
 * Folds approvals from their rows again before they are used. The table only says where to look.
 *
 * @param read what the look-up of the approvals read in this transaction
 */
export function requireRows(approvals: readonly Approval[], read: Pick<FoundApprovals, "kept" | "votes">): void {
  const rows = new Map([...read.kept.map(({ row }) => row), ...read.votes].map((row) => [row.seq, row]));
  for (const approval of approvals) {
    const numbers = [approval.row, ...approval.votes.map(({ row }) => row)];
    const folded = foldApproval(numbers.flatMap((row) => rows.get(row) ?? []));
    const isSame = folded !== undefined && boundText(folded) === boundText(approval);
    if (!isSame)
      throw new Fault(`the approval of row ${approval.row} is not what its rows say: restore the ledger from a backup`);
  }
}

/** Everything about an approval but how often it was asked. */
function boundText(approval: Approval): string {
  return approvalText({ ...approval, asked: 0, own: [], changed: 0 });
}
