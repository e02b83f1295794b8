import { EvaluationError, type Value } from "../contract/mod.ts";
import type { Core, Plan, Probe } from "../contract/ir.ts";

/** What one part of a condition came to, once. */
export type Came = { readonly value: Value } | { readonly error: string };

/** What one part of a condition came to in one decision: in a macro, once for each item. */
export interface PartTrace {
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
type PartCounts = { -readonly [Part in keyof PartTrace]: PartTrace[Part] } & { readonly first: Came[] };

const keptMax = 8;

/** Watches the conditions of a contract that was compiled with its probe, and keeps what one decision came to. */
export class EvaluationTrace {
  readonly #seen = new Map<Core, PartCounts>();

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
  seen(core: Core): PartTrace | undefined {
    return this.#seen.get(core);
  }

  /** What was evaluated, in no particular order. */
  all(): Iterable<readonly [Core, PartTrace]> {
    return this.#seen;
  }

  /** Before the next decision. */
  forget(): void {
    this.#seen.clear();
  }

  #note(core: Core, context: EvaluationContext, came: Came): void {
    let counts = this.#seen.get(core);
    if (counts === undefined) this.#seen.set(core, (counts = { trues: 0, falses: 0, times: 0, first: [], context }));
    counts.times += 1;
    if ("value" in came && came.value === true) counts.trues += 1;
    if ("value" in came && came.value === false) counts.falses += 1;
    if (counts.first.length < keptMax) counts.first.push(came);
    counts.context = context;
  }
}
