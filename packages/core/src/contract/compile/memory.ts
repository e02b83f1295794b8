import { children, walk, type Core, type FoldCore } from "../core/core.ts";
import { rememberedMax, valueText } from "../core/key-text.ts";
import type { Report } from "../text/diagnostic.ts";
import { plan, spendOnAsking, type Plan, type EvaluationContext } from "../plan/plan.ts";
import { isList, type Value } from "../value/value.ts";

/** `value in counters.name`, inside the macros that bind the value's variables, outermost first. */
export interface MembershipQuery {
  readonly counter: string;
  readonly value: Core;
  readonly folds: readonly FoldCore[];
  /** Only observing rules look it up. */
  readonly observed: boolean;
}

/**
 * The values that an expression looks up in remembering counters. The lookup precedes the decision, so these values do
 * not depend on anything that only the decision knows.
 */
export function membershipQueries(
  core: Core,
  report: Report,
  { observed, folds = [] }: { readonly observed: boolean; readonly folds?: readonly FoldCore[] },
): readonly MembershipQuery[] {
  const inside = core.op === "fold" ? [...folds, core] : folds;
  const found = children(core).flatMap((child) =>
    membershipQueries(child, report, { observed, folds: core.op === "fold" && child === core.range ? folds : inside }),
  );
  if (core.op !== "binary" || core.operator !== "in" || core.right.op !== "counter") return found;
  if (core.right.type.kind !== "memory") return found;
  for (const part of [core.left, ...folds.map(({ range }) => range)]) {
    const early = [...walk(part)].find(({ op }) => op === "counter");
    if (early !== undefined)
      report.add(
        "counter",
        early.span,
        "a value looked up in a counter cannot depend on another counter",
        "look up a value of `input` or `platform`",
      );
  }
  return [...found, { counter: core.right.name, value: core.left, folds, observed }];
}

/** The values that one call may look up in a counter. */
export interface CollectedValues {
  readonly values: ReadonlySet<string>;
  /** Are these all values? False if there are too many, or if finding them takes too many steps. */
  readonly complete: boolean;
}

/** The contexts for finding the values: the steps of the rules that decide, and the steps of the rules that observe. */
export interface LookupContexts {
  readonly deciding: EvaluationContext;
  readonly observing: EvaluationContext;
}

/**
 * Finds every value that the rules may look up. Deciding rules come first, so observing rules take nothing from them.
 * It skips a value that cannot be evaluated: the rule that looks it up then fails.
 */
export function planCollectors(queries: readonly MembershipQuery[]): (contexts: LookupContexts) => CollectedValues {
  const collectors = (of: boolean): readonly Collector[] =>
    queries.filter(({ observed }) => observed === of).map(({ value, folds }) => planCollector(plan(value), folds));
  const [first, second] = [collectors(false), collectors(true)];
  return ({ deciding, observing }) => {
    const values = new Set<string>();
    const found = first.every((collect) => collect(deciding, values));
    return { values, complete: second.every((collect) => collect(observing, values)) && found };
  };
}

/** Adds texts of values to the set. Returns whether it may find more: false if the set is full or no steps are left. */
type Collector = (context: EvaluationContext, into: Set<string>) => boolean;

function planValue(value: Plan): Collector {
  return (context, into) => {
    const item = value(context);
    spendOnAsking(context, item);
    const text = valueText(item);
    if (into.size >= rememberedMax && !into.has(text)) return false;
    into.add(text);
    return true;
  };
}

function planCollector(value: Plan, folds: readonly FoldCore[]): Collector {
  return folds.reduceRight<Collector>(
    (inner, { range, slot }) => guardCollector(planEach(plan(range), slot, inner)),
    guardCollector(planValue(value)),
  );
}

function planEach(range: Plan, slot: number, inner: Collector): Collector {
  return (context, into) => {
    const items = range(context);
    for (const item of isList(items) ? items : (items as ReadonlyMap<string, Value>).keys()) {
      context.steps -= 1;
      context.variables[slot] = item;
      if (context.steps < 0 || !inner(context, into)) return false;
    }
    return true;
  };
}

/**
 * Values are evaluated here without the conditions around them, so they can fail in more ways than in their rule. For
 * example, a member that a condition tests for null may be null here.
 */
function guardCollector(collect: Collector): Collector {
  return (context, into) => {
    try {
      return collect(context, into);
    } catch {
      return context.steps >= 0;
    }
  };
}
