import type { Chance } from "./chance.ts";
import {
  binary,
  ExpressionMaker,
  isNotNegative,
  isProven,
  kindOf,
  leavesOf,
  literal,
  memberAt,
  pathText,
  type Kind,
  type Leaf,
  type Scope,
} from "./generate-expression.ts";
import { colours, recordOf, type Members } from "./generate-schema.ts";
import type {
  Contract,
  Counter,
  Expression,
  Json,
  Limit,
  Per,
  Reason,
  Requirement,
  Rule,
  Schema,
  Setting,
  Tool,
  Verdict,
  Window,
} from "./language.ts";
import { names, reads } from "./walk.ts";

/** The shared part of a scenario's contracts: one name has one meaning, so that one call can suit them all. */
export interface Ground {
  readonly tools: readonly (readonly [string, Schema])[];
  readonly facts: Members;
  readonly settings: readonly Setting[];
}

export const verdicts: readonly Verdict[] = ["ALLOW", "ESCALATE", "BLOCK"];
const present: Expression = { kind: "root", name: "platform.present" };
const inSession: Expression = { kind: "root", name: "session.present" };

export const limitPool: readonly (readonly [string, Kind, Limit])[] = [
  ["most", "number", { name: "most", value: { num: "5" } }],
  ["least", "number", { name: "least", value: { num: "0.5" }, min: "0", max: "9.5" }],
  ["below", "number", { name: "below", value: { num: "-2" }, max: "3" }],
  ["word", "text", { name: "word", value: "abc" }],
  ["strict", "boolean", { name: "strict", value: true }],
  ["words", "texts", { name: "words", value: ["a", "red", "é"] }],
  ["steps", "numbers", { name: "steps", value: [{ num: "0" }, { num: "1.5" }, { num: "3" }] }],
];

/** Returns a value to which a mandate may set the limit. */
export function settingFor(chance: Chance, limit: Limit): Json {
  const values: Readonly<Record<string, readonly Json[]>> = {
    most: [{ num: "2.25" }, { num: "10" }, { num: "-1" }],
    least: [{ num: "0" }, { num: "9.50" }, { num: "1e0" }],
    below: [{ num: "3" }, { num: "-2.5" }],
    word: ["red", ""],
    strict: [false],
    words: [["b"], []],
    steps: [[{ num: "0.1" }, { num: "2" }], [{ num: "0" }]],
  };
  return chance.pick(values[limit.name] ?? [limit.value]);
}

export function limits(chance: Chance): readonly Limit[] {
  return chance.some(limitPool, 0.5).map(([, , limit]) => limit);
}

export interface Draft {
  readonly name: string;
  readonly limits: readonly (readonly [string, Kind])[];
  readonly platform: Schema | undefined;
  readonly tools: readonly Tool[];
  readonly requires: readonly Requirement[];
}

export function makeContract(chance: Chance, name: string, ground: Ground, contractLimits: readonly Limit[]): Contract {
  const maker = new ExpressionMaker(chance);
  const platform = chance.often(0.8) ? platformSchema(chance, ground.facts) : undefined;
  const kinds = limitPool
    .filter(([limit]) => contractLimits.some((each) => each.name === limit))
    .map(([limit, kind]) => [limit, kind] as const);
  const listed = chance.some(ground.tools, 0.75);
  const tools = (listed.length === 0 ? ground.tools.slice(0, 1) : listed).map(([tool, input]): Tool => ({
    name: tool,
    input: variation(chance, input),
    requires: [],
    otherwise: chance.pick(["ALLOW", "ALLOW", "ALLOW", "ESCALATE", "BLOCK"]),
  }));
  const bare: Draft = { name, limits: kinds, platform, tools, requires: [] };
  const requires = chance.often(0.25) ? requirements(chance, maker, bare, tools) : [];
  const draft: Draft = { ...bare, requires };
  const withRequires = tools.map((tool) => ({ ...tool, requires: requirements(chance, maker, draft, [tool]) }));
  const whole: Draft = { ...draft, tools: withRequires };
  const counters = chance.many(0, 4, (index) => counter(chance, maker, whole, `c${index}`));
  const lets = chance.many(0, 2, (index) => aLet(chance, maker, whole, `let${index}`));
  const rules = chance.many(1, 6, (index) => rule(chance, maker, whole, { counters, lets, name: `r${index}` }));
  return {
    name,
    limits: contractLimits,
    ...(platform === undefined ? {} : { platform }),
    requires,
    lets: lets
      .filter(([letName]) => rules.some((each) => usesName(each, letName)))
      .map(([letName, expression]) => [letName, expression] as const),
    tools: withRequires,
    counters,
    rules,
  };
}

