import { canonical, type Canonical } from "../../wire/mod.ts";
import { children, walk, type Core, type FoldCore } from "../check/core.ts";
import { keyValue } from "./keys.ts";
import type { Report } from "../text/diagnostic.ts";
import { plan, spendOnAsking, type Plan, type EvaluationContext } from "../run/plan.ts";
import { EvaluationError } from "../run/rational.ts";
import { isList, type Value } from "../run/value.ts";

/** `value in counters.name`, inside the folds that give the value its variables, outermost first. */
export interface MembershipQuery {
  readonly counter: string;
  readonly value: Core;
  readonly folds: readonly FoldCore[];
  /** It is asked by what decides nothing. */
  readonly observed: boolean;
}

/**
 * What an expression asks of counters that remember. The ledger is asked before the decision, so the values read nothing
 * that is known only then.
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
        "what is asked of a counter is known before counters are read",
        "ask for a value of `input` or `platform`",
      );
  }
  return [...found, { counter: core.right.name, value: core.left, folds, observed }];
}

/** Distinct values that one call may ask of a counter, or have it remember: each is a look-up, or an event. */
export const rememberedMax = 256;

/** The values, as texts that only equal values share. @throws {EvaluationError} where they are too many or too long */
export function remembered(values: Iterable<Value>): ReadonlySet<string> {
  const found = new Set<string>();
  for (const value of values) {
    found.add(valueText(value));
    if (found.size > rememberedMax) throw new EvaluationError(`over ${rememberedMax} values for one counter`);
  }
  return found;
}

export function valueText(value: Value): string {
  return canonical(keyValue(value));
}

/** The text of a counter's key, with a remembered value behind it. */
export function keyText(key: readonly Canonical[], value?: string): string {
  const text = canonical(key);
  return value === undefined ? text : `${text.slice(0, -1)},["value",${value}]]`;
}

/** What may be asked of a counter by one call. */
export interface CollectedValues {
  readonly values: ReadonlySet<string>;
  /** Are they all? Not where there are too many, or too many steps to them. */
  readonly complete: boolean;
}

/** What finds the values: the steps of the rules that decide, and those of the rules that observe. */
export interface LookupContexts {
  readonly deciding: EvaluationContext;
  readonly observing: EvaluationContext;
}

/**
 * Finds every value that the rules may ask for, those of the rules that decide first: the others take nothing from them.
 * A value that cannot be evaluated is left out: the rule that comes to ask for it fails by itself.
 */
export function planCollectors(asked: readonly MembershipQuery[]): (contexts: LookupContexts) => CollectedValues {
  const collectors = (of: boolean): readonly Collector[] =>
    asked.filter(({ observed }) => observed === of).map(({ value, folds }) => planCollector(plan(value), folds));
  const [first, second] = [collectors(false), collectors(true)];
  return ({ deciding, observing }) => {
    const values = new Set<string>();
    const found = first.every((collect) => collect(deciding, values));
    return { values, complete: second.every((collect) => collect(observing, values)) && found };
  };
}

/** Puts texts of values into the set. Is there more to be found? Not where the set is full, or the steps are used up. */
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
    (inner, { range, slot }) => guarded(planEach(plan(range), slot, inner)),
    guarded(planValue(value)),
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
 * Here values stand without the conditions around them, so whatever may go wrong there goes wrong here, and in more ways
 * than a rule can: a member that a condition has tested for null may be null.
 */
function guarded(collect: Collector): Collector {
  return (context, into) => {
    try {
      return collect(context, into);
    } catch {
      return context.steps >= 0;
    }
  };
}
