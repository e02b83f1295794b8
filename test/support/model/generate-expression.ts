import type { Chance } from "./chance.ts";
import { colours, numbers, texts } from "./generate-schema.ts";
import type { Expression, Macro, Operator, Schema } from "./language.ts";

export type Kind = "number" | "text" | "boolean" | "numbers" | "texts";

/** A member that a condition may read, with the members that must be proven present first. */
export interface Leaf {
  readonly root: "input" | "platform";
  readonly path: readonly string[];
  /** The optional members on its path, itself included, such as `input.a.b`. */
  readonly needs: readonly string[];
  readonly schema: Schema;
}

/** The scope of an expression: readable members, and those proven present. */
export interface Scope {
  readonly leaves: readonly Leaf[];
  /** Members that may be absent but are proven present: `platform`, `input.a.b`. */
  readonly facts: ReadonlySet<string>;
  readonly names: readonly (readonly [string, Kind])[];
  readonly limits: readonly (readonly [string, Kind])[];
  readonly counters: readonly string[];
  readonly tools: readonly string[];
  /** Whether it may read `now`. */
  readonly now: boolean;
}

export function kindOf(schema: Schema): Kind | "nullable" | "any" | "record" | "map" {
  const [type] = schema.types;
  if (schema.types.length > 1) return "nullable";
  if (typeof schema.constant === "string" || schema.oneOf !== undefined || type === "string") return "text";
  if (type === "number" || type === "integer") return "number";
  if (type === "boolean") return "boolean";
  if (type === "array") return schema.items?.types[0] === "string" ? "texts" : "numbers";
  if (type === "object") return schema.properties === undefined ? "map" : "record";
  return "any";
}

/** Returns every member of a record, at every depth. */
export function leavesOf(root: "input" | "platform", schema: Schema): readonly Leaf[] {
  const below = (of: Schema, path: readonly string[], needs: readonly string[]): readonly Leaf[] =>
    (of.properties ?? []).flatMap(([name, each]) => {
      const own = [...path, name];
      const isOptional = !(of.required ?? []).includes(name);
      const leaf = { root, path: own, needs: isOptional ? [...needs, [root, ...own].join(".")] : needs, schema: each };
      return [leaf, ...below(each, own, leaf.needs)];
    });
  return below(schema, [], root === "platform" ? ["platform"] : []);
}

export function isProven(leaf: Leaf, scope: Scope): boolean {
  return leaf.needs.every((need) => scope.facts.has(need));
}

/** `input.a.b` */
export function pathText({ root, path }: Leaf): string {
  return [root, ...path].join(".");
}

/** Numeric by its schema alone. */
export function isNotNegative({ schema }: Leaf): boolean {
  return schema.minimum === "0" || schema.exclusiveMinimum === "0";
}

export function memberAt(root: "input" | "platform", path: readonly string[]): Expression {
  return path.reduce<Expression>((of, name) => ({ kind: "member", of, name }), { kind: "root", name: root });
}

export const literal = {
  number: (text: string): Expression => ({ kind: "number", text }),
  text: (value: string): Expression => ({ kind: "text", value }),
  list: (items: readonly Expression[]): Expression => ({ kind: "list", items }),
};

export function binary(operator: Operator, left: Expression, right: Expression): Expression {
  return { kind: "binary", operator, left, right };
}

/** Makes expressions that compile in their scope. */
export class ExpressionMaker {
  readonly #chance: Chance;
  #variables = 0;

  constructor(chance: Chance) {
    this.#chance = chance;
  }

