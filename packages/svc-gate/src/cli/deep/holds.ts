import type { Lookup, PolicySet } from "../../contract/mod.ts";
import { countersOf, recountRow, type OwnedCounter } from "../../gate/mod.ts";
import type { LedgerHistory } from "../../ledger/mod.ts";
import { askOf, endedAsk, endedBy, readEffects, wholeText, type Leaf } from "../../ledger/entry/mod.ts";
import { addDecimals } from "../../wire/mod.ts";
import type { RecordedRow } from "../history.ts";
import { readLeaf, type Recorded } from "../replay/recorded.ts";
import { counterDigest } from "../replay/replay-counters.ts";
import type { WrongCounter } from "./found.ts";

type OpenHolds = Awaited<ReturnType<LedgerHistory["openHolds"]>>[number];
type Hold = OpenHolds["holds"][number];

/** An open approval: its row and what it holds. */
interface OpenApproval {
  readonly leaf: Leaf;
  readonly row: RecordedRow;
  readonly holds: Hold[];
  /** The counters under which it holds an amount that cannot be counted again, because a part of its row was erased. */
  readonly unknown: Set<string>;
}

/** What open approvals hold for a lookup. */
export interface Held {
  readonly amount: string;
  /** The part of it that a check whose outcome was erased may have ended. */
  readonly doubtful: string;
  /** Some amount cannot be counted again. */
  readonly isUnknown: boolean;
}

const sliceRows = 64;

/**
 * Follows what open approvals hold. A row records what it holds under the counters of its contract. A counter that comes
 * into force later holds amounts that no row records: they are counted again.
 */
export class Holds {
  readonly #ledger: LedgerHistory;
  readonly #open = new Map<number, OpenApproval>();
  /** The keys of checks whose outcome was erased. They may have ended approvals; the acts after the checks say so. */
  readonly #doubted = new Set<string | null>();
  #isAfterAct = false;
  /** The counters of each contract so far, by digest. */
  readonly #counters = new Map<string, OwnedCounter>();

  constructor(ledger: LedgerHistory) {
    this.#ledger = ledger;
  }

