import { EvaluationError, type Value } from "../../../../readers/src/contract.ts";
import {
  add,
  compare,
  divide,
  Duration,
  exactText,
  floor,
  fromBigint,
  isExact,
  isInteger,
  multiply,
  negate,
  Timestamp,
  type Core,
  type Exact,
} from "../../../../readers/src/ir.ts";

/** A sum of unknown numbers, each with a factor, and a constant. */
export interface Linear {
  readonly terms: ReadonlyMap<string, LinearTerm>;
  readonly constant: Exact;
}

export interface LinearTerm {
  readonly core: Core;
  readonly factor: Exact;
}

/** `form > 0` if strict, else `form >= 0`. */
export interface Inequality {
  readonly form: Linear;
  readonly strict: boolean;
}

export function constantForm(constant: Exact): Linear {
  return { terms: new Map(), constant };
}

export function termForm(key: string, core: Core): Linear {
  return { terms: new Map([[key, { core, factor: 1 }]]), constant: 0 };
}

export function plus(a: Linear, b: Linear): Linear {
  const terms = new Map(a.terms);
  for (const [key, { core, factor }] of b.terms) {
    const sum = add(terms.get(key)?.factor ?? 0, factor);
    if (compare(sum, 0) === 0) terms.delete(key);
    else terms.set(key, { core, factor: sum });
  }
  return { terms, constant: add(a.constant, b.constant) };
}

export function times(form: Linear, by: Exact): Linear {
  if (compare(by, 0) === 0) return constantForm(0);
  const terms = new Map(
    [...form.terms].map(([key, { core, factor }]) => [key, { core, factor: multiply(factor, by) }] as const),
  );
  return { terms, constant: multiply(form.constant, by) };
}

export function minus(a: Linear, b: Linear): Linear {
  return plus(a, times(b, -1));
}

/** One text for all forms with the same terms, apart from sign, scale and the constant. */
export function formText(form: Linear): string {
  const parts = [...form.terms].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return [...parts.map(([key, { factor }]) => `${exactText(factor)}*${key}`), exactText(form.constant)].join(" + ");
}

/** The number of a value in an order: seconds for times. */
export function toExactNumber(value: Value): Exact | undefined {
  if (isExact(value)) return value;
  return value instanceof Duration || value instanceof Timestamp ? value.seconds : undefined;
}

/** Moves a bound on one whole number to the next whole number inside it. */
export function tightenBound({ form, strict }: Inequality, isWhole: (core: Core) => boolean): Inequality {
  const [[key, term] = []] = form.terms;
  if (key === undefined || term === undefined || form.terms.size > 1 || !isWhole(term.core)) return { form, strict };
  const scaled = times(form, divide(1, compare(term.factor, 0) < 0 ? negate(term.factor) : term.factor));
  // x + c > 0 is x >= floor(-c) + 1 for a whole x; the same is true for -x.
  const edge = negate(scaled.constant);
  const least = strict || !isInteger(edge) ? add(fromBigint(floor(edge)), 1) : edge;
  return { form: { terms: scaled.terms, constant: negate(least) }, strict: false };
}

/** With more inequalities the answer is that they may be true together. */
const inequalitiesMax = 300;

/**
 * May the inequalities be true together? Uses Fourier-Motzkin elimination over exact fractions. "No" is certain. "Yes" is
 * certain for fractions, unless there are too many inequalities.
 */
export function feasible(inequalities: readonly Inequality[]): boolean {
  try {
    return eliminate(distinct(inequalities));
  } catch (error) {
    if (error instanceof EvaluationError) return true;
    throw error;
  }
}

function eliminate(inequalities: readonly Inequality[]): boolean {
  let open = inequalities;
  while (open.length <= inequalitiesMax) {
    if (open.some(isContradiction)) return false;
    const key = cheapest(open);
    if (key === undefined) return true;
    open = distinct(without(open, key));
  }
  return true;
}

function isContradiction({ form, strict }: Inequality): boolean {
  if (form.terms.size > 0) return false;
  const sign = compare(form.constant, 0);
  return strict ? sign <= 0 : sign < 0;
}

/** The term whose elimination creates the fewest new inequalities. */
function cheapest(inequalities: readonly Inequality[]): string | undefined {
  const counts = new Map<string, { up: number; down: number }>();
  for (const { form } of inequalities) {
    for (const [key, { factor }] of form.terms) {
      const count = counts.getOrInsertComputed(key, () => ({ up: 0, down: 0 }));
      if (compare(factor, 0) > 0) count.up += 1;
      else count.down += 1;
    }
  }
  return [...counts].toSorted(([, a], [, b]) => a.up * a.down - b.up * b.down)[0]?.[0];
}

function without(inequalities: readonly Inequality[], key: string): readonly Inequality[] {
  const factorOf = ({ form }: Inequality): Exact => form.terms.get(key)?.factor ?? 0;
  const ups = inequalities.filter((each) => compare(factorOf(each), 0) > 0);
  const downs = inequalities.filter((each) => compare(factorOf(each), 0) < 0);
  const rest = inequalities.filter((each) => compare(factorOf(each), 0) === 0);
  const joined = ups.flatMap((up) =>
    downs.map((down): Inequality => {
      const [a, b] = [divide(1, factorOf(up)), divide(1, negate(factorOf(down)))];
      return { form: plus(times(up.form, a), times(down.form, b)), strict: up.strict || down.strict };
    }),
  );
  return [...rest, ...joined];
}

function distinct(inequalities: readonly Inequality[]): readonly Inequality[] {
  const found = new Map(inequalities.map((each) => [`${each.strict} ${formText(each.form)}`, each]));
  return [...found.values()];
}
