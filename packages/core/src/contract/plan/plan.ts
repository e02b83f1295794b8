import type { JsonObject, KeyKind } from "../../wire/mod.ts";
import { walk, type CallCore, type Core, type FoldCore, type HostFacts, type Root } from "../core/core.ts";
import { countedFacts } from "./counted-facts.ts";
import {
  add,
  compare,
  divide,
  EvaluationError,
  floor,
  isExact,
  isInteger,
  multiply,
  negate,
  remainder,
  subtract,
  type Exact,
} from "../value/rational.ts";
import type { ContractFunction } from "../core/function.ts";
import { spellValue } from "../text/spell.ts";
import type { BinaryOperator } from "../text/syntax.ts";
import {
  Duration,
  equals,
  isList,
  Optional,
  Timestamp,
  type Value,
  type ValueList,
  type ValueMap,
} from "../value/value.ts";

/** The counters for one call. @throws {EvaluationError} if the value is unknown */
export interface CounterValues {
  value(name: string): Exact;
  /** Does a counter remember the value? */
  contains(name: string, value: Value): boolean;
}

/** For expressions that are evaluated before counters are known. */
export const noCounters: CounterValues = { value: noCounter, contains: noCounter };

function noCounter(name: string): never {
  throw new EvaluationError(`the counter ${name} cannot be read here`);
}

/** The results of parsers in one decision, by span and by text. */
type ParserResults = Map<string, Value | EvaluationError>;

/** The context of an evaluation: one call, its facts, the counters that it reads and the time. */
export interface EvaluationContext {
  readonly tool: string;
  readonly input: JsonObject;
  readonly platform: JsonObject | null;
  /** The kind of the key that sent the facts. */
  readonly keyKind: KeyKind | undefined;
  /** The facts that count, by the list of a contract: made once for a call by a host's key. */
  counted?: Map<HostFacts | undefined, JsonObject>;
  readonly hasSession: boolean;
  /** Milliseconds since the epoch: the receipt's `at`. */
  readonly now: number;
  readonly counters: CounterValues;
  /** Items of the macros that are running. */
  readonly variables: Value[];
  parsed?: ParserResults;
  /** Steps left; if an evaluation needs more, it fails. */
  steps: number;
}

/**
 * Enough for a nested pass over a thousand items. At most about a second, because slow operations are charged several
 * steps: see `exactSteps`, `divisionSteps` and `itemSteps`.
 */
export const stepsMax = 2_000_000;

/** An operation on a time, or on a number that is not a small integer: up to 10 us on integers of 4,096 bits. */
const exactSteps = 128;
/** A division of such numbers: up to 50 us, in lowest terms. */
const divisionSteps = 512;
/** An item that is compared or copied: it may be such a number. */
const itemSteps = 32;

/** A compiled expression. @throws {EvaluationError} if it cannot be evaluated: the caller's verdict is then BLOCK. */
export type Plan = (context: EvaluationContext) => Value;
type Condition = (context: EvaluationContext) => boolean;

/** Wraps the plan of each part of an expression, and observes its value: for `explain` and coverage. */
export type Probe = (core: Core, run: Plan) => Plan;

export function planCondition(core: Core, probe?: Probe): Condition {
  return asCondition(plan(core, probe));
}

/**
 * Compiles a checked expression into closures. Operands are evaluated from left to right; no evaluated operand may
 * fail.
 */
export function plan(core: Core, probe?: Probe): Plan {
  const into = (part: Core): Plan => plan(part, probe);
  return probe === undefined ? planNode(core, into) : probe(core, planNode(core, into));
}

