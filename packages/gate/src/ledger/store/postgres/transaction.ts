import { Client, DatabaseError, type ClientBase, type ClientConfig, type PoolClient } from "pg";
import { setTimeout as wait } from "node:timers/promises";
import type { Erasure } from "../../../../../core/src/record/entry/erasure.ts";
import { withoutParts } from "../../../../../core/src/record/entry/evidence.ts";
import { limits } from "../../../../../core/src/wire/mod.ts";
import type { StoredRepeat } from "../../../../../core/src/record/entry/repeat.ts";
import { entriesIn } from "./entries.ts";
import { frontierOf, headRow, sameHead, type HeadRow } from "./rows.ts";
import { keptApproval, openApprovals } from "./approvals.ts";
import { beginTransaction, explainError, rollBack, send, settleAll } from "./session.ts";
import { ask, commit, headColumns, insertions, rollback, withoutTimeout, type BoundStatement } from "./sql.ts";
import type { TreeNode } from "../../../../../core/src/record/tree/merkle.ts";
import { counterEntry } from "../checksums.ts";
import { storedValues, type Tables } from "../tables.ts";
import {
  toReservationRows,
  keepIn,
  queryFor,
  RunningTotals,
  takenRows,
  addReserved,
  withoutTaken,
  type EventRow,
  type KeptCounters,
  type TotalQuery,
} from "../running-totals.ts";
import { changeColumns, type StoredRow, type KeptApproval } from "../../../../../core/src/record/entry/row.ts";
import {
  repeatsDeletedMax,
  type ApprovalLookup,
  type ApprovalsFound,
  type CommitOptions,
  type InForce,
  type StoredEffect,
  type StoredLookup,
  type StoreTransaction,
} from "../store.ts";
import type { StoredCounter, StoredHead } from "../tables.ts";
import { Fault, NotKept } from "../../errors.ts";

export interface TransactionParts {
  readonly client: PoolClient;
  /** For the connection that finds the outcome of a lost COMMIT. */
  readonly config: ClientConfig;
  /** The time for finding the outcome, in milliseconds. */
  readonly settleMs: number;
  readonly ledger: string;
  readonly head: HeadRow;
  readonly at: number;
  /** When the first open approval ends, in milliseconds; infinite if none is open. */
  readonly nextEnd: number;
  readonly counters: KeptCounters;
  /** Receives the counters after the commit. */
  readonly kept: (version: number, counters: KeptCounters) => void;
}

/** A transaction that has the lock of the ledger's head. */
export class PostgresTransaction implements StoreTransaction {
  readonly #parts: TransactionParts;
  readonly at: number;
  readonly head: StoredHead | undefined;
  readonly changed: number;
  readonly inForce: InForce | undefined;
  readonly frontier: string | undefined;
  readonly signer: string | undefined;
  readonly hasApprovals: boolean;
  readonly tables: Pick<Tables, "where">;
  #counters: KeptCounters;
  #version: number;
  /** The number of events that folds in this transaction took back. */
  #taken = 0;
  #ended = false;
  readonly #totals = new RunningTotals();

