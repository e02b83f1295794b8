import type { Core } from "../../../../readers/src/ir.ts";
import { arithmetic, comparison } from "./arithmetic.ts";
import { constantSym, opaqueValue, symAt } from "./values.ts";
import { foldSym } from "./fold.ts";
import { evaluateIndex, isIn, isSingle, listsEqual, sizeOf } from "./lists.ts";
import { keyWith } from "../formula/key.ts";
import { merge, sameSym, type SymEvaluation, type Sym, type SymList } from "./sym.ts";
import { and, choose, not, or, type Term } from "./term.ts";
import { loweredEquals, textCall } from "./texts.ts";
import type { CounterTerms, SymbolicCall } from "./world.ts";

/** An item of a current fold. */
export interface Binding {
  readonly value: Sym;
  readonly key: string;
}

export type Bindings = ReadonlyMap<number, Binding>;

const failsNever: Term = "false";

/**
 * Translates conditions into terms. An expression without a translation is an unknown value, the same for each
 * occurrence. This is correct for the proof that contracts never differ. For an example that differs, the engine
 * confirms the result.
 */
export class Translator {
  readonly world: SymbolicCall;
  /** The counters of the plan that is translated, by full name. */
  readonly counters: Map<string, CounterTerms> = new Map();
  /** Keys of expressions that are not translated: their values are unknown, but they may fail. */
  readonly closed: Set<string> = new Set();
  readonly #known = new Map<string, SymEvaluation>();

  constructor(world: SymbolicCall) {
    this.world = world;
  }

  /** @param bound the values for the variables of the folds around it */
  evaluate(core: Core, bound: Bindings = new Map()): SymEvaluation {
    const key = this.key(core, bound);
    return this.#known.getOrInsertComputed(key, () => {
      const made = this.closed.has(key)
        ? this.opaque(core, key, this.world.unknown(`${key} fails`))
        : this.#evaluate(core, bound, key);
      return { value: this.#short(made.value), fails: this.world.script.shareTerm("Bool", made.fails) };
    });
  }

  /** A condition: when it is true, and when it fails. */
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

  /** A value of which only the type is known; it may fail if one of its parts does. */
  opaque(core: Core, key: string, fails: Term): SymEvaluation {
    return { value: opaqueValue(this.world, key, core.type), fails };
  }

  #evaluate(core: Core, bound: Bindings, key: string): SymEvaluation {
    const { world } = this;
    switch (core.op) {
      case "constant":
        return { value: constantSym(world, core.value), fails: failsNever };
      case "root":
        return { value: this.#root(core.root), fails: core.root === "platform" ? not(world.hasPlatform) : failsNever };
      case "counter":
        return this.#counter(core.name);
      case "variable":
        return { value: bound.get(core.slot)?.value ?? opaqueValue(world, key, core.type), fails: failsNever };
      case "member":
      case "has":
        return this.#member(core, bound, key);
      case "select":
        return this.#select(core, bound, key);
      case "index":
        return this.#index(core, bound, key);
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

  #root(root: (Core & { op: "root" })["root"]): Sym {
    const { world } = this;
    switch (root) {
      case "input":
        return symAt(world.input, { kind: "any" });
      case "platform":
        return symAt(world.platform, { kind: "any" });
      case "tool":
        return constantSym(world, world.tool);
      case "now":
        return { kind: "number", term: `(/ (to_real ${world.now}) 1000.0)` };
      case "platform.present":
        return { kind: "boolean", term: world.hasPlatform };
      case "session.present":
        return { kind: "boolean", term: world.hasSession };
      default:
        return root satisfies never;
    }
  }

  #counter(name: string): SymEvaluation {
    const counter = this.counters.get(name);
    if (counter === undefined) throw new Error(`the counter ${name} has no terms`);
    return { value: { kind: "number", term: counter.value }, fails: counter.fails };
  }

  #member(core: Core & { op: "member" | "has" }, bound: Bindings, key: string): SymEvaluation {
    const { value: owner, fails } = this.evaluate(core.of, bound);
    if (owner.kind === "map" && core.op === "member") {
      const value = owner.entries.get(core.name);
      if (value !== undefined) return { value, fails };
    }
    if (owner.kind !== "tagged" || owner.symbol === undefined) return this.opaque(core, key, fails);
    const { present, symbol } = owner.symbol.member(core.name);
    if (core.op === "has") return { value: { kind: "boolean", term: present }, fails };
    return { value: symAt(symbol, core.type), fails: or(fails, not(present)) };
  }

  #select(core: Core & { op: "select" }, bound: Bindings, key: string): SymEvaluation {
    const of = this.evaluate(core.of, bound);
    const at = this.evaluate(core.at, bound);
    const fails = or(of.fails, at.fails);
    const type = core.type.kind === "optional" ? core.type.of : core.type;
    const [owner, present] = of.value.kind === "optional" ? [of.value.value, of.value.present] : [of.value, "true"];
    if (owner.kind === "list") {
      const found = evaluateIndex(this, owner, { at: at.value, key, type });
      return {
        value: { kind: "optional", present: and(present, not(found.fails)), value: found.value },
        fails,
      };
    }
    const name = core.at.op === "constant" && typeof core.at.value === "string" ? core.at.value : undefined;
    if (owner.kind === "tagged" && owner.symbol !== undefined && name !== undefined) {
      const member = owner.symbol.member(name);
      const value = symAt(member.symbol, type);
      return { value: { kind: "optional", present: and(present, member.present), value }, fails };
    }
    const unknown = this.world.unknown(`${key} present`);
    return { value: { kind: "optional", present: unknown, value: opaqueValue(this.world, key, type) }, fails };
  }

  #index(core: Core & { op: "index" }, bound: Bindings, key: string): SymEvaluation {
    const of = this.evaluate(core.of, bound);
    const at = this.evaluate(core.at, bound);
    const fails = or(of.fails, at.fails);
    if (of.value.kind !== "list") return this.opaque(core, key, or(fails, this.world.unknown(`${key} fails`)));
    const found = evaluateIndex(this, of.value, { at: at.value, key, type: core.type });
    return { value: found.value, fails: or(fails, found.fails) };
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
