import type { ToolPlan } from "../../../../readers/src/ir.ts";
import type { SampleCall, ChangeDirection } from "./call.ts";
import { textsOf } from "./guess.ts";
import { decimalOf, isDecimal, jsonAt, readModel } from "./model.ts";
import type { ListView } from "./symbolic-value.ts";
import { and, not, or, type Term } from "./term.ts";
import { ConditionTranslator } from "./translate.ts";
import { closeShared, declareCounters, PlanTerms, type VerdictTerms } from "./verdict-terms.ts";
import { restrictFreeCalls } from "./untranslated.ts";
import { SymbolicCall } from "./world.ts";

/** Two plans of one tool over the same unknown call, ready for the solver. */
export interface SolverQuestion {
  /**
   * For the solver: a call that satisfies the text is decided differently, in that direction. With `only`, functions
   * without a translation are called only with arguments that were tried: those of one round, or any of them.
   */
  readonly text: (direction: ChangeDirection, only?: { readonly round: number | undefined }) => string;
  /** The called functions that have no translation. */
  readonly freeFunctions: ReadonlySet<string>;
  readonly constants: readonly Term[];
  /** Everything is translated exactly: the engine decides a model's call as the question predicts. */
  readonly isExact: boolean;
  /** The question leaves out some calls: if no model fulfils it, that proves nothing. */
  readonly leavesOut: boolean;
  /** Counters that the plans define differently, by full name. */
  readonly redefined: readonly string[];
  /** The call of a model, and whether it represents the model exactly: some numbers are not decimals. */
  readonly call: (model: string) => { readonly call: SampleCall; readonly isFaithful: boolean };
}

/**
 * How closely the plans are examined. `words` treats expressions with the same spelling in both as unknown values,
 * which is fast and enough if little differs. Every other `Detail` translates all expressions.
 */
export type Detail = ListView | "words";

export function questionOf(before: ToolPlan, after: ToolPlan, detail: Detail): SolverQuestion {
  const world = new SymbolicCall(before.tool, detail === "words" ? "any" : detail);
  const sides = [before, after].map((plan) => [plan, new ConditionTranslator(world)] as const);
  const redefined = declareCounters(sides);
  const closed = detail === "words" ? closeShared(sides) : undefined;
  const terms = sides.map(([plan, translator]) => new PlanTerms(plan, translator, closed));
  for (const each of terms) each.declare();
  const [a, b] = terms.map((each) => each.verdict());
  world.settle();
  if (a === undefined || b === undefined) throw new Error("a question is about two plans");
  const known = world.script.text();
  const counters = new Map(
    sides.flatMap(([, translator]) => [...translator.counters.values()].map(({ key, free }) => [key, free])),
  );
  return {
    text: (direction, only) =>
      [
        known,
        ...(only === undefined
          ? []
          : [`(assert ${restrictFreeCalls(world.freeCalls, textsOf([before, after]), only.round)})`]),
        `(assert ${direction === "weaker" ? isLess(b, a) : isLess(a, b)})`,
      ].join("\n"),
    freeFunctions: new Set(world.freeCalls.map(({ core }) => core.entry.name)),
    constants: world.script.constants,
    isExact: world.isExact,
    leavesOut: world.leavesOut,
    redefined,
    call: (model) => readSampleCall(world, counters, model),
  };
}

/** The first verdict is more lenient than the second. */
function isLess(first: VerdictTerms, second: VerdictTerms): Term {
  const escalatesOnly = and(second.escalates, not(first.escalates));
  return and(not(first.blocks), or(second.blocks, escalatesOnly));
}

function readSampleCall(
  world: SymbolicCall,
  counters: ReadonlyMap<string, Term>,
  text: string,
): ReturnType<SolverQuestion["call"]> {
  const model = readModel(text);
  const decimal = (term: Term): string | undefined => {
    const value = model.get(term);
    return typeof value === "object" ? decimalOf(value) : undefined;
  };
  const call: SampleCall = {
    tool: world.tool,
    input: jsonAt(world.input, model),
    platform: model.get(world.hasPlatform) === true ? jsonAt(world.platform, model) : null,
    hasSession: model.get(world.hasSession) === true,
    now: Number(decimal(world.now) ?? "0"),
    counters: new Map([...counters].map(([key, free]) => [key, decimal(free) ?? "0"])),
  };
  const isFaithful = world.script.constants.every((name) => isDecimal(model.get(name)));
  return { call, isFaithful };
}
