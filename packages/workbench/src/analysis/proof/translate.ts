import type { Core } from "../../../../readers/src/ir.ts";
import { arithmetic, comparison } from "./arithmetic.ts";
import { constantSym, opaqueValue } from "./values.ts";
import { foldSym } from "./fold.ts";
import { isIn, isSingle, listsEqual, sizeOf } from "./lists.ts";
import { keyWith } from "../formula/key.ts";
import { indexSym, memberSym, rootSym, selectSym } from "./members.ts";
import { merge, sameSym, type SymEvaluation, type Sym, type SymList } from "./sym.ts";
import { and, choose, not, or, type Term } from "./term.ts";
import { loweredEquals, textCall } from "./texts.ts";
import type { Bindings, Translator } from "./translator.ts";
import type { CounterTerms, SymbolicCall } from "./world.ts";

const failsNever: Term = "false";

/**
 * Translates conditions into terms. An expression without a translation is an unknown value, the same for each
 * occurrence. This is correct for the proof that contracts never differ. For an example that differs, the engine
 * confirms the result.
 */
export class ConditionTranslator implements Translator {
  readonly world: SymbolicCall;
  /** The counters of the plan that is translated, by full name. */
  readonly counters: Map<string, CounterTerms> = new Map();
  /** Keys of expressions that are not translated: their values are unknown, but they may fail. */
  readonly closed: Set<string> = new Set();
  readonly #known = new Map<string, SymEvaluation>();

  constructor(world: SymbolicCall) {
    this.world = world;
  }

