import { Chance } from "./chance.ts";
import { binary } from "./generate-expression.ts";
import type { Contract, Expression, Rule, Scenario, Schema, Tool, Verdict } from "./language.ts";

/** The known effect of a change to contracts; unknown if two changes have opposite effects. */
export type Kind = "equal" | "renamed" | "reordered" | "tightened" | "loosened" | "both";

export interface Mutation {
  readonly kind: Kind;
  /** The name of one of its ways. */
  readonly way: string;
  readonly before: Scenario;
  readonly after: Scenario;
}

export const kinds: readonly Kind[] = ["equal", "renamed", "reordered", "tightened", "loosened", "both"];

const yes: Expression = { kind: "boolean", value: true };
const no: Expression = { kind: "boolean", value: false };

type Change = (chance: Chance, contract: Contract) => Contract;

/**
 * Returns the scenario and its copy with a change of a known kind in one contract; undefined if nothing in it can change so.
 */
export function mutate(scenario: Scenario, seed: number): Mutation | undefined {
  const chance = new Chance(seed);
  const kind = kinds[seed % kinds.length] ?? "equal";
  const [way, change] = chance.pick(
    Object.entries(changes[kind === "loosened" || kind === "both" ? "tightened" : kind]),
  );
  // A tool that another contract still routes is then judged by that one alone, and so more leniently.
  if (way === "a tool goes" && scenario.contracts.length > 1) return undefined;
  const at = chance.whole(0, scenario.contracts.length - 1);
  const changed = withContract(scenario, at, (contract) => change(chance, contract));
  if (JSON.stringify(changed) === JSON.stringify(scenario)) return undefined;
  if (kind === "loosened") return { kind, way, before: changed, after: scenario };
  if (kind !== "both") return { kind, way, before: scenario, after: changed };
  const [other, back] = chance.pick(Object.entries(changes.tightened));
  const before = withContract(scenario, at, (contract) => back(chance, contract));
  return { kind, way: `${way}, less ${other}`, before, after: changed };
}

/** A mandate's settings follow the contract's name. */
function withContract(scenario: Scenario, at: number, change: (contract: Contract) => Contract): Scenario {
  const names = new Map<string, string>();
  const contracts = scenario.contracts.map((each, index) => {
    const changed = index === at ? change(each) : each;
    names.set(each.name, changed.name);
    return changed;
  });
  const settings = scenario.settings.map((each) => ({ ...each, contract: names.get(each.contract) ?? each.contract }));
  return { ...scenario, contracts, settings };
}

