import type { Pool } from "pg";
import { transact } from "./session.ts";
import { ask, type BoundStatement } from "./sql.ts";
import type { DeliveryNotes, KeyNotes } from "../store.ts";

/** How far each endpoint of webhooks has got, in the database. */
export function deliveriesOf(reads: Pool, ledger: string): DeliveryNotes {
  /** Writes, and returns the note if the owner has the right to send afterwards. */
  const write = async (statement: BoundStatement, endpoint: string, owner: string): Promise<string | undefined> => {
    const [, rows] = await transact(reads, ledger, [statement, ask("deliveryOf", ledger, endpoint)], false);
    const [found, note] = rows?.[0] ?? [];
    return found === owner ? String(note) : undefined;
  };
  return {
    take: (endpoint, owner, ms, byForce = false) =>
      write(ask("takeDelivery", ledger, endpoint, owner, ms, byForce), endpoint, owner),
    keep: async (endpoint, owner, note) =>
      (await write(ask("keepDelivery", ledger, endpoint, owner, note), endpoint, owner)) !== undefined,
    all: async () => {
      const [rows = []] = await transact(reads, ledger, [ask("deliveries", ledger)], true);
      return new Map(rows.map(([endpoint, note]) => [String(endpoint), String(note)]));
    },
  };
}

/** Notes about keys, in the database. */
export function keyNotesOf(reads: Pool, ledger: string): KeyNotes {
  return {
    /** Each gate of a shared ledger receives its first key from its own setting. */
    keepFirst: () => Promise.resolve(),
    uses: async () => {
      const [rows = []] = await transact(reads, ledger, [ask("uses", ledger)], true);
      return new Map(rows.map(([name, at]) => [String(name), Number(at)]));
    },
    keepUses: async (uses) => {
      const notes = [...uses].map(([name, at]) => ask("keepUse", ledger, name, at));
      await transact(reads, ledger, notes, false).catch(() => undefined);
    },
  };
}
