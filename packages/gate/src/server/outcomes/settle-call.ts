import type { PolicySet } from "../../../../core/src/contract/mod.ts";
import { readEffects, outcomeRows } from "../../../../core/src/record/entry/mod.ts";
import type { AppendTransaction, EventPosition, Rows } from "../../ledger/mod.ts";
import { addDecimals } from "../../../../core/src/wire/mod.ts";
import { counterDigest, countersOf, recountRow, type OwnedCounter } from "../policy/owned-counters.ts";
import type { ReportedCall } from "./events.ts";
import { isSettled, settlementOf, type CountedAmount, type OutcomeAtRow } from "./settle.ts";

/** A counter that outcomes may change, and what a call added to it. Its keys are digests. */
export interface SettledCounter {
  readonly owned: OwnedCounter;
  /** The counter's digest. */
  readonly counter: string;
  readonly called: readonly CountedAmount[];
}

/** Where the totals of counters are read. */
export type TotalSource = Pick<Rows, "totals">;

/**
 * The counters that an outcome of the call may change, and what the call itself added to each: as its row recorded it,
 * or as a counter of a later contract counts it.
 *
 * @param digest returns the digest of a counter's key
 */
export function settledBy(
  policySet: PolicySet,
  { leaf, evidence }: ReportedCall,
  digest: (key: string) => string,
): readonly SettledCounter[] {
  const { seq, at } = leaf;
  const effects = (readEffects(evidence) ?? []).filter(outcomeRows.isEvent);
  return countersOf(policySet)
    .filter((owned) => isSettled(owned.counter))
    .map((owned) => {
      const counter = counterDigest(owned.counter.identity);
      const recorded = effects.filter((effect) => effect.counter === counter);
      const updates = recorded.length > 0 ? [] : (recountRow(owned, leaf, evidence, true) ?? []);
      const counted = [...recorded, ...updates.map(({ key, amount }) => ({ key: digest(key), amount }))];
      return { owned, counter, called: counted.map(({ key, amount }) => ({ key, amount, seq, at })) };
    });
}

/** What the last outcome of a call does to these counters. */
export async function settleCounters(
  settled: readonly SettledCounter[],
  outcomes: readonly OutcomeAtRow[],
  source: TotalSource,
): Promise<Pick<Parameters<AppendTransaction["outcome"]>[0], "added" | "taken">> {
  const moves = settled.map(({ owned, counter, called }) => {
    const { added, taken } = settlementOf(owned.counter, called, outcomes);
    return {
      added: added.map(({ key, amount }) => ({ counter, key, amount })),
      taken: taken.map((event) => ({ ...event, counter })),
    };
  });
  // A counter that started at zero lacks the events of older rows, so nothing can be taken back there.
  const there = new Set(
    await presentEvents(
      moves.flatMap(({ taken }) => taken),
      source,
    ),
  );
  const kept = moves.filter(({ taken }) => taken.every((event) => there.has(event)));
  return { added: kept.flatMap(({ added }) => added), taken: kept.flatMap(({ taken }) => taken) };
}

/** Returns the events that the store has with these amounts. */
export async function presentEvents<Event extends EventPosition & { readonly amount: string }>(
  events: readonly Event[],
  source: TotalSource,
): Promise<readonly Event[]> {
  const totals = await totalsAround(events, source);
  return events.filter(({ amount }, index) => {
    const [before, after] = totals[index] ?? [];
    return before !== undefined && after !== undefined && addDecimals(after, `-${before}`) === addDecimals(amount, "0");
  });
}

/** Reads the totals before and after each event. */
export async function totalsAround(
  events: readonly EventPosition[],
  source: TotalSource,
): Promise<readonly (readonly [before: string | undefined, after: string | undefined])[]> {
  if (events.length === 0) return [];
  const positions = events.flatMap(({ counter, key, at, seq }) => [
    { counter, key, at, seq },
    { counter, key, at, seq: seq + 1 },
  ]);
  const totals = await source.totals(positions);
  return events.map((_, index) => [totals[index * 2], totals[index * 2 + 1]]);
}
