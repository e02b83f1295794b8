import { randomBytes } from "node:crypto";
import { Worker } from "node:worker_threads";
import type { ClientConfig, Pool, PoolClient } from "pg";
import { setTimeout as wait } from "node:timers/promises";
import { WorkerCaller } from "../calls.ts";
import { deliveriesOf, keyNotesOf } from "./notes.ts";
import { headRow, ledgerSeal, readCounters } from "./rows.ts";
import { beginTransaction, connect, explainError, rollBack, send, transact } from "./session.ts";
import { ask, commit } from "./sql.ts";
import { PostgresTransaction } from "./transaction.ts";
import { inSteps, Steps, type InTurn } from "../steps.ts";
import { describedIn, postgresTables } from "./tables.ts";
import { walkStore } from "../../history/walk.ts";
import type { Tables } from "../tables.ts";
import type { KeptCounters } from "../running-totals.ts";
import { LedgerRefused, NoLedger, NotKept } from "../../errors.ts";
import type {
  DatabaseLedger,
  DeliveryNotes,
  KeyNotes,
  LedgerStore,
  OpenedStore,
  ScrubResult,
  StoredEffect,
  Verification,
} from "../store.ts";
import type { StoredCounter } from "../tables.ts";
import type { Anchor } from "../../../../../core/src/record/tree/walk.ts";

export interface Pools {
  readonly config: ClientConfig;
  /** The time for finding the outcome of a COMMIT, in milliseconds. */
  readonly settleMs: number;
  readonly transactions: Pool;
  /** A separate pool, so that no read delays a transaction. It is small, so that the server has time for transactions. */
  readonly reads: Pool;
}

interface PostgresStoreState {
  readonly opened: OpenedStore;
  readonly version: number;
  readonly counters: KeptCounters;
}

/** Opens the ledger with an id, or creates it. @throws {LedgerRefused} if it must not be served */
export async function openStore(pools: Pools, options: DatabaseLedger): Promise<LedgerStore> {
  const client = await connect(pools.transactions);
  try {
    const opening = await openOn(client, options);
    client.release();
    return new PostgresStore(pools, options.ledger, opening);
  } catch (error) {
    client.release(true);
    throw explainError(error);
  }
}

async function openOn(
  client: PoolClient,
  { ledger, log, mustExist = false }: DatabaseLedger,
): Promise<PostgresStoreState> {
  const find = ask("findLedger", ledger);
  let [found = []] = await beginTransaction(client, ledger, [find]);
  const secret = randomBytes(32).toString("hex");
  if (found.length === 0) {
    if (mustExist)
      throw new NoLedger(
        `the database has no ledger "${ledger}": check the name, or start its gate, which makes the ledger`,
      );
    const name = log ?? `svc-gate/${randomBytes(16).toString("hex")}`;
    await send(client, ask("addLedger", ledger, name, secret, ledgerSeal(ledger, name, secret)));
    found = await send(client, find);
  }
  const counters = readCounters(await send(client, ask("counters", ledger)));
  const { command } = await client.query(commit);
  if (command !== "COMMIT") throw new NotKept("not-committed", "the database did not keep the new ledger");
  const { log: name, counterSecret } = describedIn(ledger, found);
  const headFound = headRow((found[0] ?? []).slice(3));
  const { seq, leaf, changed, counters: version, signer } = headFound;
  const head = leaf === null ? undefined : { seq, leaf };
  // If two gates create it at once, the row has the secret of the one that succeeded.
  const created = counterSecret === secret;
  const opened = {
    log: name,
    created,
    counterSecret,
    head,
    changed,
    signer: signer ?? undefined,
    mode: headFound.mode ?? undefined,
    counters: [...counters.values()],
    hasApprovals: headFound.approvals > 0,
  };
  return { opened, version, counters };
}

/** A walk over more rows runs in its own thread, because hashing would delay checks. */
const tailRows = 2000;

class PostgresStore implements LedgerStore {
  readonly opened: OpenedStore;
  readonly tables: Tables;
  readonly keyNotes: KeyNotes;
  readonly deliveries: DeliveryNotes;
  readonly #pools: Pools;
  readonly #ledger: string;
  #counters: KeptCounters;
  #version: number;
  #room: { readonly at: number; readonly is: Promise<boolean> } | undefined;

