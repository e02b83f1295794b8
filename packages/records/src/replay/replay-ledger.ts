import { windowStart, type Counter, type PolicySet } from "../../../core/src/contract/mod.ts";
import {
  alignCounters,
  catchUp,
  counterDigest,
  countersOf,
  foldAhead,
  isSettled,
  type OwnedCounter,
  outcomeIn,
  recountRow,
  reportedCall,
  rowsBehind,
  settleCounters,
  type FoldSource,
  type OutcomeAtRow,
  type ReportedCall,
  type SettledCounter,
  type TotalSource,
} from "../../../gate/src/server/mod.ts";
import type { RecordedJudgement } from "../../../core/src/approvals/mod.ts";
import { readResume, resetThroughOf, type CounterLookup, type StoredEffect } from "../../../gate/src/ledger/mod.ts";
import { CounterTables, type Lookback } from "../memory/mod.ts";
import { eraseAct, readEffects, readErasure, wholeText, type Leaf } from "../../../core/src/record/entry/mod.ts";
import { rowsAt, rowsThrough, type History, type RecordedRow } from "../history.ts";
import { isOutcomeErased, OpenApprovals } from "./open-approvals.ts";
import { hasErasedPart, isAmount, movedCounters, readLeaf, recordedAt } from "./recorded.ts";

/** The longest time in which a contract lets an outcome be reported. */
export const outcomeMsMax: number = 90 * 86_400_000;

export interface ReplayLedgerOptions {
  /**
   * Called for a row that a counter which comes into force cannot count.
   *
   * @returns as in `FoldSource`; undefined if the counter lacks the row because it was erased, and else is unknown
   */
  readonly uncounted?: (...row: Parameters<NonNullable<FoldSource["uncounted"]>>) => number | undefined;
  /** Called with events of older rows that a counter comes with. @returns those that the ledger has */
  readonly folded?: (fold: FoldedEvents) => Promise<readonly StoredEffect[]>;
}

/** Events of rows through one that are folded into a counter. */
export interface FoldedEvents {
  readonly owned: OwnedCounter;
  readonly through: number;
  readonly events: readonly StoredEffect[];
  /** True if the counter may have started after some of them. */
  readonly mayLack: boolean;
  readonly tables: CounterTables;
}

type RecordedErasure = NonNullable<ReturnType<typeof readErasure>>;

/** What an outcome does, as it is computed again. */
export type OutcomeEffects = Awaited<ReturnType<typeof settleCounters>>;

/**
 * The counters of a ledger, made again from its rows in their order: those of the engine in memory, put in force by the
 * gate's own code. Rows stay where they are, and events that later lookups count only together are joined.
 */
export class ReplayLedger {
  readonly #history: History;
  readonly #options: ReplayLedgerOptions;
  /** All counters that were in force, by digest. */
  readonly owned: Map<string, OwnedCounter> = new Map();
  /** The counters of the engine in memory. */
  readonly tables: CounterTables;
  readonly open: OpenApprovals = new OpenApprovals();
  /** By the counter's digest, in milliseconds: rows up to this time may be missing, because they can no longer be read. */
  readonly #lacking = new Map<string, number>();
  readonly #erasures: RecordedErasure[] = [];
  /** Milliseconds: the time of a loss after which no check was answered yet; -1 if there is none. */
  #freshLoss = -1;
  /** The row that is replayed. */
  #at = { seq: 0, at: 0 };

  constructor(history: History, options: ReplayLedgerOptions = {}) {
    this.#history = history;
    this.#options = options;
    this.tables = new CounterTables((definition, now) =>
      lookbackOf(this.owned.get(counterDigest(definition))?.counter, now),
    );
  }

  /** The digest of a counter's key. Without the ledger's secret, the key itself. */
  digest(key: string): string {
    return this.#history.keyDigest?.(key) ?? key;
  }

  /** Keeps counters that have counted the rows before one, without an event. */
  start(policySet: PolicySet, from: number): void {
    for (const { counter } of countersOf(policySet))
      this.tables.keep(toReplayCounter(counter.identity, { through: from - 1, unknownThrough: -1 }), []);
  }

  get hasSecret(): boolean {
    return this.#history.keyDigest !== undefined;
  }

