import { createHash } from "node:crypto";
import { isOpen, noStops, type Approval } from "../../approvals/mod.ts";
import type { Counter } from "../../contract/mod.ts";
import { isSettled } from "../../gate/mod.ts";
import { AppendTransaction, type CounterLookup, type EventPosition } from "../../ledger/mod.ts";
import type { StoredRow } from "../../ledger/entry/mod.ts";
import type { ApprovalQuery, StoredEffect } from "../../ledger/mod.ts";
import { Frontier } from "../../ledger/tree/mod.ts";
import { addDecimals, isVerdict } from "../../wire/mod.ts";
import { InMemoryCounters } from "../in-memory-counters.ts";

type StoreTransaction = ConstructorParameters<typeof AppendTransaction>[0]["store"];
type CommitOptions = NonNullable<Parameters<StoreTransaction["commit"]>[2]>;
type StoredApproval = NonNullable<CommitOptions["approvals"]>[number];
type StoredOutcome = NonNullable<CommitOptions["outcomes"]>[number];
type ApprovalLookup = Parameters<StoreTransaction["approvals"]>[0];
type KeptApprovals = Awaited<ReturnType<StoreTransaction["dueApprovals"]>>;

/**
 * The ledger of one test case, in memory. Its transactions are those of the gate's ledger, and it answers them as a
 * store does. Nothing outlives the case, and no head is signed.
 */
export class CaseLedger {
  readonly isShared = false;
  readonly #engine: string;
  readonly #counterOf: (digest: string) => Counter;
  readonly #given: (counter: Counter) => string;
  readonly #counters = new InMemoryCounters();
  readonly #rows = new Map<number, StoredRow>();
  readonly #approvals = new Map<number, StoredApproval>();
  readonly #holds = new Map<number, readonly StoredEffect[]>();
  /** The last outcomes of calls, by the rows of their checks. */
  readonly #outcomes = new Map<number, StoredOutcome>();
  /** The events of the counters that outcomes may change. */
  readonly #events: StoredEffect[] = [];
  #head = { seq: 0, hash: "0".repeat(64), at: 0 };
  #tree = new Frontier();
  #lastCheck: StoredRow | undefined;

  /**
   * @param counterOf the counter with a digest
   * @param given the value of a counter before the first call, a decimal
   */
  constructor(engine: string, counterOf: (digest: string) => Counter, given: (counter: Counter) => string) {
    this.#engine = engine;
    this.#counterOf = counterOf;
    this.#given = given;
  }

  /** The row of the last call. */
  get lastCheck(): StoredRow | undefined {
    return this.#lastCheck;
  }

