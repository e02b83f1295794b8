import { addDecimals } from "../../../core/src/wire/mod.ts";
import type { CounterEvent, CounterLookup, FoldedEvent } from "./entries.ts";
import type { StoredEffect, StoredLookup, StoreTransaction } from "./store/store.ts";

/** Counters as the rows of a transaction leave them: what the store has, and what the transaction adds. */
export class PendingCounters {
  readonly #store: Pick<StoreTransaction, "values">;
  readonly #digest: (key: string) => string;
  readonly #known = new Map<string, string | undefined>();
  readonly #effects: StoredEffect[] = [];
  /** The amounts that this transaction has added, by counter and key: one sum for each moment. */
  readonly #moved = new Map<string, { readonly at: number; sum: string }[]>();

  /** @param digest makes the digest of a counter's key */
  constructor(store: Pick<StoreTransaction, "values">, digest: (key: string) => string) {
    this.#store = store;
    this.#digest = digest;
  }

  /** What the transaction adds, in order. */
  get effects(): readonly StoredEffect[] {
    return this.#effects;
  }

  /** Reads the values of counters before this transaction. @throws {NotKept} or a fault */
  async look(lookups: readonly CounterLookup[]): Promise<void> {
    if (lookups.length === 0) return;
    const stored = lookups.map(({ counter, key, after }): StoredLookup => ({
      counter,
      key: this.#digest(key),
      after,
    }));
    const values = await this.#store.values(stored);
    for (const [at, lookup] of stored.entries()) this.#known.set(lookupId(lookup), values[at]);
  }

  /** The counter's value after the transaction's rows so far; undefined if its history is not known. */
  value({ counter, key, after }: CounterLookup): string | undefined {
    const digest = this.#digest(key);
    const before = this.#known.get(lookupId({ counter, key: digest, after }));
    if (before === undefined) return undefined;
    const moved = this.#moved.get(`${counter} ${digest}`) ?? [];
    return moved.reduce((total, { at, sum }) => (at > after ? addDecimals(total, sum) : total), before);
  }

  /** Two counters of one definition are one counter, so a call changes it once for each key. */
  count(events: readonly CounterEvent[], seq: number, at: number): readonly StoredEffect[] {
    if (events.length === 0) return noEffects;
    const distinct = new Map<string, StoredEffect>();
    for (const { counter, key, amount, held } of events) {
      const digest = this.#digest(key);
      const effect = { seq, at, counter, key: digest, amount };
      distinct.set(`${counter} ${digest}`, held === true ? { ...effect, held } : effect);
    }
    for (const [id, effect] of distinct) this.#move(id, effect);
    const effects = [...distinct].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, effect]) => effect);
    this.#effects.push(...effects);
    return effects;
  }

  /** Adds events, and takes others back. */
  settle(added: readonly StoredEffect[], taken: readonly StoredEffect[]): void {
    for (const event of added) this.#move(`${event.counter} ${event.key}`, event);
    this.subtract(taken);
    this.#effects.push(...added, ...taken);
  }

  /** From here on, these amounts do not count. */
  subtract(effects: readonly StoredEffect[]): void {
    for (const { counter, key, at, amount } of effects) this.#move(`${counter} ${key}`, { at, amount: `-${amount}` });
  }

  /** Adds an amount that an earlier row reserves, unless the store has it. */
  reserve({ key, ...event }: FoldedEvent): void {
    this.#effects.push({ ...event, key: this.#digest(key), held: true });
  }

  #move(id: string, { at, amount }: Pick<StoredEffect, "amount" | "at">): void {
    const moved = this.#moved.get(id);
    const last = moved?.at(-1);
    if (moved === undefined) this.#moved.set(id, [{ at, sum: amount }]);
    else if (last?.at === at) last.sum = addDecimals(last.sum, amount);
    else moved.push({ at, sum: amount });
  }
}

const noEffects: readonly StoredEffect[] = [];

function lookupId({ counter, key, after }: StoredLookup): string {
  return `${counter} ${key} ${after}`;
}