  constructor(pools: Pools, ledger: string, { opened, version, counters }: PostgresStoreState) {
    this.#pools = pools;
    this.#ledger = ledger;
    this.opened = opened;
    this.#version = version;
    this.#counters = counters;
    this.tables = postgresTables((...statements) => transact(pools.reads, ledger, statements, true), ledger);
    this.keyNotes = keyNotesOf(pools.reads, ledger);
    this.deliveries = deliveriesOf(pools.reads, ledger);
  }

  async begin(): Promise<PostgresTransaction> {
    const ledger = this.#ledger;
    const client = await connect(this.#pools.transactions);
    try {
      const first = [ask("lockHead", ledger), ask("clock", ledger)];
      const [locked, clock] = await beginTransaction(client, ledger, first);
      const columns = locked?.[0];
      const [at, nextEnd] = clock?.[0] ?? [];
      if (columns === undefined) throw new LedgerRefused(`the ledger "${ledger}" is not in the database any more`);
      const head = headRow(columns);
      if (head.counters !== this.#version) {
        this.#counters = readCounters(await send(client, ask("counters", ledger)));
        this.#version = head.counters;
      }
      return new PostgresTransaction({
        client,
        config: this.#pools.config,
        settleMs: this.#pools.settleMs,
        ledger,
        head,
        at: Number(at),
        nextEnd: nextEnd === null ? Infinity : Number(nextEnd),
        counters: this.#counters,
        kept: (version, counters) => {
          this.#version = version;
          this.#counters = counters;
        },
      });
    } catch (error) {
      await rollBack(client);
      throw explainError(error);
    }
  }

  /** True if the database can be reached and written. Asks the database at most once a second. */
  hasRoom(): Promise<boolean> {
    const now = performance.now();
    if (this.#room === undefined || now - this.#room.at > 1000)
      this.#room = { at: now, is: isWritable(this.#pools.reads) };
    return this.#room.is;
  }

  async keepContract(digest: string, text: string): Promise<void> {
    const statements = [ask("keepContract", this.#ledger, digest, text), ask("contract", this.#ledger, digest)];
    const [, kept] = await transact(this.#pools.transactions, this.#ledger, statements, false);
    if (kept?.[0]?.[0] === text) return;
    throw new LedgerRefused(`the text of the contract ${digest} in the database is damaged: restore it from a backup`);
  }

  async keepCounter(counter: StoredCounter, folded: readonly StoredEffect[]): Promise<void> {
    const transaction = await this.begin();
    const known = this.#counters.get(counter.digest);
    // Another gate may have finished the same fold, so that every new row already updates the counter.
    const isLate = known !== undefined && known.through === null && counter.through !== null;
    try {
      if (!isLate) await transaction.keepCounter(counter, folded);
    } catch (error) {
      await transaction.abort();
      throw error;
    }
    await transaction.commit([], []);
  }

  async verify(from: number, anchors: readonly Anchor[], inTurn?: InTurn): Promise<Verification> {
    const walk = { from, anchors };
    const { rows } = await this.tables.head();
    if (!(rows - from > tailRows)) {
      const steps = new Steps((pause) => walkStore(this.tables, walk, pause));
      return inSteps(() => steps.next(), inTurn);
    }
    const walker = new WorkerCaller(new Worker(new URL("./walker.ts", import.meta.url)));
    try {
      await walker.call("start", this.#pools.config, this.#ledger, walk);
      return await inSteps<Verification>(() => walker.call("goOn"), inTurn);
    } finally {
      await walker.end();
    }
  }

  /** Old versions of rows stay until the owner of the table runs VACUUM. */
  scrub(): Promise<ScrubResult> {
    return Promise.resolve("vacuum");
  }

  /** The connections belong to the database and stay open. */
  close(): Promise<void> {
    return Promise.resolve();
  }
}

async function isWritable(pool: Pool): Promise<boolean> {
  const setting = pool.query<{ readonly: string }>("SELECT current_setting('transaction_read_only') AS readonly");
  const late = wait(2000, undefined, { ref: false });
  const answer = await Promise.race([setting, late]).catch(() => undefined);
  setting.catch(() => undefined);
  return answer?.rows[0]?.readonly === "off";
}
