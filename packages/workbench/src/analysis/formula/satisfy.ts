import type { Value } from "../../../../readers/src/contract.ts";
import { spellValue, walk, type Core } from "../../../../readers/src/ir.ts";
import { contradictoryTexts } from "./affixes.ts";
import { all, formulaOf, linearOf, type Choice, type Formula, type Literal, type Test } from "./formula.ts";
import { feasible, minus, constantForm, tightenBound, times, type Inequality, type Linear } from "./linear.ts";
import { constant, simplify, substitute } from "./rewrite.ts";
import { admits } from "./shapes.ts";
import { keyOf } from "./key.ts";
import { boundsOf, isWhole, shapeAt, valuesOf, withItem, type ShapeEnvironment } from "./world.ts";

/**
 * The maximum number of sets of statements to examine for one question, fifty statements each. After that the answer is
 * that they may be true together.
 */
const looksMax = 4000;

class TooHard extends Error {}

/**
 * May the statements be true together, for a call that matches its schemas? "No" is certain. "Yes" also covers statements
 * that the analysis does not understand.
 */
export function possible(
  formulas: readonly Formula[],
  world: ShapeEnvironment,
  looks: { left: number } = { left: looksMax },
): boolean {
  try {
    return search({ open: formulas, literals: [] }, { world, looks });
  } catch (error) {
    if (error instanceof TooHard) return true;
    throw error;
  }
}

interface TableauBranch {
  readonly open: readonly Formula[];
  readonly literals: readonly Literal[];
}

interface SearchContext {
  readonly world: ShapeEnvironment;
  readonly looks: { left: number };
}

/** Analytic tableau: collects the statements that are always true, then tries each alternative of the shortest "any". */
function search(branch: TableauBranch, task: SearchContext): boolean {
  const gathered = gather(branch, task);
  if (gathered === undefined) return false;
  const { literals, open } = gathered;
  const [next, ...rest] = open.toSorted((a, b) => a.parts.length - b.parts.length);
  if (next === undefined) return true;
  return next.parts.some((part) => search({ open: [...rest, part], literals }, task));
}

type Any = Formula & { readonly kind: "any" };

/**
 * All consequences that need no choice: statements that must be true, and the parts of each "any" that can still be.
 * Undefined if they exclude each other.
 */
function gather(
  { literals, open }: TableauBranch,
  task: SearchContext,
): { readonly literals: readonly Literal[]; readonly open: readonly Any[] } | undefined {
  const { forced, choices } = flatten(open);
  const known = [...literals, ...forced];
  if (forced.length > 0 && !look(known, task)) return undefined;
  const left: Any[] = [];
  for (const choice of choices) {
    const parts = findOpenParts(choice, known, task);
    if (parts === undefined) continue;
    if (parts.length === 0) return undefined;
    left.push({ kind: "any", parts });
  }
  const isSettled = left.every(({ parts }) => parts.length > 1);
  return isSettled ? { literals: known, open: left } : gather({ literals: known, open: left }, task);
}

/** The parts of an "any" that can still be true; undefined if one of them is true already. */
function findOpenParts({ parts }: Any, known: readonly Literal[], task: SearchContext): readonly Formula[] | undefined {
  if (parts.some((part) => isLiteral(part) && !look([...known, opposite(part)], task))) return undefined;
  return parts.filter((part) => !isLiteral(part) || look([...known, part], task));
}

function flatten(formulas: readonly Formula[]): {
  readonly forced: readonly Literal[];
  readonly choices: readonly Any[];
} {
  const forced: Literal[] = [];
  const choices: Any[] = [];
  const open = [...formulas];
  for (let formula = open.pop(); formula !== undefined; formula = open.pop()) {
    if (formula.kind === "all") open.push(...formula.parts);
    else if (formula.kind !== "any") forced.push(formula);
    else if (formula.parts.length === 1) open.push(...formula.parts);
    else choices.push(formula);
  }
  return { forced, choices };
}

function look(literals: readonly Literal[], task: SearchContext): boolean {
  // Texts and bounds are compared in pairs.
  task.looks.left -= 1 + literals.length ** 2 / 2500;
  if (task.looks.left < 0) throw new TooHard();
  return consistent(literals, task);
}

