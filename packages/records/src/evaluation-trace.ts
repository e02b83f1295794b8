import { EvaluationError, type Value } from "../../core/src/contract/mod.ts";
import type { Core, Plan, Probe } from "../../core/src/contract/ir.ts";

/** One result of one part of a condition. */
export type Came = { readonly value: Value } | { readonly error: string };

/** The results of one part of a condition in one decision: in a macro, one for each item. */
export interface PartTrace {
  readonly trues: number;
  readonly falses: number;
  /** The number of evaluations. */
  readonly times: number;
  /** The first results, in order. */
  readonly first: readonly Came[];
  /** The context of the last evaluation. */
  readonly context: PlanContext;
}

type PlanContext = Parameters<Plan>[0];
type PartCounts = { -readonly [Part in keyof PartTrace]: PartTrace[Part] } & { readonly first: Came[] };

const keptMax = 8;

/** Observes the conditions of a contract that was compiled with its probe, and keeps the results of one decision. */
export class EvaluationTrace {
  readonly #seen = new Map<Core, PartCounts>();

  readonly probe: Probe = (core, run) => (context) => {
    try {
      const value = run(context);
      this.#note(core, context, { value });
      return value;
    } catch (error) {
      this.#note(core, context, {
        error: error instanceof EvaluationError ? error.message : "the engine failed",
      });
      throw error;
    }
  };

  /** Undefined if the part was not evaluated. */
  findPart(core: Core): PartTrace | undefined {
    return this.#seen.get(core);
  }

  /** The evaluated parts, in no particular order. */
  all(): Iterable<readonly [Core, PartTrace]> {
    return this.#seen;
  }

  /** Call it before the next decision. */
  forget(): void {
    this.#seen.clear();
  }

  #note(core: Core, context: PlanContext, came: Came): void {
    const counts = this.#seen.getOrInsertComputed(core, () => ({ trues: 0, falses: 0, times: 0, first: [], context }));
    counts.times += 1;
    if ("value" in came && came.value === true) counts.trues += 1;
    if ("value" in came && came.value === false) counts.falses += 1;
    if (counts.first.length < keptMax) counts.first.push(came);
    counts.context = context;
  }
}