function planNode(core: Core, into: (part: Core) => Plan): Plan {
  switch (core.op) {
    case "constant": {
      const { value } = core;
      return () => value;
    }
    case "root":
      return planRoot(core.root, core.hostFacts);
    case "counter": {
      const { name, type } = core;
      if (type.kind === "memory") return () => null;
      return ({ counters }) => counters.value(name);
    }
    case "variable": {
      const { slot } = core;
      return ({ variables }) => variables[slot] ?? null;
    }
    case "member":
      return planMember(into(core.of), core.name);
    case "has": {
      const [of, { name }] = [into(core.of), core];
      return (context) => asMap(of(context)).has(name);
    }
    case "select":
      return planSelect(into(core.of), into(core.at));
    case "index":
      return planIndex(into(core.of), into(core.at));
    case "not": {
      const of = asCondition(into(core.of));
      return (context) => !of(context);
    }
    case "negate":
      return planNegate(into(core.of));
    case "and": {
      const [left, right] = [asCondition(into(core.left)), asCondition(into(core.right))];
      return (context) => left(context) && right(context);
    }
    case "or": {
      const [left, right] = [asCondition(into(core.left)), asCondition(into(core.right))];
      return (context) => left(context) || right(context);
    }
    case "conditional": {
      const [test, yes, no] = [asCondition(into(core.test)), into(core.yes), into(core.no)];
      return (context) => (test(context) ? yes(context) : no(context));
    }
    case "binary":
      if (core.right.op === "counter" && core.right.type.kind === "memory")
        return planRecall(core.right.name, into(core.left));
      return planBinary(core.operator, into(core.left), into(core.right));
    case "call":
      return core.entry.load === undefined
        ? planCall(core.entry, core.args.map(into))
        : planParser(core, core.args.map(into));
    case "list": {
      const items = core.items.map(into);
      return (context) => items.map((item) => item(context));
    }
    case "map":
      return planMap(core.entries.map(([key, value]) => [into(key), into(value)] as const));
    case "fold":
      return planFold(core, into);
    case "broken":
      throw new Error("a contract with an error was planned");
    default:
      return core satisfies never;
  }
}

function planRecall(name: string, value: Plan): Plan {
  return (context) => {
    const item = value(context);
    spendOnAsking(context, item);
    return context.counters.contains(name, item);
  };
}

/** Charges the steps for writing a value as a key. */
export function spendOnAsking(context: EvaluationContext, value: Value): void {
  if (isHeavy(value)) spend(context, exactSteps);
}

function asCondition(run: Plan): Condition {
  return (context) => truth(run(context));
}

function planCall({ run, cost = costOfArguments }: ContractFunction, args: readonly Plan[]): Plan {
  return (context) => {
    const values = args.map((arg) => arg(context));
    spend(context, cost(values));
    return run(values);
  };
}

/**
 * A call of a parser: a decision parses a text once. The result is found again by its span, which all uses of a `let:`
 * share, or else by its texts.
 */
function planParser(core: CallCore, args: readonly Plan[]): Plan {
  const { name, run, cost = costOfArguments } = core.entry;
  const parse = (context: EvaluationContext, parsed: ParserResults): Value | EvaluationError => {
    const values = args.map((arg) => arg(context));
    const key = `${name}(${values.map(spellValue).join(" ")})`;
    const known = parsed.get(key);
    if (known !== undefined) return known;
    spend(context, cost(values));
    const found = attempt(() => run(values));
    parsed.set(key, found);
    return found;
  };
  const isFixed = ![...walk(core)].some(({ op }) => op === "variable");
  const { file, from, to } = core.span;
  const spanKey = `${file.name}:${from}:${to}`;
  return (context) => {
    const parsed = (context.parsed ??= new Map());
    let found = isFixed ? parsed.get(spanKey) : undefined;
    if (found === undefined) {
      found = parse(context, parsed);
      if (isFixed) parsed.set(spanKey, found);
    }
    if (found instanceof EvaluationError) throw found;
    return found;
  };
}

function attempt(run: () => Value): Value | EvaluationError {
  try {
    return run();
  } catch (error) {
    if (error instanceof EvaluationError) return error;
    throw error;
  }
}

function planRoot(root: Root, hostFacts: HostFacts | undefined): Plan {
  switch (root) {
    case "input":
      return ({ input }) => input;
    case "platform":
      return (context) => {
        const { platform, keyKind } = context;
        if (platform === null) throw new EvaluationError("the check has no facts");
        return keyKind === undefined ? platform : countedOnce(context, platform, hostFacts);
      };
    case "tool":
      return ({ tool }) => tool;
    case "now":
      return ({ now }) => new Timestamp(divide(now, 1000));
    case "platform.present":
      return ({ platform }) => platform !== null;
    case "session.present":
      return ({ hasSession }) => hasSession;
    default:
      return root satisfies never;
  }
}

