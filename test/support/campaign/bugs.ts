import type { Mutation } from "../mutation/mutate.ts";

/** Mistakes that a gate on a database can make. Each is seen by the reckoning of a campaign, or the reckoning is wrong. */
export const planted = {
  /** The answer leaves while the COMMIT is under way. */
  "answers-before-commit": [
    {
      within: "PostgresTransaction.commit",
      find: "await this.#end(written, next);",
      put: "this.#end(written, next).catch(() => undefined);",
    },
  ],
  /** A COMMIT whose answer was lost is taken for one that failed, and its calls are decided and written once more. */
  "writes-again": [
    { within: "PostgresTransaction.#end.isKept", value: "false" },
    {
      within: "Batcher.#decideNext",
      find: "this.#queue.release(batch);",
      put: `$found
      const again = (transaction) => this.#options.decide(transaction, (fits) => batch.calls.filter(fits));
      if (!done.ok && taken.length > 0 && (await this.#options.transact(again, false)).ok) return;`,
    },
  ],
  /** A gate goes by what it has read of a counter once, and not by what others did to it since. */
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
  /** A gate takes the time from its own machine. */
  "goes-by-its-own-clock": [
    { within: "ActiveLedger.transact", find: "clock.read($head, transaction.sharedTime)", put: "clock.read($head)" },
  ],
  /** A COMMIT whose answer was lost is taken for one that was done. */
  "believes-in-the-best": [{ within: "PostgresTransaction.#end.isKept", value: "outcome.failed === undefined" }],
} as const satisfies Readonly<Record<string, readonly Mutation[]>>;

export type Bug = keyof typeof planted;
