import type { Pool } from "pg";
import { beginOn, connect, readOne } from "./session.ts";
import { ask, commit, type BoundStatement } from "./sql.ts";
import type { DeliveryNotes, KeyNotes } from "../store.ts";

/** How far each endpoint of webhooks has got, in the database. */
export function deliveriesOf(reads: Pool, ledger: string): DeliveryNotes {
  /** Writes, and returns the note if the owner has the right to send afterwards. */
  const write = async (asked: BoundStatement, endpoint: string, owner: string): Promise<string | undefined> => {
    const client = await connect(reads);
    try {
      const [, rows] = await beginOn(client, ledger, [asked, ask("deliveryOf", ledger, endpoint)]);
      await client.query(commit);
      client.release();
      const [found, note] = rows?.[0] ?? [];
      return found === owner ? String(note) : undefined;
    } catch (error) {
      client.release(true);
      throw error;
    }
  };
  return {
    take: (endpoint, owner, ms, byForce = false) =>
      write(ask("takeDelivery", ledger, endpoint, owner, ms, byForce), endpoint, owner),
    keep: async (endpoint, owner, note) =>
      (await write(ask("keepDelivery", ledger, endpoint, owner, note), endpoint, owner)) !== undefined,
    all: async () => {
      const [rows = []] = await readOne(reads, ledger, ask("deliveries", ledger));
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
      const [rows = []] = await readOne(reads, ledger, ask("uses", ledger));
      return new Map(rows.map(([name, at]) => [String(name), Number(at)]));
    },
    keepUses: async (uses) => {
      const client = await connect(reads).catch(() => undefined);
      if (client === undefined) return;
      const notes = [...uses].map(([name, at]) => ask("keepUse", ledger, name, at));
      try {
        await beginOn(client, ledger, notes);
        await client.query(commit);
        client.release();
      } catch {
        client.release(true);
      }
    },
  };
}
