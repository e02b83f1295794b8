import type { Value } from "../../../../readers/src/contract.ts";
import { compare, isExact, isInteger, type Core, type Exact } from "../../../../readers/src/ir.ts";
import { constantForm, minus, plus, termForm, times, type Inequality } from "./linear.ts";
import { isWholeShape, itemShape, listedValues, memberShape, numberUnder, type Shape } from "./shapes.ts";

/**
 * The facts known about a call before its conditions are read: the schemas of one tool, and which counters count calls.
 */
export interface ShapeEnvironment {
  readonly input: Shape | undefined;
  readonly platform: Shape | undefined;
  /**
   * The lists that contain the items of the current folds, by slot, each with the world outside of its fold. A fold inside of
   * another expression may have the same slot, so a list must not be read in the world of its own item.
   */
  readonly ranges: ReadonlyMap<number, { readonly range: Core; readonly outside: ShapeEnvironment }>;
  /** Counters of whole numbers: those without a `sum`. */
  readonly whole: ReadonlySet<string>;
}

/** The schema of the member that an expression reads, if there is one. */
export function shapeAt(core: Core, world: ShapeEnvironment): Shape | undefined {
  switch (core.op) {
    case "root":
      return core.root === "input" ? world.input : core.root === "platform" ? world.platform : undefined;
    case "member":
      return memberShape(shapeAt(core.of, world), core.name);
    case "index":
      return core.of.type.kind === "list" ? itemShape(shapeAt(core.of, world)) : undefined;
    case "variable": {
      const found = world.ranges.get(core.slot);
      return found?.range.type.kind === "list" ? itemShape(shapeAt(found.range, found.outside)) : undefined;
    }
    case "fold":
      return core.macro === "filter" ? shapeAt(core.range, world) : undefined;
    default:
      return undefined;
  }
}

export function withItem(world: ShapeEnvironment, slot: number, range: Core): ShapeEnvironment {
  return { ...world, ranges: new Map([...world.ranges, [slot, { range, outside: world }]]) };
}

export function isWhole(core: Core, world: ShapeEnvironment): boolean {
  if (core.op === "counter") return world.whole.has(core.name);
  if (core.op === "constant") return isExact(core.value) && isInteger(core.value);
  if (core.op === "call") return core.entry.name === "size";
  if (core.op === "binary")
    return ["+", "-", "*"].includes(core.operator) && isWhole(core.left, world) && isWhole(core.right, world);
  return isWholeShape(shapeAt(core, world));
}

/** The inequalities that are true for a number in every call: from its schema, and from its kind. */
export function boundsOf(key: string, core: Core, world: ShapeEnvironment): readonly Inequality[] {
  const form = termForm(key, core);
  const least = (bound: Exact, strict = false): Inequality => ({ form: minus(form, constantForm(bound)), strict });
  const most = (bound: Exact, strict = false): Inequality => ({ form: minus(constantForm(bound), form), strict });
  const found = isNeverNegative(core) ? [least(0)] : [];
  if (core.op === "call" && core.entry.name === "size")
    return [...found, ...sizeBounds(core.args[0], world, least, most)];
  if (core.op === "binary" && core.operator === "%" && core.right.op === "constant" && isExact(core.right.value)) {
    const by = core.right.value;
    const size = compare(by, 0) < 0 ? times(constantForm(by), -1).constant : by;
    return [...found, most(size, true), { form: plus(form, constantForm(size)), strict: true }];
  }
  const shape = shapeAt(core, world);
  if (shape === undefined) return found;
  for (const [keyword, make, strict] of [
    ["minimum", least, false],
    ["exclusiveMinimum", least, true],
    ["maximum", most, false],
    ["exclusiveMaximum", most, true],
  ] as const) {
    const bound = numberUnder(shape, keyword);
    if (bound !== undefined) found.push(make(bound, strict));
  }
  const listed = listedValues(shape, core)?.filter(isExact).toSorted(compare) ?? [];
  const [first, last] = [listed[0], listed.at(-1)];
  if (first !== undefined && last !== undefined) found.push(least(first), most(last));
  return found;
}

function isNeverNegative({ type, op }: Core): boolean {
  return op === "counter" || (type.kind === "number" && type.notNegative);
}

type InequalityBuilder = (bound: Exact, strict?: boolean) => Inequality;

function sizeBounds(
  of: Core | undefined,
  world: ShapeEnvironment,
  least: InequalityBuilder,
  most: InequalityBuilder,
): readonly Inequality[] {
  if (of === undefined) return [];
  const shape = shapeAt(of, world);
  const [low, high] = of.type.kind === "list" ? ["minItems", "maxItems"] : ["minLength", "maxLength"];
  const found: Inequality[] = [];
  if (of.type.kind === "list" && of.type.maxItems !== undefined) found.push(most(of.type.maxItems));
  const [from, to] = shape === undefined ? [] : [numberUnder(shape, low ?? ""), numberUnder(shape, high ?? "")];
  if (from !== undefined) found.push(least(from));
  if (to !== undefined) found.push(most(to));
  return found;
}

/** The values that an expression may have if its schema lists them. */
export function valuesOf(core: Core, world: ShapeEnvironment): readonly Value[] | undefined {
  return listedValues(shapeAt(core, world), core);
}