  constructor(parts: TransactionParts) {
    const { head, at, counters } = parts;
    const { contract, mode, engine } = head;
    this.#parts = parts;
    this.#counters = counters;
    this.#version = head.counters;
    this.at = at;
    this.tables = {
      where: (table, column, values) =>
        this.#serially(() =>
          entriesIn((statement) => send(parts.client, statement), parts.ledger, { table, column, values }),
        ),
    };
    this.head = head.leaf === null ? undefined : { seq: head.seq, leaf: head.leaf };
    this.changed = head.changed;
    this.frontier = frontierOf(head);
    this.signer = head.signer ?? undefined;
    this.hasApprovals = head.approvals > 0;
    this.inForce = contract === null || mode === null || engine === null ? undefined : { contract, mode, engine };
  }

  async values(lookups: readonly StoredLookup[]): Promise<readonly (string | undefined)[]> {
    const counted = lookups.map((lookup) => queryFor(lookup, this.#counters));
    const known = counted.filter((lookup) => lookup !== undefined);
    if (known.length === 0) return lookups.map(() => undefined);
    const [found, reserved, taken] = await this.#serially(() =>
      Promise.all([
        this.#ask(known),
        this.hasApprovals ? this.#amounts("reserved", known) : [],
        this.#parts.head.withdrawals > 0 ? this.#amounts("taken", known) : [],
      ]),
    );
    const values = new Map(
      known.map((lookup, at) => [
        lookup,
        withoutTaken(addReserved(found[at] ?? "0", reserved[at] ?? []), taken[at] ?? []),
      ]),
    );
    return counted.map((lookup) => lookup && values.get(lookup));
  }

  /** Reads the amounts that are reserved, or that outcomes took back, in the window of each query. */
  async #amounts(of: "reserved" | "taken", queries: readonly TotalQuery[]): Promise<readonly (readonly string[])[]> {
    const { client, ledger } = this.#parts;
    const columns = [queries.map(({ id }) => id), queries.map(({ bytes }) => bytes), queries.map(({ after }) => after)];
    const found = Map.groupBy(await send(client, ask(of, ledger, ...columns)), ([nth]) => Number(nth));
    return queries.map((_query, index) => (found.get(index + 1) ?? []).map(([, amount]) => String(amount)));
  }

  async approvals(lookup: ApprovalLookup): Promise<ApprovalsFound> {
    const { client, ledger } = this.#parts;
    return this.#serially(() => openApprovals((statement) => send(client, statement), ledger, lookup, this.#counters));
  }

  /** Asks the database only if the time of an open approval is over. */
  async dueApprovals(at: number): Promise<readonly KeptApproval[]> {
    if (this.#parts.nextEnd > at) return [];
    const { client, ledger } = this.#parts;
    const found = await this.#serially(() => send(client, ask("dueApprovals", ledger, at)));
    return found.map(keptApproval);
  }

  /** Reads the sum of each query. `#totals` then has the latest total of each key. */
  async #ask(queries: readonly TotalQuery[]): Promise<readonly string[]> {
    const { client, ledger } = this.#parts;
    const ids = queries.map(({ id }) => id);
    const keys = queries.map(({ bytes }) => bytes);
    const afters = queries.map(({ after }) => Math.max(after, -1));
    const found = await send(client, ask("totals", ledger, ids, keys, afters));
    return queries.map((query, index) => {
      const [at, total, before] = found[index] ?? [];
      return this.#totals.sum(query, [at, total], () => before);
    });
  }

  async keepCounter(counter: StoredCounter, folded: readonly StoredEffect[]): Promise<void> {
    await this.#serially(() => this.#keep(counter, folded));
  }

  async #keep(counter: StoredCounter, folded: readonly StoredEffect[]): Promise<void> {
    const { client, ledger } = this.#parts;
    const { kept, added } = keepIn(this.#counters, counter, folded);
    this.#counters = new Map(this.#counters).set(kept.digest, kept);
    this.#version = this.#parts.head.counters + 1;
    await send(client, ask("keepCounter", ledger, ...storedValues("counters", counterEntry(kept))));
    const events = await this.#events(added, true);
    const reservations = insertions("holds", ledger, toReservationRows(added, this.#counters));
    const taken = takenRows(added, this.#counters, true);
    this.#taken += taken.length;
    const written = [
      ...insertions("effects", ledger, events),
      ...reservations,
      ...insertions("withdrawals", ledger, taken),
    ];
    await settleAll(written.map((statement) => send(client, statement)));
  }

  /** The rows of events. Asks the database only if `values` has not read all totals. */
  async #events(effects: readonly StoredEffect[], isFolded: boolean): Promise<readonly EventRow[]> {
    const missing = this.#totals.findMissing(effects, this.#counters);
    if (missing.length > 0) await this.#ask(missing);
    return this.#totals.add(effects, this.#counters, isFolded);
  }

  async commit(
    rows: readonly StoredRow[],
    effects: readonly StoredEffect[],
    options: CommitOptions = {},
  ): Promise<void> {
    const { inForce, tree, signer } = options;
    const { erasures = [], approvals = [], released = [], repeats = [], outcomes = [] } = options;
    const { head, ledger } = this.#parts;
    const next: HeadRow = {
      ...head,
      ...inForce,
      ...(tree === undefined
        ? {}
        : { frontier: `${head.seq + rows.length} ${tree.frontier}`, checkpoint: await tree.signed }),
      signer: signer ?? head.signer,
      seq: head.seq + rows.length,
      leaf: rows.at(-1)?.leaf ?? head.leaf,
      changed: rows.findLast(({ verdict }) => verdict === changeColumns.verdict)?.seq ?? head.changed,
      counters: this.#version,
      approvals: head.approvals + approvals.filter(({ seq }) => seq > head.seq).length,
      withdrawals: head.withdrawals + this.#taken + effects.filter(({ takenBy }) => takenBy !== undefined).length,
    };
    if (sameHead(head, next)) return this.abort();
    for (const erasure of erasures) await this.#erase(erasure);
    const written = [
      ...(released.length === 0 ? [] : [ask("release", ledger, [...released])]),
      ...(await this.#prepare(rows, effects, tree?.nodes ?? [], next)),
      ...approvals.map((each) => ask("keepApproval", ledger, ...storedValues("approvals", each))),
      ...keepRepeats(ledger, repeats),
      ...outcomes.map((each) => ask("keepOutcome", ledger, ...storedValues("outcomes", each))),
    ];
    await this.#end(written, next);
    this.#parts.kept(this.#version, this.#counters);
  }

  /** If a part cannot be erased, this aborts the transaction. */
  async #erase({ parts, rows }: Erasure): Promise<void> {
    const { client, ledger } = this.#parts;
    const write = parts.includes("call") ? "eraseWithCall" : "erase";
    try {
      const found = await settleAll(rows.map(([from, to]) => send(client, ask("checksIn", ledger, from, to))));
      const erased = found.flat().map(([seq, evidence]) => [seq, withoutParts(String(evidence), parts)]);
      await settleAll(erased.map((columns) => send(client, ask(write, ledger, ...columns))));
      const ended = rows.flatMap((range) => [
        ask("eraseApprovals", ledger, ...range),
        ask("eraseReservations", ledger, ...range),
      ]);
      await settleAll(ended.map((statement) => send(client, statement)));
    } catch (error) {
      await this.abort();
      const isForbidden = error instanceof DatabaseError && error.code === "42501";
      throw isForbidden ? new NotKept("forbidden", "the database's role may not erase") : explainError(error);
    }
  }

  /** The statements that write the batch. If this fails, it aborts the transaction. */
  async #prepare(
    rows: readonly StoredRow[],
    effects: readonly StoredEffect[],
    nodes: readonly TreeNode[],
    next: HeadRow,
  ): Promise<readonly BoundStatement[]> {
    const { head, ledger } = this.#parts;
    try {
      requireOrder(rows, head.seq);
      const inner = nodes.map(({ level, index, hash }) => [level, index, hash]);
      const receipts = rows.map((row) => storedValues("receipts", row));
      return [
        ...insertions("receipts", ledger, receipts),
        ...insertions("effects", ledger, await this.#events(effects, false)),
        ...insertions("holds", ledger, toReservationRows(effects, this.#counters)),
        ...insertions("withdrawals", ledger, takenRows(effects, this.#counters, false)),
        ...insertions("nodes", ledger, inner),
        ask("moveHead", ledger, ...headColumns.map((name) => next[name])),
      ];
    } catch (error) {
      await this.abort();
      throw explainError(error);
    }
  }

  /**
   * Writes and commits in one round trip. The answer COMMIT means that the batch is kept, and ROLLBACK that it is not.
   * After any other answer, or none, this finds the outcome.
   */
  async #end(written: readonly BoundStatement[], next: HeadRow): Promise<void> {
    const { client, head } = this.#parts;
    this.#ended = true;
    const outcome = await endTransaction(client, written);
    if (outcome.said === "COMMIT") return client.release();
    client.release(true);
    const isKept = outcome.said !== "ROLLBACK" && (await findOut(this.#parts, { from: head, to: next }));
    if (isKept) return;
    if (outcome.failed !== undefined) throw explainError(outcome.failed);
    throw new NotKept("not-committed", "the database was lost during the commit, and has nothing of it");
  }

  async abort(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    await rollBack(this.#parts.client);
  }

  /** Explains the errors of work before the COMMIT, which keeps nothing if it fails. */
  async #serially<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      throw explainError(error);
    }
  }
}

/** The statements that keep recorded answers and delete old ones. */
function keepRepeats(ledger: string, repeats: readonly StoredRepeat[]): readonly BoundStatement[] {
  const [first] = repeats;
  if (first === undefined) return [];
  const kept = repeats.map((repeat) => ask("keepRepeat", ledger, ...storedValues("repeats", repeat)));
  return [...kept, ask("deleteRepeats", ledger, first.at - limits.repeatWithinMs, repeatsDeletedMax)];
}

/** Rows must follow the locked head. Another order is a programmer's error. */
function requireOrder(rows: readonly StoredRow[], last: number): void {
  const stray = rows.find(({ seq }, at) => seq !== last + at + 1);
  if (stray !== undefined)
    throw new Fault(`row ${stray.seq} does not follow row ${last}: it is there already, or out of order`);
}

interface CommitOutcome {
  /** The command that the server has confirmed; undefined if the outcome is not certain. */
  readonly said: "COMMIT" | "ROLLBACK" | undefined;
  /** The server's error for a statement. */
  readonly failed: unknown;
}

/**
 * Sends the statements and the COMMIT, and waits for every answer. A warning with the COMMIT makes the outcome uncertain:
 * for example, the wait for a standby was cancelled. Other notices have the code of success.
 */
async function endTransaction(client: ClientBase, written: readonly BoundStatement[]): Promise<CommitOutcome> {
  let warned = false;
  const onNotice = ({ code }: { readonly code?: string | undefined }): void => void (warned ||= code !== "00000");
  client.on("notice", onNotice);
  const before = [...written.map((statement) => send(client, statement)), client.query(withoutTimeout)];
  const [answer, ...answers] = await Promise.allSettled([client.query(commit), ...before]);
  client.off("notice", onNotice);
  const failed: unknown = answers.find((each) => each.status === "rejected")?.reason;
  const said = answer.status === "fulfilled" ? answer.value.command : undefined;
  if (said === "COMMIT" && failed === undefined && !warned) return { said, failed };
  return { said: said === "ROLLBACK" ? said : undefined, failed: failed instanceof DatabaseError ? failed : undefined };
}

interface Move {
  readonly from: HeadRow;
  readonly to: HeadRow;
}

/**
 * Finds the outcome of a batch whose COMMIT was not answered. It looks for the last row under the head's lock, so that the
 * batch's transaction has ended. If the row exists, another transaction writes and commits, because the wait for a standby
 * may have been lost. The standby then has the batch too.
 *
 * @returns true if the batch was kept
 * @throws {Fault} if the outcome is not found in time
 */
async function findOut({ config, settleMs, ledger }: TransactionParts, move: Move): Promise<boolean> {
  const until = performance.now() + settleMs;
  for (let pause = 20; ; pause = Math.min(2 * pause, 200)) {
    try {
      return await lookUnderLock(config, ledger, move, until);
    } catch (error) {
      if (error instanceof UnknownCommit || performance.now() + pause > until) {
        const why = (error as Error).message;
        const problem = `the answer to a commit on the ledger "${ledger}" was lost, and what became of it cannot be told (${why})`;
        throw new Fault(`${problem}: nothing more is answered`, { cause: error });
      }
    }
    await wait(pause);
  }
}

class UnknownCommit extends Error {}

async function lookUnderLock(config: ClientConfig, ledger: string, move: Move, until: number): Promise<boolean> {
  const client = new Client({ ...config, query_timeout: Math.max(1, until - performance.now()) });
  client.on("error", () => undefined);
  try {
    await client.connect();
    const first = [ask("lockHead", ledger), ask("leafAt", ledger, move.to.seq)];
    const [head, leaf] = await beginTransaction(client, ledger, first);
    if (!isThere(move, head?.[0], leaf?.[0]?.[0])) {
      await client.query(rollback);
      return false;
    }
    const { said } = await endTransaction(client, [ask("touchHead", ledger)]);
    if (said !== "COMMIT") throw new Error("its standby does not confirm it");
    return true;
  } finally {
    client.end().catch(() => undefined);
  }
}

function isThere({ from, to }: Move, columns: readonly unknown[] | undefined, leaf: unknown): boolean {
  if (to.seq > from.seq) return leaf === to.leaf;
  if (columns === undefined) throw new UnknownCommit("the ledger is not in the database any more");
  const head = headRow(columns);
  if (sameHead(head, to)) return true;
  if (sameHead(head, from)) return false;
  throw new UnknownCommit("another gate has gone on since");
}