/** A macro may read a fact thousands of times. */
function countedOnce(context: EvaluationContext, platform: JsonObject, hostFacts: HostFacts | undefined): JsonObject {
  const counted = (context.counted ??= new Map());
  const facts = counted.get(hostFacts) ?? countedFacts(platform, context.keyKind, hostFacts);
  counted.set(hostFacts, facts);
  return facts;
}

function planMember(of: Plan, name: string): Plan {
  return (context) => {
    const value = asMap(of(context)).get(name);
    if (value === undefined) throw new EvaluationError(`the member ${JSON.stringify(name)} is absent`);
    return value;
  };
}

function planSelect(of: Plan, at: Plan): Plan {
  return (context) => {
    const value = of(context);
    const owner = value instanceof Optional ? value.value : value;
    const key = at(context);
    if (owner === undefined) return new Optional(undefined);
    if (!isList(owner)) return new Optional(asMap(owner).get(key as string));
    return new Optional(isExact(key) && isInteger(key) ? owner[Number(floor(key))] : undefined);
  };
}

function planIndex(of: Plan, at: Plan): Plan {
  return (context) => {
    const owner = of(context);
    const key = at(context);
    const found = isList(owner) ? owner[listIndex(key, owner.length)] : asMap(owner).get(key as string);
    if (found === undefined)
      throw new EvaluationError(`there is nothing at ${typeof key === "string" ? JSON.stringify(key) : "that index"}`);
    return found;
  };
}

function listIndex(key: Value, items: number): number {
  if (!isExact(key) || !isInteger(key)) throw new EvaluationError("an index that is not a whole number");
  if (compare(key, 0) < 0 || compare(key, items) >= 0) throw new EvaluationError(`an index beyond the ${items} items`);
  return Number(floor(key));
}

function planNegate(of: Plan): Plan {
  return (context) => {
    const value = of(context);
    if (typeof value === "object") spend(context, exactSteps);
    return value instanceof Duration ? new Duration(negate(value.seconds)) : negate(value as Exact);
  };
}

function planMap(entries: readonly (readonly [Plan, Plan])[]): Plan {
  return (context) => {
    const map = new Map<string, Value>();
    for (const [key, value] of entries) {
      const name = key(context) as string;
      if (map.has(name)) throw new EvaluationError(`the key ${JSON.stringify(name)} appears twice`);
      map.set(name, value(context));
    }
    return map;
  };
}

function planBinary(operator: BinaryOperator, left: Plan, right: Plan): Plan {
  switch (operator) {
    case "==":
      return (context) => charge(context, left(context), right(context), equals);
    case "!=":
      return (context) => !charge(context, left(context), right(context), equals);
    case "in":
      return (context) => charge(context, left(context), right(context), isIn);
    case "<":
      return (context) => order(context, left(context), right(context)) < 0;
    case "<=":
      return (context) => order(context, left(context), right(context)) <= 0;
    case ">":
      return (context) => order(context, left(context), right(context)) > 0;
    case ">=":
      return (context) => order(context, left(context), right(context)) >= 0;
    case "+":
      return (context) => charge(context, left(context), right(context), plus);
    case "-":
      return (context) => charge(context, left(context), right(context), minus);
    case "*":
      return planArithmetic(left, right, multiply, exactSteps);
    case "/":
      return planArithmetic(left, right, divide, divisionSteps);
    case "%":
      return planArithmetic(left, right, remainder, divisionSteps);
    default:
      throw new Error(`\`${operator}\` is planned elsewhere`);
  }
}

function planArithmetic(left: Plan, right: Plan, run: (a: Exact, b: Exact) => Exact, steps: number): Plan {
  return (context) => {
    const a = left(context) as Exact;
    const b = right(context) as Exact;
    if (typeof a === "object" || typeof b === "object") spend(context, steps);
    return run(a, b);
  };
}

/** Charges the steps of an operator before it runs: plain numbers cost nothing beyond their own step. */
function charge<Result>(context: EvaluationContext, a: Value, b: Value, run: (a: Value, b: Value) => Result): Result {
  if (typeof a !== "number" || typeof b !== "number") spend(context, costOfPair(a, b));
  return run(a, b);
}