  /** Puts a contract in force from a row on, as a gate does. */
  async align(policySet: PolicySet, from: number): Promise<void> {
    const all = countersOf(policySet).map((owned) => ({ owned, counter: counterDigest(owned.counter.identity) }));
    const hidden = all.filter(({ owned, counter }) => this.#isHidden(owned, counter));
    for (const { owned, counter } of all) this.owned.set(counter, owned);
    const source = this.#source(from);
    const ahead = await foldAhead(policySet, source);
    const transaction = {
      head: { seq: from - 1, hash: "", at: this.#at.at },
      counters: { reserve: (event: Omit<StoredEffect, "held">) => this.#reserve(event) },
      keepCounter: source.keepCounter,
      openApprovals: async () => [...this.open.rows.values()].map(({ row }) => row),
    };
    await alignCounters(policySet, source, transaction, { ahead, lostThrough: this.#freshLoss });
    for (const each of hidden) await this.#foldHidden(each.owned, each.counter, source);
  }

  /** Counts the events of older rows that the ledger proves. The counter may lack those that cannot be read. */
  async #foldHidden(owned: OwnedCounter, counter: string, source: FoldSource): Promise<void> {
    const noteUncounted: FoldSource["uncounted"] = (digest, row, at) => {
      this.#options.uncounted?.(digest, row, at);
      this.#lacks(digest, at);
      return -1;
    };
    if (this.#options.folded === undefined) return this.#lacks(counter, this.#at.at);
    const progress = { through: 0, unknownThrough: -1, rows: 0, events: 0 };
    await catchUp(
      [{ owned, counter, from: 0, progress }],
      { ...source, uncounted: noteUncounted },
      async ({ through }, found) => this.tables.add(await this.#present(owned, through ?? 0, found, true)),
    );
  }

  /** The counter starts empty, and no row has named its contract before, but the ledger may have counted older rows. */
  #isHidden({ counter: { startsEmpty } }: OwnedCounter, counter: string): boolean {
    return startsEmpty && !this.tables.keeps(counter) && this.#history.hasOlder?.(counter) === true;
  }

  #reserve(event: Omit<StoredEffect, "held">): void {
    const open = this.open.rows.get(event.seq);
    // A call whose outcome was erased may never have waited.
    if (open !== undefined && isOutcomeErased(open.row)) this.#lacks(event.counter, event.at);
    this.tables.add([{ ...event, key: this.digest(event.key), held: true }]);
  }

  /** The events, with the digests of their keys, that the ledger has. */
  async #present(
    owned: OwnedCounter,
    through: number,
    folded: readonly StoredEffect[],
    mayLack: boolean,
  ): Promise<readonly StoredEffect[]> {
    if (folded.length === 0) return [];
    const events = folded.map((event) => ({ ...event, key: this.digest(event.key) }));
    const { tables } = this;
    return (await this.#options.folded?.({ owned, through, events, mayLack, tables })) ?? events;
  }

  #source(before: number): FoldSource {
    const history = this.#history;
    return {
      head: this.#at,
      tables: { counters: async () => ({ kept: this.tables.counters }) },
      rows: {
        scan: (from) => rowsBefore(history, from, before),
        rowsAt: (rows) => rowsAt(history, rows),
        totals: async (positions) => this.tables.totals(positions),
      },
      keyDigest: (key) => this.digest(key),
      keepCounter: async ({ definition, ...counter }, folded) => {
        const stored = toReplayCounter(definition, counter);
        const owned = this.owned.get(stored.digest);
        const events = owned === undefined ? [] : await this.#present(owned, counter.through ?? before, folded, false);
        const isTaken = ({ takenBy }: StoredEffect): boolean => takenBy !== undefined;
        this.tables.keep(
          stored,
          events.filter((event) => !isTaken(event)),
        );
        this.#take(events.filter(isTaken));
      },
      uncounted: (counter, row, at) => {
        const found = this.#options.uncounted?.(counter, row, at);
        if (found !== undefined || !hasErasedPart(row.evidence)) return found ?? at;
        // No row may name the contract that was in force when the row was counted.
        this.#lacks(counter, at);
        return wasErased(row, this.#erasures) ? at : -1;
      },
    };
  }

  /** Folds a counter that is out of force up to a row. */
  async foldOn(owned: OwnedCounter, upTo: number): Promise<void> {
    const counter = counterDigest(owned.counter.identity);
    const kept = this.tables.counters.find(({ digest }) => digest === counter);
    const { through = 0, unknownThrough = -1 } = kept ?? {};
    const progress = { through: through ?? upTo, unknownThrough, rows: 0, events: 0 };
    const source = this.#source(upTo + 1);
    await catchUp([{ owned, counter, from: progress.through, progress }], source, source.keepCounter);
  }

  /**
   * Applies what a row says about approvals and losses, but not what it does to counters.
   *
   * @param known what became of the check, if the row was read
   */
  pass(row: RecordedRow, leaf: Leaf, known?: RecordedJudgement): void {
    this.#at = leaf;
    for (const ended of this.open.pass(row, leaf, known)) this.tables.release(ended);
    if (leaf.kind === "check") this.#freshLoss = -1;
    const erasure = leaf.act === eraseAct ? readErasure(row.evidence, leaf.seq) : undefined;
    if (erasure !== undefined) this.#erasures.push(erasure);
    const resumed = readResume(leaf, row.evidence);
    if (resumed === undefined) return;
    if (resumed.lost !== undefined) this.#freshLoss = leaf.at;
    resumeCounters(this.tables, resumed, leaf);
    for (const digest of resumed.reset.keys()) this.#lacking.delete(digest);
  }

  /**
   * Counts what a check recorded.
   *
   * @param policySet the contract in force; undefined if it is unavailable
   * @param updates what the decision says; undefined if the check was not decided again
   */
  count(row: RecordedRow, leaf: Leaf, policySet: PolicySet | undefined, updates?: readonly StoredEffect[]): void {
    if (updates !== undefined) return this.tables.add(updates);
    if (this.hasSecret) return this.#countRecorded(row, leaf);
    const lacking = new Set(movedCounters(row) ?? this.tables.counters.map(({ digest }) => digest));
    for (const owned of policySet === undefined ? [] : countersOf(policySet)) {
      const counter = counterDigest(owned.counter.identity);
      const recounted = lacking.has(counter) ? recountRow(owned, leaf, row.evidence) : undefined;
      if (recounted === undefined || recounted.length === 0) continue;
      this.tables.add(
        recounted.map(({ key, amount, held }) => {
          return { counter, key: this.digest(key), amount, at: leaf.at, seq: leaf.seq, ...(held === true && { held }) };
        }),
      );
      lacking.delete(counter);
    }
    for (const counter of lacking) this.#lacks(counter, leaf.at);
  }

  /** With the ledger's secret, the keys of recorded effects are those of lookups. */
  #countRecorded({ evidence }: RecordedRow, { at, seq }: Leaf): void {
    const effects = at < this.#at.at ? undefined : readEffects(evidence);
    if (effects === undefined) for (const { digest } of this.tables.counters) this.#lacks(digest, at);
    const distinct = new Map(
      effects?.map((effect) => [[effect.counter, effect.key, effect.withdrawn].join(" "), effect]),
    );
    for (const { withdrawn, ...effect } of distinct.values()) {
      if (!this.tables.keeps(effect.counter)) continue;
      const time = withdrawn === undefined ? at : this.tables.timeOf(effect, withdrawn);
      // No source of rows is trusted: a gate writes decimals, and takes back what is there.
      if (time === undefined || !isAmount(effect.amount)) this.#lacks(effect.counter, at);
      else
        this.tables.add([
          { ...effect, at: time, ...(withdrawn === undefined ? { seq } : { seq: withdrawn, takenBy: seq }) },
        ]);
    }
  }

  /**
   * Computes again what an outcome does.
   *
   * @param settledOf the counters that the outcome of a call may change
   * @returns undefined if its call cannot be read. It is whole if no part of the call was erased
   */
  async settle(
    outcome: OutcomeAtRow,
    settledOf: (call: ReportedCall) => readonly SettledCounter[],
  ): Promise<{ readonly settled: OutcomeEffects; readonly isWhole: boolean } | undefined> {
    const behind = new Map((await rowsAt(this.#history, rowsBehind(outcome))).map((each) => [each.seq, each]));
    const call = reportedCall(outcome, (seq) => behind.get(seq));
    if (call === undefined) return undefined;
    const totals: TotalSource["totals"] = async (positions) => this.tables.totals(positions);
    const settled = await settleCounters(settledOf(call), call.outcomes, { totals });
    return { settled, isWhole: !hasErasedPart(call.evidence) };
  }

  /** Counts what an outcome does, as it was computed again. */
  addSettled({ at, seq }: OutcomeAtRow, { added, taken }: OutcomeEffects): void {
    this.tables.add(added.map((event) => ({ ...event, at, seq })));
    this.#take(taken.map((event) => ({ ...event, takenBy: seq })));
  }

  /** Takes events back, as far as they are there. */
  #take(taken: readonly StoredEffect[]): void {
    for (const event of taken) if (this.tables.timeOf(event, event.seq) === event.at) this.tables.add([event]);
  }

  /** A row that cannot be read: the counters that it moved lack it. */
  lose(row: RecordedRow): void {
    for (const counter of movedCounters(row) ?? this.tables.counters.map(({ digest }) => digest))
      this.#lacks(counter, recordedAt(row.leaf));
  }

  #lacks(counter: string, at: number): void {
    this.#lacking.set(counter, Math.max(at, this.#lacking.get(counter) ?? -1));
  }

  /** May the counter lack events of rows that can no longer be read? */
  isLacking({ counter, after }: CounterLookup): boolean {
    return after < (this.#lacking.get(counter) ?? -1);
  }

  /** The amounts that open approvals reserve, if erased checks may have ended them. */
  get doubtful(): readonly StoredEffect[] {
    return this.open.doubtful.flatMap(({ row }) => this.tables.readReservations(row.seq));
  }
}

/** True if one of these erasures erased a part that counters need: then the row could not be counted either. */
function wasErased(
  { seq, evidence }: Pick<RecordedRow, "evidence" | "seq">,
  erasures: readonly RecordedErasure[],
): boolean {
  const isPart = (part: string): boolean =>
    wholeText(evidence, "call") === undefined ? part === "call" : /^(?:input|platform)/.test(part);
  return erasures.some(({ parts, rows }) => parts.some(isPart) && rows.some(([from, to]) => seq >= from && seq <= to));
}

/** After a row that records a loss, counters are unknown. A reset counter counts from zero. */
function resumeCounters(
  tables: CounterTables,
  { lost, reset }: NonNullable<ReturnType<typeof readResume>>,
  leaf: Leaf,
): void {
  const kept = new Map(tables.counters.map((counter) => [counter.digest, counter]));
  for (const counter of lost === undefined ? [] : kept.values())
    if (!reset.has(counter.digest))
      tables.keep({ ...counter, unknownThrough: Math.max(counter.unknownThrough, leaf.at) }, []);
  for (const digest of reset.keys()) {
    const counter = kept.get(digest) ?? { digest, definition: "", through: leaf.seq };
    const live = { ...counter, through: null, unknownThrough: -1, resetThrough: resetThroughOf(leaf.at) };
    tables.keep(live, []);
    tables.keep(live, []); // Only a counter that is in force already becomes known again.
    if (counter.through !== null) tables.keep({ ...live, through: leaf.seq }, []);
  }
}

type ReplayCounter = Parameters<CounterTables["keep"]>[0];

function toReplayCounter(definition: string, counter: Omit<ReplayCounter, "definition" | "digest">): ReplayCounter {
  return { ...counter, definition, digest: counterDigest(definition) };
}

/** Outcomes read the events of their calls, and a counter with `since` may look back to any time. */
function lookbackOf(counter: Counter | undefined, now: number): Lookback {
  if (counter === undefined || since(counter) !== null) return { through: -1, forgets: false };
  const forgets = counter.window.kind !== "ever";
  const through = forgets ? windowStart(counter.window, now) : now;
  return { through: isSettled(counter) ? Math.min(through, now - outcomeMsMax) : through, forgets };
}

/** A counter's identity is its definition, as JSON. */
function since({ identity }: Counter): string | null {
  return (JSON.parse(identity) as { readonly since: string | null }).since;
}

/** No source of rows is trusted: a row that is not what its leaf says is not counted. */
async function* rowsBefore(history: History, from: number, before: number): AsyncGenerator<readonly RecordedRow[]> {
  for await (const rows of rowsThrough(before - 1, history.scan(from)))
    yield rows.map((row) => (typeof readLeaf(row) === "string" ? { ...row, leaf: "" } : row));
}

/** Reads the outcome of a row; undefined if it has none. */
export function outcomeOfRow(row: RecordedRow): OutcomeAtRow | undefined {
  return row.leaf.includes('"act":"outcome"') ? outcomeIn(row) : undefined;
}