function isLiteral(formula: Formula): formula is Literal {
  return formula.kind !== "all" && formula.kind !== "any";
}

function opposite(literal: Literal): Literal {
  switch (literal.kind) {
    case "at-least":
      return { kind: "at-least", form: times(literal.form, -1), strict: !literal.strict };
    case "zero":
    case "nonzero":
      return { kind: literal.kind === "zero" ? "nonzero" : "zero", form: literal.form };
    case "choice":
    case "test":
      return { ...literal, positive: !literal.positive };
    default:
      return literal satisfies never;
  }
}

/** May all of these be true? */
function consistent(literals: readonly Literal[], task: SearchContext): boolean {
  const tests = literals.filter((literal) => literal.kind === "test");
  const choices = literals.filter((literal) => literal.kind === "choice");
  if (contradictory(tests)) return false;
  const candidates = candidatesOf(literals, choices, task.world);
  for (const { core, values } of candidates.values()) {
    if (!values.some((value) => fits(value, core, literals))) return false;
  }
  return !contradictoryTexts(tests, choices) && numbersFit(literals, task.world) && foldsFit(tests, task);
}

/** Is one of them both true and false? */
function contradictory(tests: readonly Test[]): boolean {
  const said = new Map<string, boolean>();
  for (const { key, positive } of tests) {
    if ((said.get(key) ?? positive) !== positive) return true;
    said.set(key, positive);
  }
  return false;
}

interface Candidates {
  readonly core: Core;
  readonly values: readonly Value[];
}

/** The remaining values of each part that has a limited set of values. */
function candidatesOf(
  literals: readonly Literal[],
  choices: readonly Choice[],
  world: ShapeEnvironment,
): ReadonlyMap<string, Candidates> {
  const found = new Map<string, Candidates>();
  for (const core of partsWithValues(literals, world))
    found.set(keyOf(core), { core, values: valuesOf(core, world) ?? [] });
  for (const { core, values, positive } of choices) {
    if (!positive) continue;
    const known = found.get(keyOf(core))?.values;
    const shape = shapeAt(core, world);
    const admitted = values.filter((value) => admits(shape, value));
    found.set(keyOf(core), {
      core,
      values: known === undefined ? admitted : admitted.filter((value) => includes(known, value)),
    });
  }
  for (const { core, values, positive } of choices) {
    const known = found.get(keyOf(core));
    if (positive || known === undefined) continue;
    found.set(keyOf(core), { core, values: known.values.filter((value) => !includes(values, value)) });
  }
  return found;
}

function includes(values: readonly Value[], value: Value): boolean {
  const key = spellValue(value);
  return values.some((other) => spellValue(other) === key);
}

/** The parts of the literals that have a list of values in their schema. */
function partsWithValues(literals: readonly Literal[], world: ShapeEnvironment): readonly Core[] {
  const found = new Map<string, Core>();
  for (const core of literals.flatMap(coresOf)) {
    for (const part of partsIn(core, world)) found.set(keyOf(part), part);
  }
  return [...found.values()];
}

function partsIn(core: Core, world: ShapeEnvironment): readonly Core[] {
  const known = partsOfWorlds.getOrInsertComputed(world, () => new WeakMap());
  return known.getOrInsertComputed(core, () =>
    [...walk(core)].filter(
      (part) =>
        (part.op === "member" || (part.op === "variable" && world.ranges.has(part.slot))) &&
        (valuesOf(part, world)?.length ?? 0) > 0,
    ),
  );
}

const partsOfWorlds = new WeakMap<ShapeEnvironment, WeakMap<Core, readonly Core[]>>();

function coresOf(literal: Literal): readonly Core[] {
  if (literal.kind === "test" || literal.kind === "choice") return [literal.core];
  return [...literal.form.terms.values()].map(({ core }) => core);
}