  condition(scope: Scope, depth: number): Expression {
    const chance = this.#chance;
    const { leaves } = scope;
    if (depth <= 0)
      return chance.way([
        [3, () => this.#comparison(scope, 0)],
        [1, () => this.#test(scope)],
      ]);
    const unproven = leaves.filter((leaf) => this.#isNextStep(leaf, scope));
    const both = (operator: "&&" | "||"): Expression =>
      binary(operator, this.condition(scope, depth - 1), this.condition(scope, depth - 1));
    return chance.way([
      [6, () => this.#comparison(scope, depth)],
      [2, () => this.#test(scope)],
      [1, () => both("&&")],
      [1, () => both("||")],
      [1, (): Expression => ({ kind: "not", of: this.condition(scope, depth - 1) })],
      [1, () => this.#choice(scope, depth, (inner) => this.condition(scope, inner))],
      [2, () => this.#fold(scope, depth, chance.pick<Macro>(["exists", "all", "exists_one"]))],
      [1, () => this.#ofNullable(scope, depth)],
      [unproven.length > 0 ? 4 : 0, () => this.#guarded(chance.pick(unproven), scope, depth)],
      [scope.now ? 1 : 0, () => this.#ofTime()],
    ]);
  }

  /** Only the member's own presence is unproven, so `has` may test it here. */
  #isNextStep(leaf: Leaf, { facts }: Scope): boolean {
    const [missing, ...others] = leaf.needs.filter((need) => !facts.has(need));
    return others.length === 0 && (missing === "platform" || missing === pathText(leaf));
  }

  #guarded(leaf: Leaf, scope: Scope, depth: number): Expression {
    const need = leaf.needs.find((each) => !scope.facts.has(each)) ?? "";
    const isThere: Expression =
      need === "platform"
        ? { kind: "root", name: "platform.present" }
        : { kind: "has", of: memberAt(leaf.root, leaf.path.slice(0, -1)), name: leaf.path.at(-1) ?? "" };
    const inside = { ...scope, facts: new Set([...scope.facts, need]) };
    const then = this.#about(leaf, inside, depth - 1);
    return this.#chance.way<Expression>([
      [4, () => binary("&&", isThere, then)],
      [1, () => binary("||", { kind: "not", of: isThere }, then)],
      [1, () => ({ kind: "choice", condition: isThere, yes: then, no: this.condition(scope, depth - 1) })],
      [1, () => binary("&&", isThere, this.condition(inside, depth - 1))],
      [1, () => ({ kind: "not", of: binary("&&", isThere, then) })],
    ]);
  }

  /** Returns a condition on that member, which is proven present. */
  #about(leaf: Leaf, scope: Scope, depth: number): Expression {
    const chance = this.#chance;
    const here = memberAt(leaf.root, leaf.path);
    const kind = kindOf(leaf.schema);
    if (kind === "number") return binary(this.#order(), here, this.number(scope, depth));
    if (kind === "text") return this.#ofText(here, scope);
    if (kind === "boolean") return here;
    if (kind === "numbers") return binary("in", this.number(scope, 0), here);
    if (kind === "texts") return binary("in", this.text(scope, 0), here);
    if (kind === "any") return binary(chance.pick(["==", "!="]), here, this.#anyLiteral());
    if (kind === "nullable") return binary(chance.pick(["==", "!="]), here, { kind: "null" });
    if (kind === "map") return binary("in", this.text(scope, 0), here);
    return this.condition(scope, depth);
  }

  #anyLiteral(): Expression {
    return this.#chance.pick<Expression>([
      literal.number("1"),
      literal.text("a"),
      { kind: "boolean", value: true },
      { kind: "null" },
      literal.list([literal.number("1")]),
    ]);
  }

  #order(): Operator {
    return this.#chance.pick(["<", "<=", ">", ">=", "==", "!="]);
  }

  #comparison(scope: Scope, depth: number): Expression {
    const chance = this.#chance;
    const inner = depth - 1;
    return chance.way([
      [6, () => binary(this.#order(), this.number(scope, inner), this.number(scope, inner))],
      [2, () => this.#ofText(this.text(scope, inner), scope)],
      [1, () => binary("in", this.number(scope, inner), this.list("numbers", scope, inner))],
      [1, () => binary("in", this.text(scope, inner), this.list("texts", scope, inner))],
      [
        0.5,
        () => binary(chance.pick(["==", "!="]), this.list("numbers", scope, inner), this.list("numbers", scope, 0)),
      ],
      [0.3, () => binary(chance.pick(["==", "!="]), this.condition(scope, inner), this.condition(scope, 0))],
      [0.3, () => this.#inMap(scope)],
      [0.8, () => this.#power(scope)],
    ]);
  }

  /** For a number of 400 digits, the third power is within the bounds and the fourth is not. */
  #power(scope: Scope): Expression {
    const base = this.number(scope, 0);
    const times = this.#chance.pick([3, 4]);
    const power = Array.from({ length: times }, () => base).reduce((all, each) => binary("*", all, each));
    return binary(this.#order(), power, this.number(scope, 0));
  }

  #inMap(scope: Scope): Expression {
    const entries = ["a", "b"].map((key) => [key, this.number(scope, 0)] as const);
    return binary("in", this.text(scope, 0), { kind: "map", entries });
  }

  #ofText(here: Expression, scope: Scope): Expression {
    const chance = this.#chance;
    const other = this.text(scope, 0);
    return chance.way<Expression>([
      [2, () => binary(chance.pick(["==", "!=", "<", ">="]), here, other)],
      [
        1,
        () => ({ kind: "call", name: chance.pick(["startsWith", "endsWith", "contains"]), of: here, argument: other }),
      ],
      [1, () => binary("in", here, literal.list(chance.some(texts, 0.4).map(literal.text)))],
    ]);
  }

  /** Returns the presence tests that compile now. */
  #test(scope: Scope): Expression {
    const chance = this.#chance;
    const testable = scope.leaves.filter((leaf) =>
      leaf.needs.every((need) => scope.facts.has(need) || need === pathText(leaf)),
    );
    const tests: [number, () => Expression][] = testable.map((leaf) => [
      0.5,
      () => ({ kind: "has", of: memberAt(leaf.root, leaf.path.slice(0, -1)), name: leaf.path.at(-1) ?? "" }),
    ]);
    const flags = this.#proven("boolean", scope);
    return chance.way([
      ...tests,
      ...flags.map((flag): [number, () => Expression] => [2, () => flag]),
      [1, () => ({ kind: "root", name: "platform.present" })],
      [1, () => ({ kind: "root", name: "session.present" })],
      [1, () => binary("==", { kind: "root", name: "tool" }, literal.text(chance.pick(scope.tools)))],
    ]);
  }

  #ofTime(): Expression {
    const chance = this.#chance;
    const now: Expression = { kind: "root", name: "now" };
    const moment = (): Expression => ({
      kind: "timestamp",
      text: chance.pick(["2026-03-29T01:00:00Z", "2026-10-25T02:30:00+01:00", "2026-01-01T00:00:00Z"]),
    });
    const duration = (): Expression => ({ kind: "duration", text: chance.pick(["1h", "90m", "36h", "1500ms"]) });
    const order = chance.pick<Operator>(["<", ">=", ">", "=="]);
    return chance.way([
      [2, () => binary(order, now, moment())],
      [1, () => binary(order, binary(chance.pick(["+", "-"]), now, duration()), moment())],
      [1, () => binary(order, binary("-", now, moment()), duration())],
    ]);
  }

  #ofNullable(scope: Scope, depth: number): Expression {
    const nullable = scope.leaves.filter((leaf) => isProven(leaf, scope) && kindOf(leaf.schema) === "nullable");
    if (nullable.length === 0) return this.condition(scope, depth - 1);
    const leaf = this.#chance.pick(nullable);
    const here = memberAt(leaf.root, leaf.path);
    const isNumber = leaf.schema.types.includes("number");
    const other = isNumber ? this.number(scope, depth - 1) : this.text(scope, depth - 1);
    return this.#chance.way<Expression>([
      [1, () => binary("==", here, { kind: "null" })],
      [1, () => binary(this.#chance.pick(["==", "!="]), here, other)],
      [2, () => binary("&&", binary("!=", here, { kind: "null" }), binary(">", here, other))],
      [1, () => binary("||", binary("==", here, { kind: "null" }), binary("<", here, other))],
    ]);
  }

  #fold(scope: Scope, depth: number, macro: Macro): Expression {
    const kind = this.#chance.pick(["numbers", "texts"] as const);
    const variable = `v${(this.#variables += 1)}`;
    const item = kind === "numbers" ? "number" : "text";
    const inside: Scope = { ...scope, names: [...scope.names, [variable, item]] };
    const name: Expression = { kind: "name", name: variable };
    const body =
      item === "number" ? binary(this.#order(), name, this.number(inside, depth - 1)) : this.#ofText(name, inside);
    return { kind: "fold", macro, variable, over: this.list(kind, scope, depth - 1), body };
  }

  #choice(scope: Scope, depth: number, make: (depth: number) => Expression): Expression {
    return { kind: "choice", condition: this.condition(scope, depth - 1), yes: make(depth - 1), no: make(depth - 1) };
  }

  /** Returns all members of that kind that may be read without a test. */
  #proven(kind: Kind, scope: Scope): readonly Expression[] {
    const fields = scope.leaves.filter((leaf) => kindOf(leaf.schema) === kind && isProven(leaf, scope));
    return [
      ...fields.map(({ root, path }) => memberAt(root, path)),
      ...scope.limits.filter(([, each]) => each === kind).map(([name]): Expression => ({ kind: "limit", name })),
      ...scope.names.filter(([, each]) => each === kind).map(([name]): Expression => ({ kind: "name", name })),
      ...(kind === "number" ? scope.counters.map((name): Expression => ({ kind: "counter", name })) : []),
      ...(kind === "number" ? scope.counters.map((name): Expression => ({ kind: "counter", name })) : []),
    ];
  }