/** Removes unused names, because they do not compile. */
function usesName({ when, lets }: Pick<Rule, "when" | "lets">, name: string): boolean {
  return [when, ...lets.map(([, expression]) => expression)].some((each) => names(each).has(name));
}

/** Returns the same schema, sometimes with another bound, or open and without one of its members. */
function variation(chance: Chance, schema: Schema): Schema {
  const properties = (schema.properties ?? []).map(([name, each]): readonly [string, Schema] => {
    if (each.minimum === undefined || !chance.often(0.1)) return [name, each];
    const { minimum, ...rest } = each;
    return [name, { ...rest, exclusiveMinimum: minimum }];
  });
  if (!chance.often(0.15)) return { ...schema, properties };
  const kept = properties.filter(() => chance.often(0.8));
  const required = (schema.required ?? []).filter((name) => kept.some(([each]) => each === name));
  return { ...schema, additional: true, properties: kept, required };
}

function platformSchema(chance: Chance, facts: Members): Schema {
  const schema = recordOf(chance, facts, undefined);
  const asOf: readonly [string, Schema] = ["as_of", { types: [chance.pick(["integer", "number"] as const)] }];
  return {
    ...schema,
    properties: [...(schema.properties ?? []), asOf],
    required: [...(schema.required ?? []), ...(chance.often(0.8) ? ["as_of"] : [])],
  };
}

/** Returns the members that may be read of a call by any of these tools. */
export function scopeOf(draft: Draft, tools: readonly Tool[], facts: ReadonlySet<string>): Scope {
  const each = tools.map(({ input }) => leavesOf("input", input));
  const shared = (each[0] ?? []).flatMap((leaf): readonly Leaf[] => {
    const same = each.map((leaves) => leaves.find(({ path }) => path.join(".") === leaf.path.join(".")));
    if (!same.every((other) => other !== undefined)) return [];
    const needs = [...new Set(same.flatMap((other) => other.needs))];
    return [{ ...leaf, needs: needs.toSorted((a, b) => a.length - b.length), schema: loosest(same, leaf).schema }];
  });
  const platform = draft.platform === undefined ? [] : leavesOf("platform", draft.platform);
  return {
    leaves: [...shared, ...platform],
    facts,
    names: [],
    limits: draft.limits,
    counters: [],
    tools: draft.tools.map(({ name }) => name),
    now: true,
  };
}

function loosest(leaves: readonly Leaf[], fallback: Leaf): Leaf {
  return leaves.find((leaf) => !isNotNegative(leaf)) ?? fallback;
}

/** Returns the facts that a requirement proves for all later parts. */
function proves(when: Expression): readonly string[] {
  if (when.kind === "root" && when.name === "platform.present") return ["platform"];
  if (when.kind === "binary" && when.operator === "&&") return [...proves(when.left), ...proves(when.right)];
  if (when.kind !== "has") return [];
  const path = pathOf(when.of);
  return path === undefined ? [] : [`${path}.${when.name}`];
}

function pathOf(expression: Expression): string | undefined {
  if (expression.kind === "root") return expression.name;
  if (expression.kind !== "member") return undefined;
  const path = pathOf(expression.of);
  return path === undefined ? undefined : `${path}.${expression.name}`;
}

const rootsOnPresence = (when: Expression): boolean =>
  when.kind === "root" ? when !== inSession : when.kind === "binary" && when.operator === "&&";

