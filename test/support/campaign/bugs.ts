import type { Mutation } from "../mutation/mutate.ts";

/** Bugs that a gate on a database can have. The campaign's comparison with the ledger must notice each of them. */
export const planted = {
  /** The gate answers while the COMMIT is still running. */
  "answers-before-commit": [
    {
      within: "PostgresTransaction.commit",
      find: "await this.#end(written, next);",
      put: "this.#end(written, next).catch(() => undefined);",
    },
  ],
  /** The gate treats a COMMIT with a lost answer as failed, then decides and writes its calls again. */
  "writes-again": [
    { within: "PostgresTransaction.#end.isKept", value: "false" },
    {
      within: "Batcher.#decideNext",
      find: "this.#queue.release(taken, times);",
      put: `$found
      const again = (transaction) => this.#options.decide(transaction, (fits) => taken.filter(fits));
      if (!done.ok && taken.length > 0 && (await this.#options.transact(again, false)).ok) return;`,
    },
  ],
  /** The gate reads a counter once and ignores later updates by other gates. */
  "remembers-counters": [
    {
      within: "PostgresTransaction.values",
      find: "return counted.map((lookup) => lookup && values.get(lookup));",
      put: `const remembered = (globalThis.remembered ??= new Map());
    return counted.map((lookup) => {
      const id = lookup && lookup.counter + lookup.key;
      if (!remembered.has(id)) remembered.set(id, lookup && values.get(lookup));
      return remembered.get(id);
    });`,
    },
  ],
  /** The gate uses its own machine's clock. */
  "goes-by-its-own-clock": [
    { within: "ActiveLedger.transact", find: "clock.read($head, transaction.store.at)", put: "clock.read($head)" },
  ],
  /** The gate treats a COMMIT with a lost answer as done. */
  "believes-in-the-best": [{ within: "PostgresTransaction.#end.isKept", value: "outcome.failed === undefined" }],
} as const satisfies Readonly<Record<string, readonly Mutation[]>>;

export type Bug = keyof typeof planted;
