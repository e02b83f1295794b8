import { canonical, type Canonical } from "../wire/mod.ts";
import { children, walk, type Core, type FoldCore } from "./core.ts";
import { keyValue } from "./counter-keys.ts";
import type { Report } from "./diagnostic.ts";
import { plan, type Plan, type Situation } from "./plan.ts";
import { EvaluationError } from "./rational.ts";
import { isList, type Value } from "./value.ts";

/** `value in counters.name`, inside the folds that give the value its variables, outermost first. */
export interface Asked {
  readonly counter: string;
  readonly value: Core;
  readonly folds: readonly FoldCore[];
}

/**
 * What an expression asks of counters that remember. The ledger is asked before the decision, so the values read nothing
 * that is known only then.
 */
export function askedOf(core: Core, report: Report, folds: readonly FoldCore[] = []): readonly Asked[] {
  const inside = core.op === "fold" ? [...folds, core] : folds;
  const found = children(core).flatMap((child) =>
    askedOf(child, report, core.op === "fold" && child === core.range ? folds : inside),
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
  return [...found, { counter: core.right.name, value: core.left, folds }];
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

/** Finds every value that the rules may ask for. One that cannot be evaluated is left out: the rule that asks fails. */
export function planAsked(asked: readonly Asked[]): (situation: Situation) => ReadonlySet<string> {
  const collectors = asked.map(({ value, folds }) => planCollector(plan(value), folds));
  return (situation) => {
    const values: Value[] = [];
    for (const collect of collectors) attempt(() => collect(situation, values));
    return remembered(values);
  };
}

type Collector = (situation: Situation, into: Value[]) => void;

function planCollector(value: Plan, folds: readonly FoldCore[]): Collector {
  return folds.reduceRight<Collector>(
    (inner, { range, slot }) => planEach(plan(range), slot, inner),
    (situation, into) => into.push(value(situation)),
  );
}

function planEach(range: Plan, slot: number, inner: Collector): Collector {
  return (situation, into) => {
    const items = range(situation);
    for (const item of isList(items) ? items : (items as ReadonlyMap<string, Value>).keys()) {
      situation.variables[slot] = item;
      attempt(() => inner(situation, into));
    }
  };
}

function attempt(run: () => void): void {
  try {
    run();
  } catch (error) {
    if (!(error instanceof EvaluationError)) throw error;
  }
}
