import { withoutOwn } from "../../../core/src/approvals/mod.ts";
import type {
  ActivePolicy,
  BatchJudge,
  DecidingTransaction,
  JudgedCall,
  PlannedCall,
} from "../../../gate/src/server/mod.ts";
import { PendingCounters, type CheckEntry, type StoredEffect } from "../../../gate/src/ledger/mod.ts";
import { addDecimals, answeredVerdict, type Verdict } from "../../../core/src/wire/mod.ts";
import type { ReceiptCheck, RecordedTrace } from "./recorded.ts";
import type { ReplayLedger } from "./replay-ledger.ts";

/** A transaction that decides one recorded call and keeps nothing. */
class ReplayTransaction implements DecidingTransaction {
  readonly head: DecidingTransaction["head"];
  readonly store = { inForce: undefined };
  readonly #at: number;
  readonly counters: PendingCounters;
  /** The row that a gate would write. */
  entry: CheckEntry | undefined;
  effects: readonly StoredEffect[] = [];

  constructor(ledger: ReplayLedger, { at, seq }: ReceiptCheck["leaf"]) {
    this.head = { seq: seq - 1, hash: "", at };
    this.#at = at;
    const values = async (lookups: Parameters<ReplayLedger["tables"]["value"]>[0][]) =>
      lookups.map((lookup) => ledger.tables.value(lookup));
    this.counters = new PendingCounters({ values }, (key) => ledger.digest(key));
  }

  append(...[entry, events]: Parameters<DecidingTransaction["append"]>): ReturnType<DecidingTransaction["append"]> {
    this.entry = entry;
    this.effects = this.counters.count(events, this.head.seq + 1, this.#at);
    return { seq: this.head.seq + 1, hash: "", effects: this.effects };
  }

  recordAnswer(): void {}

  async commit(): Promise<readonly never[]> {
    return [];
  }
}

export interface JudgeOptions {
  /** Keeps what a person did to the call only where the contract leaves the call to a person too. */
  readonly underAnother?: boolean;
  /** The events in the window of each lookup, instead of those that were counted again. */
  readonly values?: readonly (string | undefined)[];
  /** Amounts that count for nothing. */
  readonly without?: readonly StoredEffect[];
}

/** A judge of one call, and what it found. */
export interface RecordedJudge extends BatchJudge {
  readonly timed: { readonly transaction: ReplayTransaction; readonly at: number };
  /** What was done to the call; undefined before it is judged. */
  how: JudgedCall["how"];
  /** The counters whose values are not known. */
  unknown: readonly string[];
}

/** Judges a call again as its receipt says that stops and people did. */
export function recordedJudge(
  ledger: ReplayLedger,
  policy: ActivePolicy,
  { leaf, trace: { asked: judgement = {} } }: ReceiptCheck,
  { underAnother = false, values: known, without = [] }: JudgeOptions,
): RecordedJudge {
  const transaction = new ReplayTransaction(ledger, leaf);
  const judge: RecordedJudge = {
    timed: { transaction, at: leaf.at },
    policy,
    how: undefined,
    unknown: [],
    open: () => undefined,
    finish: () => [],
    call: ({ lookups }) => ({
      values: () => {
        const values = lookups.map(computeCounterValue);
        judge.unknown = lookups.filter((_, index) => values[index] === undefined).map(({ counter }) => counter);
        return values;
      },
      judge: (decision) => {
        const { mode } = policy;
        const byMode = answeredVerdict(decision, mode);
        const isKept = !underAnother || byMode === "ESCALATE" || judgement.how === "stopped";
        judge.how = isKept ? judgement.how : undefined;
        return { answered: answerOnRecord(byMode, judgement.how), mode, how: judge.how, outcome: undefined };
      },
      applyRow: () => ({}),
    }),
  };
  return judge;

  function computeCounterValue(lookup: PlannedCall["lookups"][number], index: number): string | undefined {
    const counted = transaction.counters.value(lookup);
    const { own } = judgement;
    if (counted === undefined || (own === undefined && known === undefined && without.length === 0)) return counted;
    const { tables } = ledger;
    const stored = { ...lookup, key: ledger.digest(lookup.key) };
    const reserved = tables.reservedIn(stored).map(({ amount }) => amount);
    const value = known === undefined ? counted : known[index] && reserved.reduce(addDecimals, known[index]);
    return value && withoutOwn(value, [...(own === undefined ? [] : tables.readReservations(own)), ...without], stored);
  }
}

/** The answer to a call, with what a stop, a person or an approval did to it. */
function answerOnRecord(byMode: Verdict, how: NonNullable<RecordedTrace["asked"]>["how"]): Verdict {
  if (how === "stopped") return "BLOCK";
  if ((how === "used" || how === "grant") && byMode !== "BLOCK") return "ALLOW";
  return (how === "denied" || how === "closed") && byMode === "ESCALATE" ? "BLOCK" : byMode;
}