/** Returns the facts that are valid for every one of the tools: by requirements on presence alone, or by all of them. */
export function factsOf(draft: Draft, tools: readonly Tool[], onPresence: boolean): ReadonlySet<string> {
  const sets = tools.map((tool) => {
    const all = [...draft.requires, ...tool.requires].map(({ when }) => when);
    return new Set(all.filter((when) => !onPresence || rootsOnPresence(when)).flatMap(proves));
  });
  const [first = new Set<string>(), ...rest] = sets;
  return new Set([...first].filter((fact) => rest.every((set) => set.has(fact))));
}

function requirements(
  chance: Chance,
  maker: ExpressionMaker,
  draft: Draft,
  tools: readonly Tool[],
): readonly Requirement[] {
  const made: Requirement[] = [];
  const add = (when: Expression): void => {
    made.push(chance.often(0.5) ? { when, reason: ["something is missing"] } : { when });
  };
  if (draft.platform !== undefined && chance.often(0.55)) add(present);
  if (chance.often(0.1)) add(inSession);
  if (chance.often(0.1)) add(binary("||", present, inSession));
  if (chance.often(0.05)) add(binary("==", { kind: "root", name: "tool" }, literal.text(tools[0]?.name ?? "")));
  if (chance.often(0.25)) {
    const known = factsOf({ ...draft, requires: [...draft.requires, ...made] }, tools, false);
    const scope = { ...scopeOf(draft, tools, known), now: false };
    const optional = scope.leaves.filter(({ root, needs }) => root === "input" && needs.length === 1);
    const [leaf] = optional;
    if (leaf !== undefined && chance.often(0.5)) {
      add({ kind: "has", of: memberAt(leaf.root, leaf.path.slice(0, -1)), name: leaf.path.at(-1) ?? "" });
    } else {
      const when = binary("||", maker.condition(scope, 1), maker.condition(scope, 1));
      if (names(when).size === 0 || readsMore(when)) add(when);
    }
  }
  return made;
}

/** Returns whether the requirement reads more than presence and the tool: then it is checked after the schemas. */
function readsMore(when: Expression): boolean {
  return [...reads(when, [])].some((root) => ["input", "platform", "limits"].includes(root));
}

export const counterNames = ["attempts", "released", "possible", "blocked", "escalated"] as const;

function counter(chance: Chance, maker: ExpressionMaker, draft: Draft, name: string): Counter {
  const some = chance.some(draft.tools, 0.6);
  const of = some.length === 0 ? draft.tools.slice(0, 1) : some;
  const scope = { ...scopeOf(draft, of, factsOf(draft, of, true)), now: false };
  const keys = scope.leaves.filter((leaf) => isKey(leaf) && isProven(leaf, scope));
  const since = scope.leaves.find((leaf) => leaf.path.join(".") === "as_of" && isProven(leaf, scope));
  const key = (): Per =>
    chance.way<Per>([
      [3, () => "session"],
      [1, () => "key"],
      [1, () => "gate"],
      [1, () => "call"],
      [keys.length === 0 ? 0 : 5, () => pathPer(chance.pick(keys))],
    ]);
  return {
    name,
    of: of.map((tool) => tool.name),
    per: chance.often(0.75) ? [key()] : chance.many(2, 3, key),
    ...(chance.often(0.3) ? { when: maker.condition(scope, 1) } : {}),
    ...(chance.often(0.45) ? { sum: maker.notNegative(scope, 2) } : {}),
    ...(chance.often(0.75) ? { counting: chance.pick(counterNames) } : {}),
    ...(chance.often(0.7) ? { within: window(chance) } : {}),
    ...(since !== undefined && chance.often(0.5)
      ? {
          since: memberAt(since.root, since.path),
          ...(chance.often(0.8) ? { settlesWithin: chance.pick(["1ms", "500ms", "10s", "10m", "24h"]) } : {}),
        }
      : {}),
  };
}

export function pathPer({ root, path }: Leaf): Per {
  return memberAt(root, path);
}

export function isKey({ schema, path }: Leaf): boolean {
  return ["text", "number", "boolean"].includes(kindOf(schema)) && path.length > 0;
}

