import { EvaluationError, type Value } from "../contract/mod.ts";
import type { Core, Plan, Probe } from "../contract/ir.ts";

/** What one part of a condition came to, once. */
export type Came = { readonly value: Value } | { readonly error: string };

/** What one part of a condition came to in one decision: in a macro, once for each item. */
export interface Seen {
  readonly trues: number;
  readonly falses: number;
  /** How often it was evaluated. */
  readonly times: number;
  /** The first of them, in order. */
  readonly first: readonly Came[];
  /** What it was evaluated against. */
  readonly context: EvaluationContext;
}

type EvaluationContext = Parameters<Plan>[0];
type Tally = { -readonly [Part in keyof Seen]: Seen[Part] } & { readonly first: Came[] };

const keptMax = 8;

/** Watches the conditions of a contract that was compiled with its probe, and keeps what one decision came to. */
export class Witness {
  readonly #seen = new Map<Core, Tally>();

  readonly probe: Probe = (core, run) => (context) => {
    try {
      const value = run(context);
      this.#note(core, context, { value });
      return value;
    } catch (error) {
      this.#note(core, context, {
        error: error instanceof EvaluationError ? error.message : "the engine failed on it",
      });
      throw error;
    }
  };

  /** Undefined where the part was not evaluated. */
  seen(core: Core): Seen | undefined {
    return this.#seen.get(core);
  }

  /** What was evaluated, in no particular order. */
  all(): Iterable<readonly [Core, Seen]> {
    return this.#seen;
  }

  /** Before the next decision. */
  forget(): void {
    this.#seen.clear();
  }

  #note(core: Core, context: EvaluationContext, came: Came): void {
    let tally = this.#seen.get(core);
    if (tally === undefined) this.#seen.set(core, (tally = { trues: 0, falses: 0, times: 0, first: [], context }));
    tally.times += 1;
    if ("value" in came && came.value === true) tally.trues += 1;
    if ("value" in came && came.value === false) tally.falses += 1;
    if (tally.first.length < keptMax) tally.first.push(came);
    tally.context = context;
  }
}
