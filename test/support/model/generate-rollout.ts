import { Chance } from "./chance.ts";
import {
  counterNames,
  factsOf,
  isKey,
  isReadable,
  limitPool,
  pathPer,
  scopeOf,
  verdicts,
  window,
  type Draft,
} from "./generate-contract.ts";
import { binary, ExpressionMaker, isProven, type Scope } from "./generate-expression.ts";
import { generate } from "./generate.ts";
import type { Contract, Counter, Expression, Per, Rule, Scenario, Schema } from "./language.ts";

/** Generates a scenario whose contracts also remember and observe. */
export function generateWhole(seed: number, calls?: number): Scenario {
  const scenario = generate(seed, calls);
  const chance = new Chance(seed ^ 0x5bd1e995);
  return {
    ...scenario,
    contracts: scenario.contracts.map((contract) => observing(chance, withMemory(chance, contract))),
  };
}

/** Returns the same calls under the next version of some contracts, as a reload puts it in force. */
export function generateNext(scenario: Scenario, seed: number): Scenario {
  const next = changed(new Chance(seed ^ 0x2545f491), scenario.contracts);
  const kept = scenario.contracts.map((each) => next.find(({ name }) => name === each.name) ?? each);
  const others = next.filter(({ name }) => !scenario.contracts.some((each) => each.name === name));
  return { ...scenario, contracts: [...kept, ...others] };
}

/** Puts some of its rules into observe mode. */
function observing(chance: Chance, contract: Contract): Contract {
  const share = chance.pick([0, 0.2, 0.5]);
  return {
    ...contract,
    rules: contract.rules.map((rule) => (chance.often(share) ? { ...rule, observed: true } : rule)),
  };
}

type Scalar = "number" | "text" | "boolean";

function withMemory(chance: Chance, contract: Contract): Contract {
  if (chance.often(0.4)) return contract;
  const maker = new ExpressionMaker(chance);
  const draft: Draft = {
    ...contract,
    platform: contract.platform,
    limits: limitPool
      .filter(([limit]) => contract.limits.some(({ name }) => name === limit))
      .map(([limit, kind]) => [limit, kind] as const),
  };
  const kinds = chance.many(1, 2, () => chance.pick<Scalar>(["text", "text", "number", "boolean"]));
  const made = kinds.map((kind, at) => [kind, memory(chance, maker, draft, { kind, name: `m${at}` })] as const);
  const rules = made.flatMap(([kind, counter], at) =>
    chance.many(1, 2, (each) => asking(chance, maker, draft, { kind, counter, name: `ask${at}${each}` })),
  );
  return {
    ...contract,
    counters: [...contract.counters, ...made.map(([, counter]) => counter)],
    rules: [...contract.rules, ...rules.flatMap((rule) => rule ?? [])],
  };
}

interface Wanted {
  readonly kind: Scalar;
  readonly name: string;
}

function memory(chance: Chance, maker: ExpressionMaker, draft: Draft, { kind, name }: Wanted): Counter {
  const some = chance.some(draft.tools, 0.7);
  const of = some.length === 0 ? draft.tools.slice(0, 1) : some;
  const scope = { ...scopeOf(draft, of, factsOf(draft, of, true)), now: false };
  const keys = scope.leaves.filter((leaf) => isKey(leaf) && isProven(leaf, scope));
  const per: Per = chance.way<Per>([
    [3, () => "session"],
    [1, () => "gate"],
    [keys.length === 0 ? 0 : 1, () => pathPer(chance.pick(keys))],
  ]);
  return {
    name,
    of: of.map((tool) => tool.name),
    per: [per],
    ...(chance.often(0.2) ? { when: maker.condition(scope, 1) } : {}),
    remembers: remembered(chance, maker, scope, kind),
    ...(chance.often(0.6) ? { counting: chance.pick(counterNames) } : {}),
    ...(chance.often(0.4) ? { within: window(chance) } : {}),
  };
}

/** Returns a value of the kind, or a list of them. */
function remembered(chance: Chance, maker: ExpressionMaker, scope: Scope, kind: Scalar): Expression {
  if (kind === "boolean" || chance.often(0.4)) return scalar(maker, scope, kind);
  if (chance.often(0.5)) return maker.list(kind === "text" ? "texts" : "numbers", scope, chance.whole(0, 1));
  return { kind: "list", items: chance.many(1, 3, () => scalar(maker, scope, kind)) };
}

