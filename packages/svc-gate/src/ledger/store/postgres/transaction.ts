import { Client, DatabaseError, type ClientBase, type ClientConfig, type PoolClient } from "pg";
import { setTimeout as wait } from "node:timers/promises";
import { addDecimals } from "../../../wire/mod.ts";
import type { Erasure } from "../../entry/erasure.ts";
import { withoutParts } from "../../entry/evidence.ts";
import { frontierOf, headRow, sameHead, type Counters, type HeadRow } from "./rows.ts";
import { beginOn, explained, Fault, rollBack, send, settleAll } from "./session.ts";
import { ask, commit, insertions, rollback, withoutTimeout, type BoundStatement, type Value } from "./sql.ts";
import type { TreeNode } from "../../tree/merkle.ts";
import { countedAfter, counterChecksum, foldChecksum } from "../checksums.ts";
import type { KeptCounter } from "../store.ts";
import { NotKept } from "../store.ts";
import { changeColumns } from "../../entry/row.ts";
import type {
  CommitOptions,
  InForce,
  StoredCounter,
  StoredEffect,
  StoredHead,
  StoredLookup,
  StoreTransaction,
} from "../store.ts";
import type { StoredRow } from "../../entry/row.ts";

export interface TurnParts {
  readonly client: PoolClient;
  /** For the connection on which the outcome of a lost COMMIT is found out. */
  readonly config: ClientConfig;
  /** How long that may take, in milliseconds. */
  readonly settleMs: number;
  readonly ledger: string;
  readonly head: HeadRow;
  readonly at: number;
  readonly counters: Counters;
  /** Told the counters as the transaction left them, once they are kept. */
  readonly kept: (version: number, counters: Counters) => void;
}

/** A transaction that holds the lock of the ledger's head. */
export class PostgresTransaction implements StoreTransaction {
  readonly #parts: TurnParts;
  readonly at: number;
  readonly head: StoredHead | undefined;
  readonly changed: number;
  readonly inForce: InForce | undefined;
  readonly frontier: string | undefined;
  readonly signer: string | undefined;
  #counters: Counters;
  #version: number;
  #ended = false;
  /** The total of each counter's key that the transaction has come to. */
  readonly #totals = new Map<string, string | undefined>();

  constructor(parts: TurnParts) {
    const { head, at, counters } = parts;
    const { contract, mode, engine } = head;
    this.#parts = parts;
    this.#counters = counters;
    this.#version = head.counters;
    this.at = at;
    this.head = head.leaf === null ? undefined : { seq: head.seq, leaf: head.leaf };
    this.changed = head.changed;
    this.frontier = frontierOf(head);
    this.signer = head.signer ?? undefined;
    this.inForce = contract === null || mode === null || engine === null ? undefined : { contract, mode, engine };
  }

  async values(lookups: readonly StoredLookup[]): Promise<readonly (string | undefined)[]> {
    const counted = lookups.map((lookup) => this.#counted(lookup));
    const known = counted.filter((lookup) => lookup !== undefined);
    if (known.length === 0) return lookups.map(() => undefined);
    const found = await this.#inTurn(() => this.#ask(known));
    const values = new Map(known.map((lookup, at) => [lookup, sumAfter(found[at] ?? [], lookup.after)]));
    return counted.map((lookup) => lookup && values.get(lookup));
  }

  /** What the lookup counts; undefined where that is not known. */
  #counted(lookup: StoredLookup): StoredLookup | undefined {
    const kept = this.#counters.get(lookup.counter);
    if (kept === undefined || lookup.after < kept.unknownThrough) return undefined;
    return { ...lookup, after: countedAfter(lookup.after, kept) };
  }

  /** For each lookup the time and total of its latest event, and the total at its moment. */
  async #ask(lookups: readonly StoredLookup[]): Promise<readonly (readonly unknown[])[]> {
    const { client, ledger } = this.#parts;
    const ids = lookups.map(({ counter }) => this.#idOf(counter));
    const keys = lookups.map(({ key }) => Buffer.from(key, "hex"));
    const afters = lookups.map(({ after }) => Math.max(after, -1));
    const found = await send(client, ask("totals", ledger, ids, keys, afters));
    for (const [at, { counter, key }] of lookups.entries()) {
      const total = found[at]?.[1] as string | null | undefined;
      this.#totals.set(`${counter} ${key}`, total ?? undefined);
    }
    return found;
  }