  /** What open approvals hold at a row, without what the call's own approval holds. */
  heldFor(lookup: Lookup, { trace }: Recorded): Held {
    if (this.#open.size === 0) return nothingHeld;
    const [counter, key] = [counterDigest(lookup.counter.identity), this.#ledger.keyDigest(lookup.key)];
    const others = [...this.#open].flatMap(([row, approval]) => (row === trace.asked?.own ? [] : [approval]));
    const amountOf = (approvals: readonly OpenApproval[]): string =>
      approvals
        .flatMap(({ holds }) => holds)
        .filter((hold) => hold.counter === counter && hold.key === key && hold.at > lookup.after)
        .reduce((sum, { amount }) => addDecimals(sum, amount), "0");
    return {
      amount: amountOf(others),
      doubtful: amountOf(others.filter(({ leaf }) => this.#doubted.has(leaf.key))),
      isUnknown: others.some(({ unknown }) => unknown.has(counter)),
    };
  }

  /** Notes what a row holds, and what it ends. */
  settle(row: RecordedRow): void {
    const leaf = readLeaf(row);
    if (typeof leaf === "string") return;
    this.#doubt(leaf, row);
    const asked = askOf(row.evidence) ?? {};
    const ended = endedAsk(asked);
    if (ended !== undefined) this.#open.delete(ended);
    for (const [from, to] of endedBy(leaf, row.evidence))
      for (const seq of this.#open.keys()) if (seq >= from && seq <= to) this.#open.delete(seq);
    const held = (readEffects(row.evidence) ?? []).filter(({ held: isHeld }) => isHeld === true);
    // Only a row that opens an approval holds amounts. Its effects say so also after its outcome is erased, unless no counter held one.
    const mayHold = leaf.answered === "ESCALATE" && isOutcomeErased(row);
    if (asked.how !== "opened" && held.length === 0 && !mayHold) return;
    const holds = held.map(({ counter, key, amount }) => ({ counter, key, at: leaf.at, amount }));
    this.#open.set(leaf.seq, { leaf, row, holds, unknown: new Set() });
  }

  #doubt({ answered, key, kind }: Leaf, row: RecordedRow): void {
    if (kind === "check" && this.#isAfterAct) this.#doubted.clear();
    this.#isAfterAct = kind !== "check";
    if (kind === "check" && answered !== "BLOCK" && isOutcomeErased(row)) this.#doubted.add(key);
  }

  /** A counter that comes into force counts what open approvals hold. */
  align(policySet: PolicySet): void {
    for (const owned of countersOf(policySet)) {
      const counter = counterDigest(owned.counter.identity);
      this.#counters.set(counter, owned);
      if (!owned.counter.mayHold || owned.counter.startsEmpty) continue;
      for (const approval of this.#open.values())
        if (!approval.holds.some((hold) => hold.counter === counter))
          approval.holds.push(...this.#recount(counter, approval));
    }
  }

  #recount(counter: string, { leaf, row, unknown }: OpenApproval): readonly Hold[] {
    const owned = this.#counters.get(counter);
    const isKnown = !isOutcomeErased(row);
    const updates = owned === undefined ? [] : isKnown ? recountRow(owned, leaf, row.evidence) : undefined;
    if (updates === undefined) unknown.add(counter);
    return (updates ?? [])
      .filter(({ held }) => held === true)
      .map(({ key, amount }) => ({ counter, key: this.#ledger.keyDigest(key), at: leaf.at, amount }));
  }

  /** Compares what the ledger holds for the approvals that are still open. A later row may have ended one. */
  async firstWrong(): Promise<WrongCounter | undefined> {
    const rows = [...this.#open.keys()].toSorted((one, other) => one - other);
    for (let from = 0; from < rows.length; from += sliceRows) {
      for (const stored of await this.#ledger.openHolds(rows.slice(from, from + sliceRows))) {
        const wrong = this.#compare(stored);
        if (wrong !== undefined) return wrong;
      }
    }
    return undefined;
  }

  #compare({ row, holds: stored }: OpenHolds): WrongCounter | undefined {
    const approval = this.#open.get(row);
    if (approval === undefined) return undefined;
    const texts = new Set(stored.map(textOf));
    const missing = approval.holds.find((hold) => !texts.has(textOf(hold)));
    const wrong = missing ?? stored.find((hold) => !this.#isLawful(hold, approval));
    if (wrong === undefined) return undefined;
    const { counter, key } = wrong;
    const amountIn = (holds: readonly Hold[]): string =>
      holds.find((hold) => hold.counter === counter && hold.key === key)?.amount ?? "nothing";
    const expected = missing === undefined ? this.#recount(counter, approval) : [missing];
    return {
      counter: this.#counters.get(counter)?.counter.name ?? counter,
      seq: row,
      problem: "the amount that an open approval holds differs from its receipt",
      expected: amountIn(expected),
      found: amountIn(stored),
    };
  }

  /** A counter may have been in force between two rows, so that no row names its contract. */
  #isLawful(hold: Hold, approval: OpenApproval): boolean {
    if (approval.holds.some((each) => textOf(each) === textOf(hold))) return true;
    if (!this.#counters.has(hold.counter)) return hold.counter !== unknownCounter;
    return this.#recount(hold.counter, approval).some((each) => textOf(each) === textOf(hold));
  }
}

function isOutcomeErased({ evidence }: RecordedRow): boolean {
  return wholeText(evidence, "outcome") === undefined;
}

const nothingHeld: Held = { amount: "0", doubtful: "0", isUnknown: false };

/** The digest of a counter that the ledger does not keep. */
const unknownCounter = "";

function textOf({ counter, key, at, amount }: Hold): string {
  return [counter, key, at, amount].join(" ");
}
