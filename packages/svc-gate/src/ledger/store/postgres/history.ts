import type { Pool } from "pg";
import { readApprovals } from "../../entry/approval-rows.ts";
import { leafHash } from "../../entry/leaf.ts";
import { keptApproval } from "./approvals.ts";
import { readCounters, storedOutcomeOf, storedRow, takenFor } from "./rows.ts";
import { beginOn, connect, readOne } from "./session.ts";
import { ask, commit, type BoundStatement } from "./sql.ts";
import {
  joinHashes,
  openHoldsOf,
  type DeliveryNotes,
  type EventPosition,
  type HistoryReader,
  type KeyNotes,
} from "../store.ts";
import type { StoredRow } from "../../entry/row.ts";

/** Rows of one slice of a long read, and characters, which limit memory if rows are large. */
export const slice = { rows: 512, characters: 1_000_000 } as const;

type Read = (...asked: readonly BoundStatement[]) => ReturnType<typeof readOne>;

/** Reads one ledger in a database, outside the transactions that add to it. */
export function historyOf(reads: Pool, ledger: string): HistoryReader {
  const read: Read = (...asked) => readOne(reads, ledger, ...asked);
  const counters = async (): Promise<ReturnType<typeof readCounters>> => {
    const [rows = []] = await read(ask("counters", ledger));
    return readCounters(rows);
  };
  const leaves = async (from: number, count: number): Promise<readonly string[]> => {
    const [rows = []] = await read(ask("leaves", ledger, from, from + count - 1));
    return rows.map(([leaf]) => String(leaf));
  };
  const nodes = async (level: number, from: number, count: number): Promise<readonly string[]> => {
    const [rows = []] = await read(ask("nodes", ledger, level, from, from + count - 1));
    return rows.map(([hash]) => Buffer.from(hash as Uint8Array).toString("hex"));
  };
  return {
    scan: (from) => scan(read, ledger, from),
    contractText: async (digest) => {
      const [rows] = await read(ask("contract", ledger, digest));
      return rows?.[0]?.[0] as string | undefined;
    },
    counters: async () => [...(await counters()).values()],
    totals: async (places) => {
      const kept = await counters();
      const ids = places.map(({ counter }) => kept.get(counter)?.id ?? -1);
      const [rows = []] = await read(ask("totalsBefore", ledger, ids, ...columnsOf(places)));
      const totals = rows as readonly (readonly (string | null)[])[];
      return places.map(({ counter }, index) => (kept.has(counter) ? (totals[index]?.[0] ?? "0") : undefined));
    },
    hashes: async (level, from, count) => {
      const hashes = level === 0 ? (await leaves(from + 1, count)).map(leafHash) : await nodes(level, from, count);
      return joinHashes(hashes, { level, from, count });
    },
    leaves,
    approvals: async ({ before, limit, statuses, key, session, rows: numbers }) => {
      const filters = [statuses ?? null, key ?? null, session ?? null, numbers ?? null];
      const [rows = []] = await read(ask("listApprovals", ledger, before, ...filters, limit));
      return readApprovals(rows.map(keptApproval));
    },
    outcomes: async (numbers) => {
      const [rows = []] = await read(ask("outcomesOf", ledger, [...numbers]));
      return rows.map(storedOutcomeOf);
    },
    taken: async (queries) => {
      const kept = await counters();
      const places = queries.map(({ counter, key, after, before }) => {
        return { id: kept.get(counter)?.id ?? -1, bytes: Buffer.from(key, "hex"), after, before };
      });
      return takenFor(places, async (...columns) => (await read(ask("taken", ledger, ...columns)))[0] ?? []);
    },
    rowsAt: async (numbers) => {
      const [rows = []] = await read(ask("rowsAt", ledger, [...numbers]));
      return rows.map(storedRow);
    },
    openHolds: async (rows) => {
      const [found = []] = await read(ask("openHolds", ledger, [...rows]));
      return openHoldsOf(found, [...(await counters()).values()]);
    },
    waiting: async (at) => {
      const [rows = []] = await read(ask("waitingApprovals", ledger, at));
      const [calls, late] = rows[0] ?? [];
      return { calls: Number(calls ?? 0), late: Number(late ?? 0) };
    },
  };
}

async function* scan(read: Read, ledger: string, from: number): AsyncGenerator<readonly StoredRow[]> {
  for (let next = from; ;) {
    const [found = []] = await read(ask("scan", ledger, next, slice.rows, slice.characters));
    const rows = found.map(storedRow);
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows;
    next = last.seq + 1;
  }
}

function columnsOf(places: readonly EventPosition[]): readonly (readonly (Buffer | number)[])[] {
  return [places.map(({ key }) => Buffer.from(key, "hex")), places.map(({ at }) => at), places.map(({ seq }) => seq)];
}

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
