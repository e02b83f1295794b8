import type { KeptCounters } from "../running-totals.ts";
import { voteRows } from "../../../../../core/src/record/entry/approval-rows.ts";
import type { ApprovalLookup, ApprovalsFound } from "../store.ts";
import type { KeptApproval } from "../../../../../core/src/record/entry/row.ts";
import { storedRow } from "./rows.ts";
import { settleAll } from "./session.ts";
import { ask } from "./sql.ts";
import { entriesIn, type StatementSender } from "./entries.ts";

/** An approval and the row that asked, from the columns of a statement. */
export function keptApproval(columns: readonly unknown[]): KeptApproval {
  return { row: storedRow(columns.slice(0, -1)), record: String(columns.at(-1)) };
}

/** Reads the approvals that a batch may meet, within a transaction of the caller. */
export async function openApprovals(
  send: StatementSender,
  ledger: string,
  { attaches, rows, keys, at }: ApprovalLookup,
  counters: KeptCounters,
): Promise<ApprovalsFound> {
  const digests = attaches.map((attach) => Buffer.from(attach, "hex"));
  const [ofCalls = [], named = [], denials = [], open = [], all = []] = await settleAll([
    send(ask("approvalsOfCalls", ledger, digests)),
    send(ask("approvalsAt", ledger, [...rows])),
    send(ask("denials", ledger, [...keys], at)),
    send(ask("openByKey", ledger, [...keys], at)),
    send(ask("openAll", ledger, at)),
  ]);
  const kept = new Map([...ofCalls, ...named, ...denials].map(keptApproval).map((each) => [each.row.seq, each]));
  const [votes, reservations] = await Promise.all([
    entriesIn(send, ledger, { table: "receipts", column: "seq", values: voteRows(kept.values()) }),
    entriesIn(send, ledger, { table: "holds", column: "seq", values: [...kept.keys()] }),
  ]);
  const counterOf = new Map([...counters.values()].map(({ id, digest }) => [id, digest]));
  return {
    kept: [...kept.values()],
    votes,
    reservations: reservations.map(({ counter, ...reservation }) => ({
      ...reservation,
      counter: counterOf.get(counter) ?? "",
    })),
    open: open.map(([key, place, count]) => [
      String(key),
      Buffer.from(place as Uint8Array).toString("hex"),
      Number(count),
    ]),
    all: Number(all[0]?.[0] ?? 0),
  };
}
