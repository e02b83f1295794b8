import type { KeptCounters } from "../running-totals.ts";
import { voteRows } from "../../entry/approval-rows.ts";
import type { ApprovalLookup, ApprovalsFound } from "../store.ts";
import type { KeptApproval } from "../../entry/row.ts";
import { storedRow } from "./rows.ts";
import { settleAll } from "./session.ts";
import type { ask } from "./sql.ts";

type Send = (...asked: Parameters<typeof ask>) => Promise<readonly (readonly unknown[])[]>;

/** An approval and the row that asked, from the columns of a statement. */
export function keptApproval(columns: readonly unknown[]): KeptApproval {
  return { row: storedRow(columns.slice(0, -1)), record: String(columns.at(-1)) };
}

/** Reads the approvals that a batch may meet, within a transaction of the caller. */
export async function openApprovals(
  send: Send,
  ledger: string,
  { attaches, rows, keys, at }: ApprovalLookup,
  counters: KeptCounters,
): Promise<ApprovalsFound> {
  const digests = attaches.map((attach) => Buffer.from(attach, "hex"));
  const [ofCalls = [], named = [], denials = [], open = [], all = []] = await settleAll([
    send("approvalsOfCalls", ledger, digests),
    send("approvalsAt", ledger, [...rows]),
    send("denials", ledger, [...keys], at),
    send("openByKey", ledger, [...keys], at),
    send("openAll", ledger, at),
  ]);
  const kept = new Map([...ofCalls, ...named, ...denials].map(keptApproval).map((each) => [each.row.seq, each]));
  const votes = voteRows(kept.values());
  const [found = [], voted = []] = await settleAll([
    ...(kept.size === 0 ? [] : [send("holdsOf", ledger, [...kept.keys()])]),
    ...(votes.length === 0 ? [] : [send("rowsAt", ledger, [...votes])]),
  ]);
  const counterOf = new Map([...counters.values()].map(({ id, digest }) => [id, digest]));
  return {
    kept: [...kept.values()],
    votes: voted.map(storedRow),
    holds: found.map(([counter, key, when, seq, amount]) => ({
      seq: Number(seq),
      at: Number(when),
      counter: counterOf.get(Number(counter)) ?? "",
      key: Buffer.from(key as Uint8Array).toString("hex"),
      amount: String(amount),
    })),
    open: open.map(([key, place, count]) => [
      String(key),
      Buffer.from(place as Uint8Array).toString("hex"),
      Number(count),
    ]),
    all: Number(all[0]?.[0] ?? 0),
  };
}