  evaluate(core: Core, bound: Bindings = new Map()): SymEvaluation {
    const key = this.key(core, bound);
    return this.#known.getOrInsertComputed(key, () => {
      const made = this.closed.has(key)
        ? this.opaque(core, key, this.world.unknown(`${key} fails`))
        : this.#evaluate(core, bound, key);
      return { value: this.#short(made.value), fails: this.world.script.shareTerm("Bool", made.fails) };
    });
  }

  condition(core: Core, bound?: Bindings): { readonly isTrue: Term; readonly fails: Term } {
    const { value, fails } = this.evaluate(core, bound);
    return { isTrue: truth(value), fails };
  }

  key(core: Core, bound: Bindings): string {
    return keyWith(core, {
      variable: (slot) => bound.get(slot)?.key ?? `$${slot}`,
      counter: (name) => this.counters.get(name)?.key ?? name,
    });
  }

  #short(value: Sym): Sym {
    if (value.kind === "boolean") return { kind: "boolean", term: this.world.script.shareTerm("Bool", value.term) };
    return value.kind === "number" ? { kind: "number", term: this.world.script.shareTerm("Real", value.term) } : value;
  }

  opaque(core: Core, key: string, fails: Term): SymEvaluation {
    return { value: opaqueValue(this.world, key, core.type), fails };
  }

  #evaluate(core: Core, bound: Bindings, key: string): SymEvaluation {
    const { world } = this;
    switch (core.op) {
      case "constant":
        return { value: constantSym(world, core.value), fails: failsNever };
      case "root":
        return rootSym(world, core.root);
      case "counter": {
        const counter = this.counters.get(core.name);
        if (counter === undefined) throw new Error(`the counter ${core.name} has no terms`);
        return { value: { kind: "number", term: counter.value }, fails: counter.fails };
      }
      case "variable":
        return { value: bound.get(core.slot)?.value ?? opaqueValue(world, key, core.type), fails: failsNever };
      case "member":
      case "has":
        return memberSym(this, core, bound, key);
      case "select":
        return selectSym(this, core, bound, key);
      case "index":
        return indexSym(this, core, bound, key);
      case "not": {
        const { isTrue, fails } = this.condition(core.of, bound);
        return { value: { kind: "boolean", term: not(isTrue) }, fails };
      }
      case "negate": {
        const { value, fails } = this.evaluate(core.of, bound);
        return { value: { kind: "number", term: `(- ${numeric(value)})` }, fails };
      }
      case "and":
      case "or":
        return this.#logic(core, bound);
      case "conditional":
        return this.#conditional(core, bound, key);
      case "binary":
        return this.#binary(core, bound, key);
      case "call":
        return this.#call(core, bound, key);
      case "list":
        return this.#list(core, bound);
      case "map":
        return this.#map(core, bound, key);
      case "fold":
        return foldSym(this, core, bound, key);
      case "broken":
        return this.opaque(core, key, failsNever);
      default:
        return core satisfies never;
    }
  }

  #logic(core: Core & { op: "and" | "or" }, bound: Bindings): SymEvaluation {
    const left = this.condition(core.left, bound);
    const right = this.condition(core.right, bound);
    const isAnd = core.op === "and";
    const goesOn = isAnd ? left.isTrue : not(left.isTrue);
    const term = isAnd ? and(left.isTrue, right.isTrue) : or(left.isTrue, right.isTrue);
    return { value: { kind: "boolean", term }, fails: or(left.fails, and(goesOn, right.fails)) };
  }

  #conditional(core: Core & { op: "conditional" }, bound: Bindings, key: string): SymEvaluation {
    const test = this.condition(core.test, bound);
    const [yes, no] = [this.evaluate(core.yes, bound), this.evaluate(core.no, bound)];
    const fails = or(test.fails, choose(test.isTrue, yes.fails, no.fails));
    const value = merge(test.isTrue, yes.value, no.value, isSingle(core.type));
    return value === undefined ? this.opaque(core, key, fails) : { value, fails };
  }

  #binary(core: Core & { op: "binary" }, bound: Bindings, key: string): SymEvaluation {
    if (core.right.op === "counter" && core.right.type.kind === "memory") return this.#recall(core, bound, key);
    const [left, right] = [this.evaluate(core.left, bound), this.evaluate(core.right, bound)];
    const fails = or(left.fails, right.fails);
    switch (core.operator) {
      case "==":
      case "!=": {
        const same = this.#same(core, bound, left.value, right.value);
        return { value: { kind: "boolean", term: core.operator === "==" ? same : not(same) }, fails };
      }
      case "in": {
        const found = isIn(this.world.script, core, left.value, right.value);
        if (found === undefined) break;
        return { value: { kind: "boolean", term: found }, fails };
      }
      case "<":
      case "<=":
      case ">":
      case ">=": {
        const term = comparison(core.operator, left.value, right.value);
        if (term === undefined) break;
        return { value: { kind: "boolean", term }, fails };
      }
      default: {
        const made = arithmetic(this.world.script, core.operator, left.value, right.value);
        if (made === undefined) break;
        return { value: made.value, fails: or(fails, made.fails) };
      }
    }
    return this.opaque(core, key, fails);
  }

  #same(core: Core & { op: "binary" }, bound: Bindings, left: Sym, right: Sym): Term {
    const lists = left.kind === "list" && right.kind === "list" ? listsEqual(left, right) : undefined;
    const isOneSingle = isSingle(core.left.type) || isSingle(core.right.type);
    const same =
      lists ?? loweredEquals(this.world.script, left, right) ?? (isOneSingle ? sameSym(left, right) : undefined);
    return same ?? this.world.unknown(this.key({ ...core, operator: "==" }, bound));
  }

  /**
   * The values that a counter remembers are unknown, but the same for one value; without a session there may be none.
   */
  #recall(core: Core & { op: "binary" }, bound: Bindings, key: string): SymEvaluation {
    const { fails } = this.evaluate(core.left, bound);
    const counter = core.right.op === "counter" ? this.counters.get(core.right.name) : undefined;
    const term = this.world.unknown(key);
    return { value: { kind: "boolean", term }, fails: or(fails, counter?.fails ?? failsNever) };
  }

  #call(core: Core & { op: "call" }, bound: Bindings, key: string): SymEvaluation {
    const args = core.args.map((arg) => this.evaluate(arg, bound));
    const fails = or(...args.map((arg) => arg.fails));
    const values = args.map((arg) => arg.value);
    const value = this.#total(core, key, values);
    if (value !== undefined) return { value, fails };
    const own = total.has(core.entry.name) ? undefined : this.world.unknown(`${key} fails`);
    this.world.freeCalls.push({ core, args: values, symbol: this.world.opaque(key, core.type), fails: own });
    return this.opaque(core, key, own === undefined ? fails : or(fails, own));
  }

  /** The functions that have a translation. */
  #total(core: Core & { op: "call" }, key: string, args: readonly Sym[]): Sym | undefined {
    const [of, other] = args;
    if (of?.kind === "optional") return this.#optional(core, of, other);
    if (of?.kind === "list" && core.entry.name === "size") return sizeOf(this, of, key);
    if (core.entry.name === "timestamp" && of?.kind === "number") return of;
    return textCall(this.world.script, core, args, () => opaqueValue(this.world, key, core.type));
  }

  #optional(core: Core & { op: "call" }, of: Sym & { kind: "optional" }, fallback: Sym | undefined): Sym | undefined {
    if (core.entry.name === "hasValue") return { kind: "boolean", term: of.present };
    if (core.entry.name !== "orValue" || fallback === undefined) return undefined;
    // A member that is null counts as absent here.
    const isThere = of.value.kind === "tagged" ? and(of.present, not(`(= ${of.value.tag} 0)`)) : of.present;
    return merge(isThere, of.value, fallback, isSingle(core.type));
  }

  #list({ items }: Core & { op: "list" }, bound: Bindings): SymEvaluation {
    const found = items.map((item) => this.evaluate(item, bound));
    const value: SymList = { kind: "list", parts: found.map((item) => ({ isThere: "true", value: item.value })) };
    return { value, fails: or(...found.map(({ fails }) => fails)) };
  }

  #map(core: Core & { op: "map" }, bound: Bindings, key: string): SymEvaluation {
    const found = core.entries.map(
      ([name, value]) => [name, this.evaluate(name, bound), this.evaluate(value, bound)] as const,
    );
    const fails = or(...found.flatMap(([, name, value]) => [name.fails, value.fails]));
    const entries = new Map(
      found.flatMap(([name, , { value }]) =>
        name.op === "constant" && typeof name.value === "string" ? [[name.value, value] as const] : [],
      ),
    );
    if (entries.size === core.entries.length) return { value: { kind: "map", entries }, fails };
    return this.opaque(core, key, or(fails, this.world.unknown(`${key} fails`)));
  }
}

/** Functions that fail only if an argument does. */
const total: ReadonlySet<string> = new Set([
  "size",
  "startsWith",
  "endsWith",
  "contains",
  "lowerAscii",
  "matches",
  "orValue",
  "hasValue",
]);

/** Whether the condition is true; a value that is not a boolean never is. */
function truth(value: Sym): Term {
  if (value.kind === "boolean") return value.term;
  return value.kind === "tagged" ? and(`(= ${value.tag} 1)`, value.boolean()) : "false";
}

function numeric(value: Sym): Term {
  if (value.kind === "number") return value.term;
  return value.kind === "tagged" ? value.number() : "0.0";
}