function costOfPair(a: Value, b: Value): number {
  const items = length(a) + length(b);
  if (typeof a === "string" || typeof b === "string") return items;
  if (items > 0) return items * itemSteps;
  return isHeavy(a) || isHeavy(b) ? exactSteps : 0;
}

function isHeavy(value: Value): boolean {
  return typeof value === "object" && value !== null;
}

function costOfArguments(values: readonly Value[]): number {
  let cost = 0;
  for (const value of values) cost += length(value);
  return cost;
}

function length(value: Value): number {
  if (typeof value === "string") return value.length >> 4;
  if (isList(value)) return value.length;
  return value instanceof Map ? value.size : 0;
}

function spend(context: EvaluationContext, steps: number): void {
  context.steps -= steps;
  if (context.steps < 0) throw new EvaluationError(`it needs over ${stepsMax} steps`);
}

function isIn(item: Value, range: Value): boolean {
  if (range instanceof Map) return typeof item === "string" && range.has(item);
  if (typeof item === "string") return (range as ValueList).includes(item);
  return (range as ValueList).some((other) => equals(item, other));
}

function order(context: EvaluationContext, a: Value, b: Value): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  spend(context, costOfPair(a, b));
  if (typeof a === "string") return compareText(a, b as string);
  if (a instanceof Duration || a instanceof Timestamp) return compare(a.seconds, (b as Duration | Timestamp).seconds);
  return compare(a as Exact, b as Exact);
}

/** By code points, as CEL and UTF-8 order text; JavaScript's order differs above U+FFFF. */
function compareText(a: string, b: string): number {
  if (a === b) return 0;
  let at = 0;
  while (at < a.length && a.charCodeAt(at) === b.charCodeAt(at)) at += 1;
  if (at > 0 && (a.charCodeAt(at - 1) & 0xfc00) === 0xd800) at -= 1;
  return (a.codePointAt(at) ?? -1) - (b.codePointAt(at) ?? -1);
}

function plus(a: Value, b: Value): Value {
  if (typeof a === "string") return a + (b as string);
  if (isList(a)) return [...a, ...(b as ValueList)];
  if (isExact(a)) return add(a, b as Exact);
  const seconds = add((a as Duration | Timestamp).seconds, (b as Duration | Timestamp).seconds);
  return a instanceof Timestamp || b instanceof Timestamp ? new Timestamp(seconds) : new Duration(seconds);
}

function minus(a: Value, b: Value): Value {
  if (isExact(a)) return subtract(a, b as Exact);
  const seconds = subtract((a as Duration | Timestamp).seconds, (b as Duration | Timestamp).seconds);
  return a instanceof Timestamp && b instanceof Duration ? new Timestamp(seconds) : new Duration(seconds);
}

function planFold({ macro, range, slot, test, body }: FoldCore, into: (part: Core) => Plan): Plan {
  const items = into(range);
  const isTrue = test === undefined ? () => true : asCondition(into(test));
  const make = body === undefined ? undefined : into(body);
  const each = 1 + (test === undefined ? 0 : size(test)) + (body === undefined ? 0 : size(body));
  return (context) => {
    const list = items(context);
    const found: Value[] = [];
    for (const item of isList(list) ? list : asMap(list).keys()) {
      spend(context, each);
      context.variables[slot] = item;
      const wasTrue = isTrue(context);
      if (macro === "exists" && wasTrue) return true;
      if (macro === "all" && !wasTrue) return false;
      if (wasTrue) found.push(make === undefined ? item : make(context));
    }
    if (macro === "filter" || macro === "map") return found;
    return macro === "exists_one" ? found.length === 1 : macro === "all";
  };
}

function size(core: Core): number {
  let nodes = 0;
  for (const _ of walk(core)) nodes += 1;
  return nodes;
}

function truth(value: Value): boolean {
  if (typeof value !== "boolean") throw new EvaluationError("a condition that is neither true nor false");
  return value;
}

function asMap(value: Value): ValueMap {
  if (!(value instanceof Map)) throw new EvaluationError("a member of something that is not an object");
  return value;
}