/** May the part have the value, by each of the literals alone? */
function fits(value: Value, part: Core, literals: readonly Literal[]): boolean {
  return literals.every((literal) => {
    if (literal.kind === "choice") return true;
    if (literal.kind === "test") {
      const made = withValue(literal.core, part, value);
      return made.op !== "constant" || (made.value === true) === literal.positive;
    }
    const form = [...literal.form.terms.values()].reduce<Linear>(
      (sum, { core, factor }) =>
        minus(sum, times(linearOf(withValue(core, part, value)), times(constantForm(factor), -1).constant)),
      constantForm(literal.form.constant),
    );
    return form.terms.size > 0 || isNumberTrue(literal.kind, form, literal.kind === "at-least" && literal.strict);
  });
}

/** The expression where the part has the value. One question asks for the same ones thousands of times. */
function withValue(core: Core, part: Core, value: Value): Core {
  const key = keyOf(part);
  const known = knownWithValue.getOrInsertComputed(core, () => new Map());
  return known.getOrInsertComputed(`${key} ${spellValue(value)}`, () =>
    simplify(
      substitute(core, (inner) => (inner.op === part.op && keyOf(inner) === key ? constant(value, inner) : undefined)),
    ),
  );
}

const knownWithValue = new WeakMap<Core, Map<string, Core>>();

function isNumberTrue(kind: "at-least" | "zero" | "nonzero", form: Linear, strict: boolean): boolean {
  const isPositive = feasible([{ form, strict: true }]);
  const isZero = !isPositive && feasible([{ form, strict: false }]);
  if (kind === "zero") return isZero;
  return kind === "nonzero" ? !isZero : isPositive || (isZero && !strict);
}

/** Do the numbers, within the bounds of their schemas, have a solution? */
function numbersFit(literals: readonly Literal[], world: ShapeEnvironment): boolean {
  const facts: Inequality[] = [];
  const nonzero: Linear[] = [];
  const terms = new Map<string, Core>();
  for (const literal of literals) {
    if (literal.kind === "test" || literal.kind === "choice") continue;
    for (const [key, { core }] of literal.form.terms) terms.set(key, core);
    if (literal.kind === "nonzero") nonzero.push(literal.form);
    else facts.push({ form: literal.form, strict: literal.kind === "at-least" && literal.strict });
    if (literal.kind === "zero") facts.push({ form: times(literal.form, -1), strict: false });
  }
  if (terms.size === 0 && facts.length + nonzero.length === 0) return true;
  for (const [key, core] of terms) facts.push(...boundsOf(key, core, world));
  const known = facts.map((fact) => tightenBound(fact, (core) => isWhole(core, world)));
  if (!feasible(known)) return false;
  const apart = (form: Linear): Inequality => tightenBound({ form, strict: true }, (core) => isWhole(core, world));
  return nonzero.every((form) => feasible([...known, apart(form)]) || feasible([...known, apart(times(form, -1))]));
}

/** An impossible item is in no list, and an item of a list is not missing. */
function foldsFit(tests: readonly Test[], { world, looks }: SearchContext): boolean {
  const folds = tests.filter(({ core }) => core.op === "fold" && core.macro === "exists");
  for (const { core, positive } of folds) {
    if (!positive || core.op !== "fold" || core.test === undefined) continue;
    const inside = withItem(world, core.slot, core.range);
    const isTrue = formulaOf(core.test);
    const denied = folds.flatMap((other) => deniedItem(other, core));
    if (!possible([isTrue, ...denied], inside, looks)) return false;
  }
  return true;
}

/** The statements that are true for no item of the same list, for this fold's item. */
function deniedItem({ core, positive }: Test, fold: Core & { op: "fold" }): readonly Formula[] {
  if (positive || core.op !== "fold" || core.test === undefined || keyOf(core.range) !== keyOf(fold.range)) return [];
  return [all(formulaOf(inSlot(core.test, core.slot, fold.slot), false))];
}

/** The test of a fold for the item of another one. */
function inSlot(test: Core, from: number, to: number): Core {
  const known = knownInSlot.getOrInsertComputed(test, () => new Map());
  return known.getOrInsertComputed(to, () =>
    substitute(test, (part) => (part.op === "variable" && part.slot === from ? { ...part, slot: to } : undefined)),
  );
}

const knownInSlot = new WeakMap<Core, Map<number, Core>>();