export const rolling = ["1ms", "500ms", "1s", "10s", "1m30s", "10m", "1h", "24h", "36h"] as const;
const timezones = [
  "UTC",
  "Europe/Berlin",
  "America/New_York",
  "Asia/Kolkata",
  "America/St_Johns",
  "Africa/Cairo",
  "America/Santiago",
  "America/Havana",
];
/** Time zones whose clocks go back within an hour, because the calendar hour is then ambiguous. */
const hourless = ["Pacific/Chatham", "Australia/Lord_Howe"];

export function window(chance: Chance): Window {
  if (chance.often(0.5)) return { rolling: chance.pick(rolling) };
  const unit = chance.pick(["hour", "day", "week", "month", "year"] as const);
  const timezone = chance.pick(unit === "hour" ? timezones : [...timezones, ...hourless]);
  if (unit !== "week" || chance.often(0.5)) return { unit, timezone };
  return { unit, timezone, weekStarts: chance.pick(["monday", "sunday", "saturday", "wednesday"]) };
}

/** Names an expression that every tool of the contract can evaluate, whatever the call. */
function aLet(chance: Chance, maker: ExpressionMaker, draft: Draft, name: string): readonly [string, Expression, Kind] {
  const scope = scopeOf(draft, draft.tools, factsOf(draft, draft.tools, true));
  if (chance.often(0.5)) return [name, maker.condition(scope, 1), "boolean"];
  return [name, maker.number(scope, 2), "number"];
}

function rule(
  chance: Chance,
  maker: ExpressionMaker,
  draft: Draft,
  known: {
    readonly counters: readonly Counter[];
    readonly lets: readonly (readonly [string, Expression, Kind])[];
    readonly name: string;
  },
): Rule {
  const some = chance.some(draft.tools, 0.6);
  const on = some.length === 0 ? draft.tools.slice(0, 1) : some;
  const base = scopeOf(draft, on, factsOf(draft, on, false));
  const readable = known.counters.filter((each) => isReadable(each, draft, on)).map(({ name }) => name);
  const outer: Scope = {
    ...base,
    counters: readable,
    names: known.lets.map(([name, , kind]) => [name, kind] as const),
  };
  const own = chance.often(0.25) ? [[`${known.name}let`, maker.number(outer, 2)] as const] : [];
  const scope: Scope = { ...outer, names: [...outer.names, ...own.map(([name]): [string, Kind] => [name, "number"])] };
  const [read] = chance.some(readable, 0.5);
  const verdict = chance.pick(verdicts);
  const bound = chance.pick(["0", "1", "2", "3", "0.5"]);
  const when =
    read !== undefined && chance.often(0.7)
      ? binary(chance.pick([">", ">=", "=="]), { kind: "counter", name: read }, literal.number(bound))
      : maker.condition(scope, 3);
  return {
    name: known.name,
    on: on.map(({ name }) => name),
    lets: own.filter(([name]) => usesName({ when, lets: [] }, name)),
    when,
    verdict,
    final: verdict === "BLOCK" && chance.often(0.35),
    reason: reason(chance, base),
  };
}

/** Returns whether the counter's key and its `since` are in every tool's schema, and proven present. */
export function isReadable(each: Counter, draft: Draft, on: readonly Tool[]): boolean {
  const scope = scopeOf(draft, on, factsOf(draft, on, true));
  const paths = [
    ...each.per.filter((per) => typeof per !== "string"),
    ...(each.since === undefined ? [] : [each.since]),
  ];
  return paths.every((path) => {
    const leaf = scope.leaves.find((found) => pathText(found) === pathOf(path));
    return leaf !== undefined && isProven(leaf, scope);
  });
}

function reason(chance: Chance, scope: Scope): Reason {
  const safe = scope.leaves.filter((leaf) => isProven(leaf, scope) && ["number", "text"].includes(kindOf(leaf.schema)));
  if (safe.length === 0 || chance.often(0.5)) return [`because of ${chance.pick(colours)}`];
  const { root, path } = chance.pick(safe);
  return ["because ", memberAt(root, path), " is what it is"];
}
