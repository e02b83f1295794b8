import {
  readJudgement,
  findEndedApproval,
  endedBy,
  readEffects,
  type Leaf,
} from "../../../core/src/record/entry/mod.ts";
import { addDecimals, verdicts, type SliceJson, type Verdict } from "../../../core/src/wire/mod.ts";
import type { RecordedRow } from "../history.ts";
import type { Contracts } from "../replay/decide-again.ts";
import { isAmount, type ReceiptCheck } from "../replay/recorded.ts";
import { counterDigest } from "../../../gate/src/server/mod.ts";
import { readUntrustedList } from "./decided.ts";

const acts = ["opened", "approved", "denied", "expired"] as const;
/** What became of approvals. */
type CountedAct = (typeof acts)[number];

/** What calls added to a counter, as decimals. */
interface Amounts {
  /** Approvals started to reserve it. */
  held: string;
  /** It counts no more: an approval ended unused, or an outcome took it back. */
  released: string;
  used: string;
}

type Effect = ReceiptCheck["effects"][number];

interface TimeSlice {
  readonly verdicts: Record<Verdict, number>;
  readonly approvals: Record<CountedAct, number>;
  readonly counters: Map<string, Amounts>;
}

/** More slices than that are joined. */
const slicesMax = 60;

/** The lengths of slices in milliseconds. Each is a multiple of the one before; after the last they double. */
const lengths: readonly number[] = [1, 5, 15, 60, 300, 900, 3600, 3 * 3600, 12 * 3600, 24 * 3600].map((s) => s * 1000);

/**
 * Counts rows and the amounts of counters in at most 60 slices of equal length, which start at whole multiples of it in
 * UTC. The length grows with the time between the first and the last row, so the period need not be known before.
 */
export class OverTime {
  readonly #contracts: Contracts;
  /** By the number of the slice: its start divided by its length. */
  #slices = new Map<number, TimeSlice>();
  #first = Infinity;
  #last = -Infinity;
  #lengthMs = lengths[0] as number;
  /** The names of counters that add up amounts, by digest. */
  readonly #names = new Map<string, string>();
  /** The contract whose counters have names already. */
  #named: string | null = null;
  /** What open approvals reserve, by their rows. */
  readonly #open = new Map<number, readonly Effect[]>();

  constructor(contracts: Contracts) {
    this.#contracts = contracts;
  }

  /** Adds a check or a person's act. The method `count` counts approvals. */
  async add(leaf: Leaf, { evidence }: RecordedRow): Promise<void> {
    const effects = readEffects(evidence) ?? [];
    const slice = this.#at(leaf.at);
    if (leaf.kind === "check" && leaf.verdict !== null) slice.verdicts[leaf.verdict] += 1;
    const judgement = readJudgement(evidence) ?? {};
    const ended = findEndedApproval(judgement);
    if (ended !== undefined) this.#end(slice, [ended, ended], judgement.how !== "opened");
    for (const range of readUntrustedList(() => endedBy(leaf, evidence))) this.#end(slice, range, false);
    if (effects.length === 0) return;
    await this.#name(leaf);
    const reserved = effects.filter((effect) => effect.held === true);
    if (reserved.length > 0) this.#open.set(leaf.seq, reserved);
    for (const effect of effects)
      this.#move(slice, effect, effect.held === true ? "held" : effect.withdrawn === undefined ? "used" : "released");
  }

  /** Counts what became of an approval at a time. */
  count(what: string, at: number): void {
    const act = acts.find((each) => each === what);
    if (act !== undefined) this.#at(at).approvals[act] += 1;
  }

  /** An approval that was used reserves nothing more, but nothing is released: its call has used the amount. */
  #end(slice: TimeSlice, [from, to]: readonly [from: number, to: number], isUsed: boolean): void {
    for (const row of from === to ? [from] : [...this.#open.keys()].filter((open) => open >= from && open <= to)) {
      if (!isUsed) for (const effect of this.#open.get(row) ?? []) this.#move(slice, effect, "released");
      this.#open.delete(row);
    }
  }

  #move({ counters }: TimeSlice, { amount, counter }: Effect, how: keyof Amounts): void {
    const name = this.#names.get(counter);
    if (name === undefined || !isAmount(amount)) return;
    const amounts = counters.getOrInsertComputed(name, noAmounts);
    amounts[how] = addDecimals(amounts[how], amount);
  }

  /** A row names counters by digests. The contracts in force so far have their names. */
  async #name({ contract }: Leaf): Promise<void> {
    if (contract === null || contract === this.#named) return;
    this.#named = contract;
    const policySet = await this.#contracts.of(contract);
    if (typeof policySet === "string") return;
    for (const { name, identity, sums, counting } of policySet.counters)
      if (sums && counting !== "held") this.#names.set(counterDigest(identity), name);
  }

  #at(at: number): TimeSlice {
    this.#first = Math.min(this.#first, at);
    this.#last = Math.max(this.#last, at);
    while (this.#numberOf(this.#last) - this.#numberOf(this.#first) >= slicesMax) this.#lengthen();
    const number = this.#numberOf(at);
    return this.#slices.getOrInsertComputed(number, newSlice);
  }

  #numberOf(at: number): number {
    return Math.floor(at / this.#lengthMs);
  }

  #lengthen(): void {
    const before = this.#lengthMs;
    this.#lengthMs = lengths.find((length) => length > before) ?? before * 2;
    const joined = new Map<number, TimeSlice>();
    for (const [number, slice] of this.#slices) {
      const later = this.#numberOf(number * before);
      const known = joined.get(later);
      joined.set(later, known === undefined ? slice : joinedSlice(known, slice));
    }
    this.#slices = joined;
  }

  get json(): readonly SliceJson[] {
    if (this.#slices.size === 0) return [];
    const [first, last] = [this.#numberOf(this.#first), this.#numberOf(this.#last)];
    return Array.from({ length: last - first + 1 }, (_, at) => {
      const { counters, ...counts } = this.#slices.get(first + at) ?? newSlice();
      const from = (first + at) * this.#lengthMs;
      return { from, to: from + this.#lengthMs, ...counts, counters: Object.fromEntries(counters) };
    });
  }
}

const noAmounts = (): Amounts => ({ held: "0", released: "0", used: "0" });

function newSlice(): TimeSlice {
  return { verdicts: zeros(verdicts), approvals: zeros(acts), counters: new Map() };
}

function zeros<Name extends string>(names: readonly Name[]): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;
}

function joinedSlice(one: TimeSlice, other: TimeSlice): TimeSlice {
  for (const verdict of verdicts) one.verdicts[verdict] += other.verdicts[verdict];
  for (const act of acts) one.approvals[act] += other.approvals[act];
  for (const [name, amounts] of other.counters) {
    const known = one.counters.getOrInsertComputed(name, noAmounts);
    for (const how of ["held", "released", "used"] as const) known[how] = addDecimals(known[how], amounts[how]);
  }
  return one;
}
