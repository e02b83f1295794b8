import type { KeptCounters } from "../running-totals.ts";
import type { ApprovalLookup, ApprovalsFound } from "../store.ts";
import { settleAll } from "./session.ts";
import type { ask } from "./sql.ts";

type Send = (...asked: Parameters<typeof ask>) => Promise<readonly (readonly unknown[])[]>;

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
  const records = new Map([...ofCalls, ...named, ...denials].map(([seq, record]) => [Number(seq), String(record)]));
  const found = records.size === 0 ? [] : await send("holdsOf", ledger, [...records.keys()]);
  const counterOf = new Map([...counters.values()].map(({ id, digest }) => [id, digest]));
  return {
    records: [...records.values()],
    holds: found.map(([counter, key, when, seq, amount]) => ({
      seq: Number(seq),
      at: Number(when),
      counter: counterOf.get(Number(counter)) ?? "",
      key: Buffer.from(key as Uint8Array).toString("hex"),
      amount: String(amount),
    })),
    open: open.map(([key, session, count]) => [String(key), session as string | null, Number(count)]),
    all: Number(all[0]?.[0] ?? 0),
  };
}