  /** Returns optional members of that kind with a default, read from the last member that is proven present. */
  #withDefault(kind: Kind, scope: Scope, otherwise: () => Expression): readonly Expression[] {
    const fields = scope.leaves.filter(
      (leaf) =>
        kindOf(leaf.schema) === kind &&
        !isProven(leaf, scope) &&
        (leaf.root === "input" || scope.facts.has("platform")),
    );
    return fields.map(({ root, path, needs }) => {
      const isKnown = (length: number): boolean => {
        const prefix = [root, ...path.slice(0, length)].join(".");
        return !needs.some((need) => (prefix === need || prefix.startsWith(`${need}.`)) && !scope.facts.has(need));
      };
      let known = 0;
      while (known + 1 < path.length && isKnown(known + 1)) known += 1;
      return {
        kind: "default",
        of: memberAt(root, path.slice(0, known)),
        path: path.slice(known),
        otherwise: otherwise(),
      };
    });
  }

  number(scope: Scope, depth: number): Expression {
    const chance = this.#chance;
    const constant = (): Expression => literal.number(chance.pick(numbers));
    const read = [...this.#proven("number", scope), ...this.#withDefault("number", scope, constant)];
    const readOr = (): Expression => (read.length === 0 ? constant() : chance.pick(read));
    if (depth <= 0)
      return chance.way([
        [1, constant],
        [2, readOr],
      ]);
    const inner = depth - 1;
    const operator = chance.pick<Operator>(["+", "-", "*", "/", "%", "+", "*"]);
    return chance.way<Expression>([
      [1, constant],
      [4, readOr],
      [3, () => binary(operator, this.number(scope, inner), this.number(scope, inner))],
      [0.5, () => ({ kind: "minus", of: this.number(scope, inner) })],
      [0.5, () => this.#choice(scope, depth, (less) => this.number(scope, less))],
      [0.5, () => ({ kind: "call", name: "size", of: this.list(chance.pick(["numbers", "texts"]), scope, inner) })],
      [0.5, () => ({ kind: "call", name: "size", of: this.text(scope, inner) })],
      [
        0.5,
        () => ({ kind: "index", of: this.list("numbers", scope, inner), at: literal.number(chance.pick(["0", "1"])) }),
      ],
    ]);
  }

  text(scope: Scope, depth: number): Expression {
    const chance = this.#chance;
    const constant = (): Expression => literal.text(chance.pick(texts));
    const read = [...this.#proven("text", scope), ...this.#withDefault("text", scope, constant)];
    const readOr = (): Expression => (read.length === 0 ? constant() : chance.pick(read));
    if (depth <= 0)
      return chance.way([
        [1, constant],
        [2, readOr],
      ]);
    const inner = depth - 1;
    return chance.way<Expression>([
      [1, constant],
      [4, readOr],
      [1, () => binary("+", this.text(scope, inner), this.text(scope, inner))],
      [1, () => ({ kind: "call", name: "lowerAscii", of: this.text(scope, inner) })],
      [0.5, () => this.#choice(scope, depth, (less) => this.text(scope, less))],
      [0.5, () => ({ kind: "index", of: this.list("texts", scope, inner), at: literal.number("0") })],
    ]);
  }

  list(kind: "numbers" | "texts", scope: Scope, depth: number): Expression {
    const chance = this.#chance;
    const pool = kind === "numbers" ? numbers.map(literal.number) : [...texts, ...colours].map(literal.text);
    const constant = (): Expression => literal.list(chance.many(1, 3, () => chance.pick(pool)));
    const otherwise = (): Expression => (chance.often(0.5) ? literal.list([]) : constant());
    const read = [...this.#proven(kind, scope), ...this.#withDefault(kind, scope, otherwise)];
    const readOr = (): Expression => (read.length === 0 ? constant() : chance.pick(read));
    if (depth <= 0)
      return chance.way([
        [1, constant],
        [2, readOr],
      ]);
    return chance.way([
      [1, constant],
      [4, readOr],
      [1, () => binary("+", this.list(kind, scope, depth - 1), this.list(kind, scope, depth - 1))],
      [1, () => this.#filtered(kind, scope, depth)],
    ]);
  }

  #filtered(kind: "numbers" | "texts", scope: Scope, depth: number): Expression {
    const variable = `v${(this.#variables += 1)}`;
    const item = kind === "numbers" ? "number" : "text";
    const inside: Scope = { ...scope, names: [...scope.names, [variable, item]] };
    const over = this.list(kind, scope, depth - 1);
    const macro = this.#chance.pick(["filter", "map"] as const);
    const name: Expression = { kind: "name", name: variable };
    if (macro === "filter") {
      const body = item === "number" ? binary(this.#order(), name, this.number(inside, 0)) : this.#ofText(name, inside);
      return { kind: "fold", macro, variable, over, body };
    }
    const body =
      item === "number"
        ? binary(this.#chance.pick(["+", "*", "/"]), name, this.number(inside, 0))
        : binary("+", name, this.text(inside, 0));
    return { kind: "fold", macro, variable, over, body };
  }

  /** Returns a number that the schemas alone prove not negative, made without division. */
  notNegative(scope: Scope, depth: number): Expression {
    const chance = this.#chance;
    const constant = (): Expression => literal.number(chance.pick(numbers.filter((text) => !text.startsWith("-"))));
    const least = { ...scope, leaves: scope.leaves.filter(isNotNegative), counters: [], limits: [] };
    const read = [...this.#proven("number", least), ...this.#withDefault("number", least, constant)];
    const readOr = (): Expression => (read.length === 0 ? constant() : chance.pick(read));
    if (depth <= 0)
      return chance.way([
        [1, constant],
        [4, readOr],
      ]);
    const inner = (): Expression => this.notNegative(scope, depth - 1);
    return chance.way<Expression>([
      [5, readOr],
      [1, () => binary(chance.pick(["+", "*"]), inner(), inner())],
      [0.5, () => this.#choice({ ...scope, now: false, counters: [] }, depth, inner)],
      [0.5, () => ({ kind: "call", name: "size", of: this.text(scope, 0) })],
    ]);
  }
}