const changes: Readonly<Record<Exclude<Kind, "loosened" | "both">, Readonly<Record<string, Change>>>> = {
  equal: {
    "comparisons are turned round": (_, contract) => everyCondition(contract, turned),
    "conditions are denied twice": (chance, contract) =>
      someCondition(chance, contract, (of) => ({ kind: "not", of: { kind: "not", of } })),
    "or false": (chance, contract) => someCondition(chance, contract, (of) => binary("||", of, no)),
    "and true": (chance, contract) => someCondition(chance, contract, (of) => binary("&&", of, yes)),
    "or, as a denied and": (_, contract) => everyCondition(contract, denied),
    "a choice": (chance, contract) =>
      someCondition(chance, contract, (condition) => ({
        kind: "choice",
        condition,
        yes,
        no,
      })),
    "a rule appears twice": (chance, contract) => {
      const rule = chance.pick(contract.rules);
      return { ...contract, rules: [...contract.rules, { ...rule, name: "again" }] };
    },
    "numbers are spelt otherwise": (_, contract) =>
      everyCondition(contract, (each) => (each.kind === "number" ? { ...each, text: spelt(each.text) } : each)),
  },
  renamed: {
    rules: (_, contract) => ({
      ...contract,
      rules: contract.rules.map((rule) => ({ ...rule, name: `${rule.name}-new` })),
    }),
    reasons: (_, contract) => ({
      ...contract,
      rules: contract.rules.map((rule) => ({ ...rule, reason: ["another"] })),
    }),
    counters: (_, contract) => renamedCounters(contract),
    contract: (_, contract) => ({ ...contract, name: `${contract.name}-new` }),
  },
  reordered: {
    rules: (_, contract) => ({ ...contract, rules: contract.rules.toReversed() }),
    tools: (_, contract) => ({ ...contract, tools: contract.tools.toReversed() }),
    members: (_, contract) =>
      everyInput(contract, (input) => ({ ...input, properties: input.properties?.toReversed() ?? [] })),
    required: (_, contract) =>
      everyInput(contract, (input) => ({ ...input, required: input.required?.toReversed() ?? [] })),
  },
  tightened: {
    "a rule's verdict": (chance, contract) =>
      someRule(chance, contract, (rule) => ({ ...rule, verdict: stricter(rule.verdict), final: false })),
    otherwise: (chance, contract) =>
      someTool(chance, contract, (tool) => ({ ...tool, otherwise: stricter(tool.otherwise ?? "BLOCK") })),
    "a rule that blocks": (chance, contract) => {
      const rule = chance.pick(contract.rules);
      const blocking: Rule = { ...rule, name: "added", verdict: "BLOCK", reason: ["it is so"] };
      return { ...contract, rules: [...contract.rules, blocking] };
    },
    "a condition that blocks is wider": (chance, contract) =>
      someRule(chance, contract, (rule) =>
        rule.verdict === "BLOCK" ? { ...rule, when: binary("||", rule.when, sessionCondition(chance)) } : rule,
      ),
    "a bound of a condition that blocks": (chance, contract) =>
      someRule(chance, contract, (rule) => (rule.verdict === "BLOCK" ? { ...rule, when: lowered(rule.when) } : rule)),
    "a member is required": (chance, contract) =>
      someTool(chance, contract, (tool) => ({ ...tool, input: required(chance, tool.input) })),
    "a bound of the schema": (chance, contract) =>
      someTool(chance, contract, (tool) => ({ ...tool, input: bounded(chance, tool.input) })),
    "a session is required": (chance, contract) =>
      someTool(chance, contract, (tool) => ({
        ...tool,
        requires: [...tool.requires, { when: { kind: "root", name: "session.present" } }],
      })),
    "a tool goes": (_, contract) =>
      contract.tools.length > 1 && contract.counters.length === 0 ? withoutFirstTool(contract) : contract,
  },
};

function sessionCondition(chance: Chance): Expression {
  const session: Expression = { kind: "root", name: "session.present" };
  return chance.pick([session, { kind: "not", of: session }, yes]);
}

function stricter(verdict: Verdict): Verdict {
  return verdict === "ALLOW" ? "ESCALATE" : "BLOCK";
}

function spelt(text: string): string {
  return /^[0-9]+$/.test(text) ? `${text}.0` : text;
}

function someRule(chance: Chance, contract: Contract, change: (rule: Rule) => Rule): Contract {
  const at = chance.whole(0, contract.rules.length - 1);
  return { ...contract, rules: contract.rules.map((rule, index) => (index === at ? change(rule) : rule)) };
}

function someTool(chance: Chance, contract: Contract, change: (tool: Tool) => Tool): Contract {
  const at = chance.whole(0, contract.tools.length - 1);
  return { ...contract, tools: contract.tools.map((tool, index) => (index === at ? change(tool) : tool)) };
}

function someCondition(chance: Chance, contract: Contract, change: (when: Expression) => Expression): Contract {
  return someRule(chance, contract, (rule) => ({ ...rule, when: change(rule.when) }));
}

function everyInput(contract: Contract, change: (input: Schema) => Schema): Contract {
  return { ...contract, tools: contract.tools.map((tool) => ({ ...tool, input: change(tool.input) })) };
}

