interface Replacement {
  readonly file: string;
  readonly from: string | RegExp;
  readonly to: string;
}

/** Mistakes that a gate on a database can make. Each is seen by the reckoning of a campaign, or the reckoning is wrong. */
export const planted = {
  /** The answer leaves while the COMMIT is under way. */
  "answers-before-commit": [
    {
      file: "src/ledger/stores/postgres-turn.ts",
      from: "await this.#end(written, next);",
      to: "this.#end(written, next).catch(() => undefined);",
    },
  ],
  /** A COMMIT whose answer was lost is taken for one that failed, and its calls are decided and written once more. */
  "writes-again": [
    {
      file: "src/ledger/stores/postgres-turn.ts",
      from: /const isKept = [^;]+;/,
      to: "const isKept = false;",
    },
    {
      file: "src/gate/sequencer.ts",
      from: "return this.#decideAll(turn, at, batch.calls, asked);",
      to: `again = (next, later) => this.#decideAll(next, later, batch.calls, asked);
      return again(turn, at);`,
    },
    {
      file: "src/gate/sequencer.ts",
      from: /const taken: [^;]+;/,
      to: "$& let again;",
    },
    {
      file: "src/gate/sequencer.ts",
      from: "this.#line.settled(batch);",
      to: "$& if (!done.ok && again !== undefined && (await this.#inTurn(again)).ok) return;",
    },
  ],
  /** A gate goes by what it has read of a counter once, and not by what others did to it since. */
  "remembers-counters": [
    {
      file: "src/ledger/stores/postgres-turn.ts",
      from: "return lookups.map((lookup) => values.get(lookup));",
      to: `const remembered = (globalThis.remembered ??= new Map());
    return lookups.map((lookup) => {
      const id = lookup.counter + lookup.key;
      if (!remembered.has(id)) remembered.set(id, values.get(lookup));
      return remembered.get(id);
    });`,
    },
  ],
  /** A gate takes the time from its own machine. */
  "goes-by-its-own-clock": [
    {
      file: "src/gate/sequencer.ts",
      from: "clock.read(turn.head.at, turn.sharedTime)",
      to: "clock.read(turn.head.at)",
    },
  ],
  /** A COMMIT whose answer was lost is taken for one that was done. */
  "believes-in-the-best": [
    {
      file: "src/ledger/stores/postgres-turn.ts",
      from: /const isKept = [^;]+;/,
      to: "const isKept = outcome.failed === undefined;",
    },
  ],
} as const satisfies Readonly<Record<string, readonly Replacement[]>>;

export type Bug = keyof typeof planted;