  #idOf(counter: string): number {
    const kept = this.#counters.get(counter);
    if (kept === undefined) throw new Fault(`the ledger keeps no counter ${counter}`);
    return kept.id;
  }

  async keepCounter(counter: StoredCounter, folded: readonly StoredEffect[]): Promise<void> {
    await this.#inTurn(() => this.keep(counter, folded));
  }

  /**
   * What a fold found at or before the row through which the counter is kept is there already, and not added again. Of one
   * that is kept up with every row, what is known is as it is said: a reset makes it known again.
   */
  async keep(counter: StoredCounter, folded: readonly StoredEffect[]): Promise<void> {
    const { client, ledger } = this.#parts;
    const { digest, definition, unknownThrough } = counter;
    const known = this.#counters.get(digest);
    const held = known === undefined ? 0 : (known.through ?? Number.POSITIVE_INFINITY);
    const isLive = known?.through === null && counter.through === null;
    const added = folded.filter(({ seq }) => seq > held);
    const id = known?.id ?? Math.max(0, ...[...this.#counters.values()].map((kept) => kept.id)) + 1;
    const kept: KeptCounter = {
      id,
      digest,
      definition,
      through:
        counter.through === null || known?.through == null ? counter.through : Math.max(known.through, counter.through),
      unknownThrough: isLive ? unknownThrough : Math.max(unknownThrough, known?.unknownThrough ?? -1),
      resetThrough: Math.max(known?.resetThrough ?? -1, counter.resetThrough ?? -1),
      folded: (known?.folded ?? 0) + added.length,
    };
    this.#counters = new Map(this.#counters).set(digest, kept);
    this.#version = this.#parts.head.counters + 1;
    const { through, resetThrough } = kept;
    const numbers = [through, kept.unknownThrough, resetThrough, kept.folded];
    await send(client, ask("keepCounter", ledger, id, digest, definition, ...numbers, counterChecksum(kept)));
    const events = await this.#events(added, true);
    await settleAll(insertions("effects", ledger, events).map((asked) => send(client, asked)));
  }

  /** Each event carries the total up to it, so that a window of any length is two look-ups and a difference. */
  async #events(effects: readonly StoredEffect[], isFolded: boolean): Promise<readonly (readonly Value[])[]> {
    const unmet = new Map<string, StoredLookup>(
      effects.map(({ counter, key }) => [`${counter} ${key}`, { counter, key, after: -1 }] as const),
    );
    for (const id of this.#totals.keys()) unmet.delete(id);
    if (unmet.size > 0) await this.#ask([...unmet.values()]);
    return effects.map(({ counter, key, at, seq, amount }) => {
      const before = this.#totals.get(`${counter} ${key}`);
      const total = before === undefined ? amount : addDecimals(before, amount);
      this.#totals.set(`${counter} ${key}`, total);
      const under = Buffer.from(key, "hex");
      const checksum = isFolded ? foldChecksum({ counter, key: under, at, seq, total, before }) : null;
      return [this.#idOf(counter), under, at, seq, total, checksum];
    });
  }

  async commit(
    rows: readonly StoredRow[],
    effects: readonly StoredEffect[],
    { inForce, tree, signer, erasures = [] }: CommitOptions = {},
  ): Promise<void> {
    const { head } = this.#parts;
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
    };
    if (sameHead(head, next)) return this.abort();
    for (const erasure of erasures) await this.#erase(erasure);
    const written = await this.#prepare(rows, effects, tree?.nodes ?? [], next);
    await this.#end(written, next);
    this.#parts.kept(this.#version, this.#counters);
  }

  /** Where a part cannot be erased, the transaction has ended, and nothing of it is kept. */
  async #erase({ parts, rows }: Erasure): Promise<void> {
    const { client, ledger } = this.#parts;
    const write = parts.includes("call") ? "eraseWithCall" : "erase";
    try {
      const found = await settleAll(rows.map(([from, to]) => send(client, ask("checksIn", ledger, from, to))));
      const erased = found.flat().map(([seq, evidence]) => [seq, withoutParts(String(evidence), parts)]);
      await settleAll(erased.map((columns) => send(client, ask(write, ledger, ...columns))));
    } catch (error) {
      await this.abort();
      const isForbidden = error instanceof DatabaseError && error.code === "42501";
      throw isForbidden ? new NotKept("forbidden", "the database's role may not erase") : explained(error);
    }
  }

  /** What the batch writes. Where that cannot be said, the transaction has ended, and nothing of it is kept. */
  async #prepare(
    rows: readonly StoredRow[],
    effects: readonly StoredEffect[],
    nodes: readonly TreeNode[],
    next: HeadRow,
  ): Promise<readonly BoundStatement[]> {
    const { head, ledger } = this.#parts;
    try {
      requireOrder(rows, head.seq);
      const receipts = rows.map(({ seq, session, tool, verdict, leaf, evidence }) => {
        return [seq, session, tool, verdict, leaf, evidence];
      });
      const { seq, leaf, changed, counters, contract, mode, engine, frontier, checkpoint, signer } = next;
      const inner = nodes.map(({ level, index, hash }) => [level, index, hash]);
      const events = await this.#events(effects, false);
      return [
        ...insertions("receipts", ledger, receipts),
        ...insertions("effects", ledger, events),
        ...insertions("nodes", ledger, inner),
        ask("moveHead", ledger, seq, leaf, changed, counters, contract, mode, engine, frontier, checkpoint, signer),
      ];
    } catch (error) {
      await this.abort();
      throw explained(error);
    }
  }

  /**
   * Writes and commits on one way there and back. Kept is what says COMMIT, and not kept what says ROLLBACK; with any
   * other answer, or none, it is found out.
   */
  async #end(written: readonly BoundStatement[], next: HeadRow): Promise<void> {
    const { client, head } = this.#parts;
    this.#ended = true;
    const outcome = await endTransaction(client, written);
    if (outcome.said === "COMMIT") return client.release();
    client.release(true);
    const isKept = outcome.said !== "ROLLBACK" && (await findOut(this.#parts, { from: head, to: next }));
    if (isKept) return;
    if (outcome.failed !== undefined) throw explained(outcome.failed);
    throw new NotKept("not-committed", "the database was lost during the commit, and has nothing of it");
  }

  async abort(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    await rollBack(this.#parts.client);
  }

  /** Until its COMMIT is sent, whatever fails in a transaction keeps nothing. */
  async #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      throw explained(error);
    }
  }
}