/** Returns every part of every rule's condition, the inner ones first. */
function everyCondition(contract: Contract, change: (part: Expression) => Expression): Contract {
  return {
    ...contract,
    rules: contract.rules.map((rule) => ({ ...rule, when: rebuilt(rule.when, change) })),
  };
}

function rebuilt(expression: Expression, change: (part: Expression) => Expression): Expression {
  const entries = Object.entries(expression).map(([name, value]: [string, unknown]) => [
    name,
    rebuiltValue(value, change),
  ]);
  return change(Object.fromEntries(entries) as Expression);
}

function rebuiltValue(value: unknown, change: (part: Expression) => Expression): unknown {
  if (Array.isArray(value)) return value.map((item) => rebuiltValue(item, change));
  return typeof value === "object" && value !== null && "kind" in value ? rebuilt(value as Expression, change) : value;
}

const mirrored: Readonly<Record<string, "<" | "<=" | ">" | ">=">> = { "<": ">", "<=": ">=", ">": "<", ">=": "<=" };

/** Writes `a < b` as `b > a`. The order of two errors changes no verdict. */
function turned(part: Expression): Expression {
  const operator = part.kind === "binary" ? mirrored[part.operator] : undefined;
  if (part.kind !== "binary" || operator === undefined) return part;
  return { ...part, operator, left: part.right, right: part.left };
}

function denied(part: Expression): Expression {
  if (part.kind !== "binary" || part.operator !== "||") return part;
  const left: Expression = { kind: "not", of: part.left };
  return { kind: "not", of: binary("&&", left, { kind: "not", of: part.right }) };
}

/** Writes `a > 5` as `a > 4`, at the top and under `||`, so that it is true for more values. */
function lowered(part: Expression): Expression {
  if (part.kind !== "binary") return part;
  if (part.operator === "||") return { ...part, left: lowered(part.left) };
  if ((part.operator !== ">" && part.operator !== ">=") || part.right.kind !== "number") return part;
  return { ...part, right: { kind: "number", text: String(Number(part.right.text) - 1) } };
}

function required(chance: Chance, input: Schema): Schema {
  const optional = (input.properties ?? [])
    .map(([name]) => name)
    .filter((name) => input.required?.includes(name) !== true);
  return optional.length === 0 ? input : { ...input, required: [...(input.required ?? []), chance.pick(optional)] };
}

/** Gives a number or a text a lower minimum. */
function bounded(chance: Chance, input: Schema): Schema {
  const fitting = (input.properties ?? []).filter(([, { types }]) => ["number", "string"].includes(types[0] ?? ""));
  if (fitting.length === 0) return input;
  const [chosen] = chance.pick(fitting);
  const properties = (input.properties ?? []).map(([name, schema]): readonly [string, Schema] => {
    if (name !== chosen) return [name, schema];
    if (schema.types[0] === "string")
      return [name, { ...schema, maxLength: Math.min(schema.maxLength ?? 99, 2), minLength: 0 }];
    return [
      name,
      { ...schema, maximum: "4", ...(schema.exclusiveMaximum === undefined ? {} : { exclusiveMaximum: "4" }) },
    ];
  });
  return { ...input, properties };
}

function withoutFirstTool(contract: Contract): Contract {
  const [gone] = contract.tools;
  const tools = contract.tools.slice(1);
  const rules = contract.rules
    .map((rule) => ({ ...rule, on: rule.on.filter((name) => name !== gone?.name) }))
    .filter(({ on }) => on.length > 0);
  return { ...contract, tools, rules };
}

function renamedCounters(contract: Contract): Contract {
  const names = new Map(contract.counters.map(({ name }) => [name, `${name}_new`]));
  const renamed = everyCondition(contract, (part) =>
    part.kind === "counter" ? { ...part, name: names.get(part.name) ?? part.name } : part,
  );
  return {
    ...renamed,
    counters: contract.counters.map((counter) => ({ ...counter, name: names.get(counter.name) ?? "" })),
  };
}