function scalar(maker: ExpressionMaker, scope: Scope, kind: Scalar): Expression {
  if (kind === "text") return maker.text(scope, 1);
  return kind === "number" ? maker.number(scope, 1) : maker.condition(scope, 0);
}

function asking(
  chance: Chance,
  maker: ExpressionMaker,
  draft: Draft,
  { kind, counter, name }: Wanted & { readonly counter: Counter },
): Rule | undefined {
  const on = chance.some(draft.tools, 0.7).filter((tool) => isReadable(counter, draft, [tool]));
  if (on.length === 0) return undefined;
  const scope = scopeOf(draft, on, factsOf(draft, on, false));
  const condition = question(chance, maker, scope, { kind, name: counter.name });
  const when = chance.way<Expression>([
    [4, () => condition],
    [1, () => ({ kind: "not", of: condition })],
    [1, () => binary("&&", maker.condition(scope, 1), condition)],
    [1, () => binary("||", condition, question(chance, maker, scope, { kind, name: counter.name }))],
    [
      1,
      () => ({ kind: "choice", condition: maker.condition(scope, 1), yes: condition, no: maker.condition(scope, 0) }),
    ],
  ]);
  return {
    name,
    on: on.map((tool) => tool.name),
    lets: [],
    when,
    verdict: chance.pick(verdicts),
    final: false,
    reason: ["it is known"],
  };
}

function question(chance: Chance, maker: ExpressionMaker, scope: Scope, { kind, name: counter }: Wanted): Expression {
  const ask = (value: Expression): Expression => ({ kind: "asked", counter, value });
  if (kind === "boolean" || chance.often(0.5)) return ask(scalar(maker, scope, kind));
  const fold = (variable: string, around: Scope, body: (inside: Scope) => Expression): Expression => ({
    kind: "fold",
    macro: chance.pick(["exists", "all", "exists_one"]),
    variable,
    over: maker.list(kind === "text" ? "texts" : "numbers", around, 1),
    body: body({ ...around, names: [...around.names, [variable, kind]] }),
  });
  const item = (name: string): Expression => ({ kind: "name", name });
  if (chance.often(0.6)) return fold("w", scope, () => ask(item("w")));
  return fold("w", scope, (inside) => fold("x", inside, () => ask(binary("+", item("w"), item("x")))));
}

/** Returns one or two slightly changed contracts, under their names or a new one. */
function changed(chance: Chance, contracts: readonly Contract[]): readonly Contract[] {
  const some = chance.some(contracts, 0.5);
  const chosen = some.length === 0 ? contracts.slice(0, 1) : some;
  const renamed = chance.often(0.2);
  return chosen.map((contract, at) => {
    const changes = chance.many(1, 3, () => chance.pick(kinds));
    const other = changes.reduce((each, change) => change(chance, each), contract);
    return renamed ? { ...other, name: `next${at}` } : other;
  });
}

type Change = (chance: Chance, contract: Contract) => Contract;

const kinds: readonly Change[] = [
  (chance, contract) => ({
    ...contract,
    rules: contract.rules.map((rule) => ({ ...rule, verdict: chance.pick(verdicts), final: false })),
  }),
  (_, contract) => ({
    ...contract,
    rules: contract.rules.map((rule) => ({ ...rule, observed: rule.observed !== true })),
  }),
  (chance, contract) => ({
    ...contract,
    counters: contract.counters.map((each) =>
      chance.often(0.5) ? { ...each, counting: chance.pick(counterNames) } : each,
    ),
  }),
  (chance, contract) => ({
    ...contract,
    tools: contract.tools.map((tool) => ({ ...tool, otherwise: chance.pick(verdicts) })),
  }),
  (chance, contract) => ({
    ...contract,
    tools: contract.tools.map((tool) => ({ ...tool, input: otherBounds(chance, tool.input) })),
  }),
];

/** Adds bounds to unbounded numbers, and removes bounds from the others. */
function otherBounds(chance: Chance, schema: Schema): Schema {
  const properties = (schema.properties ?? []).map(([name, each]): readonly [string, Schema] => {
    if (!each.types.includes("number") || each.types.length > 1 || !chance.often(0.5)) return [name, each];
    const { maximum, exclusiveMaximum, ...rest } = each;
    return [name, maximum === undefined && exclusiveMaximum === undefined ? { ...rest, maximum: "2" } : rest];
  });
  return { ...schema, properties };
}