/** A sum that a window holds: the latest total less the one at its beginning. */
function sumAfter(columns: readonly unknown[], after: number): string {
  const [at, total, before] = columns as readonly (string | null)[];
  if (typeof total !== "string" || Number(at) <= after) return "0";
  return typeof before !== "string" || after < 0 ? total : addDecimals(total, `-${before}`);
}

/** Rows follow the head that is locked; another order is a programmer's error. */
function requireOrder(rows: readonly StoredRow[], last: number): void {
  const stray = rows.find(({ seq }, at) => seq !== last + at + 1);
  if (stray !== undefined)
    throw new Fault(`row ${stray.seq} does not follow row ${last}: it is there already, or out of order`);
}

interface Outcome {
  /** The command that the server says it has done; undefined where that is not certain. */
  readonly said: "COMMIT" | "ROLLBACK" | undefined;
  /** What the server said against a statement. */
  readonly failed: unknown;
}

/**
 * Sends what is to be written and the COMMIT, and waits for every answer. A warning beside COMMIT makes it uncertain: such as
 * that the wait for a standby was cancelled. What is only said has the code of success.
 */
async function endTransaction(client: ClientBase, written: readonly BoundStatement[]): Promise<Outcome> {
  let warned = false;
  const onNotice = ({ code }: { readonly code?: string | undefined }): void => void (warned ||= code !== "00000");
  client.on("notice", onNotice);
  const before = [...written.map((asked) => send(client, asked)), client.query(withoutTimeout)];
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
 * Finds out what became of a batch whose COMMIT was not answered: under the head's lock, so that its transaction has
 * ended, is its last row there? What is there is then committed once more by a transaction that writes, so that it is
 * also wherever a COMMIT must be: the wait for a standby may have been what was lost.
 *
 * @throws a fault when it cannot be told within the bound
 */
async function findOut({ config, settleMs, ledger }: TurnParts, move: Move): Promise<boolean> {
  const until = performance.now() + settleMs;
  for (let pause = 20; ; pause = Math.min(2 * pause, 200)) {
    try {
      return await lookUnderLock(config, ledger, move, until);
    } catch (error) {
      if (error instanceof Untold || performance.now() + pause > until) {
        const why = (error as Error).message;
        const problem = `the answer to a commit on the ledger "${ledger}" was lost, and what became of it cannot be told (${why})`;
        throw new Fault(`${problem}: nothing more is answered`, { cause: error });
      }
    }
    await wait(pause);
  }
}

class Untold extends Error {}

async function lookUnderLock(config: ClientConfig, ledger: string, move: Move, until: number): Promise<boolean> {
  const client = new Client({ ...config, query_timeout: Math.max(1, until - performance.now()) });
  client.on("error", () => undefined);
  try {
    await client.connect();
    const first = [ask("lockHead", ledger), ask("leafAt", ledger, move.to.seq)];
    const [head, leaf] = await beginOn(client, ledger, first);
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
  if (columns === undefined) throw new Untold("the ledger is not in the database any more");
  const head = headRow(columns);
  if (sameHead(head, to)) return true;
  if (sameHead(head, from)) return false;
  throw new Untold("another gate has gone on since");
}