  /** The amounts that each row holds now. */
  get holds(): ReadonlyMap<number, readonly StoredEffect[]> {
    return new Map(this.#holds);
  }

  /** Keeps the row of a call, because an outcome reads it. */
  keep(row: StoredRow): void {
    this.#rows.set(row.seq, row);
  }

  begin(): WatchedTransaction {
    return new WatchedTransaction({
      head: this.#head,
      tree: this.#tree.copy(),
      sign: () => "",
      log: "test",
      engine: this.#engine,
      store: this.#store(),
      stops: noStops,
      grants: [],
      digest: digestOfText,
      counterOf: (counter) => ({ ...counter, digest: "" }),
      committed: ({ head, tree }) => {
        this.#head = head;
        this.#tree = tree;
      },
    });
  }

  /** Reads the approvals of some rows. */
  async approvals({ rows = [] }: Pick<ApprovalQuery, "rows">): Promise<readonly Approval[]> {
    return (await this.begin().approvals({ attaches: [], rows, keys: [], at: 0 })).approvals;
  }

  /** The total of a counter's events before each place, whether or not they were taken back. */
  totals(places: readonly EventPosition[]): Promise<readonly string[]> {
    const isBefore = (event: EventPosition, { counter, key, at, seq }: EventPosition): boolean =>
      event.counter === counter && event.key === key && (event.at < at || (event.at === at && event.seq < seq));
    const totalAt = (place: EventPosition): string =>
      this.#events.reduce((sum, event) => (isBefore(event, place) ? addDecimals(sum, event.amount) : sum), "0");
    return Promise.resolve(places.map(totalAt));
  }

  #store(): StoreTransaction {
    const resolved = Promise.resolve();
    return {
      head: undefined,
      changed: 0,
      inForce: undefined,
      frontier: undefined,
      signer: undefined,
      at: undefined,
      hasApprovals: this.#approvals.size > 0,
      values: (lookups) => Promise.resolve(lookups.map((lookup) => this.#value(lookup))),
      approvals: (lookup) => Promise.resolve(this.#find(lookup)),
      dueApprovals: (at) => Promise.resolve(this.#kept((each) => isOpen(each) && !isAfter(each, at))),
      rowsAt: (rows) => Promise.resolve(rows.flatMap((row) => this.#rows.get(row) ?? [])),
      keepCounter: () => resolved,
      commit: (rows, effects, options) => {
        this.#commit(rows, effects, options);
        return resolved;
      },
      outcomes: (rows) => Promise.resolve(rows.flatMap((row) => this.#outcomes.get(row) ?? [])),
      repeats: () => Promise.resolve([]),
      abort: () => resolved,
    };
  }

  #value({ counter: digest, key, after }: CounterLookup): string {
    const counter = this.#counterOf(digest);
    return addDecimals(this.#counters.value({ counter, key, after }), this.#given(counter));
  }

  #commit(rows: readonly StoredRow[], effects: readonly StoredEffect[], options: CommitOptions = {}): void {
    const { approvals = [], released = [], outcomes = [] } = options;
    const opened = new Set(approvals.map(({ row }) => row));
    // The rows of other checks are read only for an outcome. The row of an event has no verdict.
    for (const row of rows) if (opened.has(row.seq) || !isVerdict(row.verdict)) this.#rows.set(row.seq, row);
    this.#lastCheck = rows.findLast(({ verdict }) => isVerdict(verdict)) ?? this.#lastCheck;
    for (const effect of effects) {
      const { key, amount, at, seq, held, takenBy } = effect;
      const update = { counter: this.#counterOf(effect.counter), key, amount };
      if (held === true) this.#counters.hold(seq, [update], at);
      else if (takenBy !== undefined) this.#counters.take(update, at);
      else {
        this.#counters.add(update, at);
        if (isSettled(update.counter)) this.#events.push(effect);
      }
    }
    for (const effect of effects)
      if (effect.held === true) this.#holds.set(effect.seq, [...(this.#holds.get(effect.seq) ?? []), effect]);
    for (const row of released) {
      this.#counters.release([row, row]);
      this.#holds.delete(row);
    }
    for (const approval of approvals) this.#approvals.set(approval.row, approval);
    for (const outcome of outcomes) this.#outcomes.set(outcome.seq, outcome);
  }

  #find({ attaches, rows, keys, at }: ApprovalLookup): Awaited<ReturnType<StoreTransaction["approvals"]>> {
    const kept = this.#kept(
      (each) =>
        rows.includes(each.row) ||
        (attaches.includes(each.attach) && each.ends !== null) ||
        (keys.includes(each.key) && each.status === "denied" && isAfter(each, at)),
    );
    const open = [...this.#approvals.values()].filter((each) => isOpen(each) && isAfter(each, at));
    const votes = kept.flatMap(({ record }) => (JSON.parse(record) as Pick<Approval, "votes">).votes);
    return {
      kept,
      votes: votes.flatMap(({ row }) => this.#rows.get(row) ?? []),
      holds: kept.flatMap(({ row }) => this.#holds.get(row.seq) ?? []),
      open: open.filter(({ key }) => keys.includes(key)).map(({ key, place }) => [key, place, 1] as const),
      all: open.length,
    };
  }

  #kept(isWanted: (approval: StoredApproval) => boolean): KeptApprovals {
    return [...this.#approvals.values()].filter(isWanted).flatMap(({ row: seq, record }) => {
      const row = this.#rows.get(seq);
      return row === undefined ? [] : [{ row, record }];
    });
  }
}

/** A transaction that remembers the values of counters that a decision asked for, in order. */
export class WatchedTransaction extends AppendTransaction {
  readonly seen: (string | undefined)[] = [];

  override value(lookup: CounterLookup): string | undefined {
    const value = super.value(lookup);
    this.seen.push(value);
    return value;
  }
}

function isAfter({ ends }: StoredApproval, at: number): boolean {
  return ends !== null && ends > at;
}

function digestOfText(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
