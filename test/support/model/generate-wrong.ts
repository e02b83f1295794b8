import { Chance } from "./chance.ts";
import { binary, literal, memberAt } from "./generate-expression.ts";
import type { Contract, Counter, Expression, Scenario, Schema } from "./language.ts";

/** A contract that must not compile, and the code of a diagnostic that must be reported. */
export interface Wrong {
  readonly fault: string;
  readonly code: string;
  readonly scenario: Scenario;
}

type Fault = readonly [fault: string, code: string, spoil: (scenario: Scenario) => Scenario];

const one = literal.number("1");
const readsWrong = binary(">", { kind: "counter", name: "wrong" }, one);
const numberNamed = (name: string): readonly [string, Schema] => [name, { types: ["number"] }];

export const faults: readonly Fault[] = [
  ["text compared with a number", "type", ruled(binary("==", literal.text("a"), one))],
  ["text ordered against a number", "type", ruled(binary("<", literal.text("a"), one))],
  ["a number looked for among texts", "type", ruled(binary("in", one, literal.list([literal.text("a")])))],
  ["arithmetic with text", "type", ruled(binary(">", binary("*", literal.text("a"), one), one))],
  ["a condition that is a number", "type", ruled(one)],
  ["the negation of a number", "type", ruled({ kind: "not", of: one })],
  ["a choice between a text and a number", "type", ruled(binary("==", choice(literal.text("a"), one), one))],
  ["a macro over a number", "type", ruled(fold(one))],
  ["an order of what has no type", "type", withMember(["untyped", { types: [] }], ">", "required")],
  ["a misspelt member", "unknown-member", ruled(binary(">", memberAt("input", ["no_such_member"]), one))],
  [
    "the presence of a misspelt member",
    "unknown-member",
    ruled({ kind: "has", of: { kind: "root", name: "input" }, name: "no_such" }),
  ],
  ["an optional member that nothing proves", "unproven-member", withMember(numberNamed("extra"), ">", "optional")],
  ["a default of another type", "type", withDefault],
  ["a snapshot that nothing proves", "unproven-platform", withoutProof],
  ["an unknown limit", "unknown-limit", ruled(binary(">", { kind: "limit", name: "no_such_limit" }, one))],
  ["an unknown counter", "unknown-counter", ruled(binary(">", { kind: "counter", name: "no_such_counter" }, one))],
  ["an unknown name", "unknown-name", ruled(binary(">", { kind: "name", name: "no_such_name" }, one))],
  [
    "a rule on an unknown tool",
    "unknown-tool",
    first((contract) => ({ ...contract, rules: [ruleOn(["no.such"], { kind: "boolean", value: true })] })),
  ],
  [
    "a tool without otherwise",
    "missing",
    first((contract) => ({
      ...contract,
      tools: contract.tools.map(({ name, input, requires }) => ({ name, input, requires })),
    })),
  ],
  [
    "an input that does not say if it is open",
    "open-object",
    first((contract) => ({
      ...contract,
      tools: contract.tools.map((tool) => ({ ...tool, input: { types: ["object"] as const } })),
    })),
  ],
  [
    "a snapshot with a member `present`",
    "reserved-name",
    first((contract) => ({
      ...contract,
      platform: { types: ["object"], properties: [["present", { types: ["boolean"] }]] },
    })),
  ],
  ["a sum with a division", "counter", counted({ sum: binary("/", one, literal.number("2")) })],
  ["a sum with a remainder", "counter", counted({ sum: binary("%", literal.number("3"), literal.number("2")) })],
  ["a sum that may be negative", "counter", counted({ sum: literal.number("-1") })],
  ["a sum of two that may be negative", "counter", counted({ sum: binary("-", one, one) })],
  ["a counter that adds up and remembers", "counter", counted({ sum: one, remembers: one })],
  ["a counter that remembers an object", "counter", counted({ remembers: { kind: "root", name: "input" } })],
  [
    "a counter that remembers, compared",
    "type",
    (scenario) => ruled(readsWrong)(counted({ remembers: one })(scenario)),
  ],
  [
    "a counter that counts, asked for a value",
    "type",
    (scenario) => ruled({ kind: "asked", counter: "wrong", value: one })(counted({})(scenario)),
  ],
  [
    "a counter asked for what another stands at",
    "counter",
    (scenario) =>
      ruled({ kind: "asked", counter: "wrong", value: { kind: "counter", name: "other" } })(
        counted({ name: "other" })(counted({ remembers: one })(scenario)),
      ),
  ],
  ["two contracts of one name", "twice", (scenario) => ({ ...scenario, contracts: twice(scenario.contracts) })],
  ["a counter of an unknown tool", "unknown-tool", counted({ of: ["no.such"] })],
  [
    "a counter that reads a counter",
    "not-here",
    counted({ when: binary(">", { kind: "counter", name: "wrong" }, one) }),
  ],
  [
    "a counter that reads the moment",
    "not-here",
    counted({ when: binary(">", { kind: "root", name: "now" }, { kind: "timestamp", text: "2026-01-01T00:00:00Z" }) }),
  ],
  ["a key that is an optional member", "unproven-member", withKey(numberNamed("extra"), "optional")],
  [
    "a key that is a list",
    "counter",
    withKey(["extra", { types: ["array"], items: { types: ["number"] } }], "required"),
  ],
  ["a calendar day without a time zone", "counter", counted({ within: { unit: "day" } })],
  ["a time zone that there is not", "counter", counted({ within: { unit: "day", timezone: "Europe/Atlantis" } })],
  ["a time to settle without since", "counter", counted({ settlesWithin: "10m" })],
  ["a since in text", "type", (scenario) => ruled(readsWrong)(counted({ since: literal.text("a") })(scenario))],
  ["a mandate that sets an unknown limit", "unknown-limit", set("no_such_limit", "1")],
  ["a mandate that sets a limit too high", "limit", set("bounded", "9")],
  ["a mandate that sets a limit too low", "limit", set("bounded", "0.5")],
  ["a mandate that sets a number to text", "limit", (scenario) => setTo(scenario, "bounded", "text")],
];

/** Returns the scenario with one of the faults above. */
export function spoil(scenario: Scenario, seed: number): Wrong {
  const chance = new Chance(seed);
  const [fault, code, work] = chance.pick(faults);
  return { fault, code, scenario: work(scenario) };
}

function twice(contracts: readonly Contract[]): readonly Contract[] {
  return [...contracts, ...contracts.slice(0, 1)];
}

function first(change: (contract: Contract) => Contract) {
  return (scenario: Scenario): Scenario => ({
    ...scenario,
    contracts: scenario.contracts.map((contract, index) => (index === 0 ? change(contract) : contract)),
  });
}

function ruleOn(on: readonly string[], when: Expression): Contract["rules"][number] {
  return { name: "wrong", on, lets: [], when, verdict: "BLOCK", final: false, reason: ["wrong"] };
}

function ruled(when: Expression) {
  return first((contract) => ({
    ...contract,
    rules: [
      ...contract.rules,
      ruleOn(
        contract.tools.slice(0, 1).map(({ name }) => name),
        when,
      ),
    ],
  }));
}

function counted(counter: Partial<Counter>) {
  return first((contract) => {
    const of = contract.tools.slice(0, 1).map(({ name }) => name);
    return { ...contract, counters: [...contract.counters, { name: "wrong", of, per: ["gate"], ...counter }] };
  });
}

/** Adds a member to the first tool. */
function widened(contract: Contract, member: readonly [string, Schema], presence: "required" | "optional"): Contract {
  const tools = contract.tools.map((tool, index) => {
    if (index > 0) return tool;
    const required = [...(tool.input.required ?? []), ...(presence === "required" ? [member[0]] : [])];
    return { ...tool, input: { ...tool.input, required, properties: [...(tool.input.properties ?? []), member] } };
  });
  return { ...contract, tools };
}

function withMember(member: readonly [string, Schema], operator: ">", presence: "required" | "optional") {
  return (scenario: Scenario): Scenario =>
    ruled(binary(operator, memberAt("input", [member[0]]), one))(
      first((contract) => widened(contract, member, presence))(scenario),
    );
}

function withKey(member: readonly [string, Schema], presence: "required" | "optional") {
  return (scenario: Scenario): Scenario =>
    counted({ per: [memberAt("input", [member[0]])] })(
      first((contract) => widened(contract, member, presence))(scenario),
    );
}

function withDefault(scenario: Scenario): Scenario {
  const read: Expression = {
    kind: "default",
    of: { kind: "root", name: "input" },
    path: ["extra"],
    otherwise: literal.text("a"),
  };
  return ruled(binary(">", read, one))(
    first((contract) => widened(contract, numberNamed("extra"), "optional"))(scenario),
  );
}

function withoutProof(scenario: Scenario): Scenario {
  return first((contract) => ({
    ...contract,
    platform: { types: ["object"], required: ["as_of"], properties: [numberNamed("as_of")] },
    requires: [],
    tools: [
      ...contract.tools,
      { name: "t.bare", input: { types: ["object"], additional: false }, requires: [], otherwise: "ALLOW" },
    ],
    rules: [ruleOn(["t.bare"], binary(">", memberAt("platform", ["as_of"]), one))],
  }))(scenario);
}

function set(limit: string, text: string) {
  return (scenario: Scenario): Scenario => setTo(scenario, limit, { num: text });
}

function setTo(scenario: Scenario, limit: string, value: { readonly num: string } | string): Scenario {
  const bounded = first((contract) => ({
    ...contract,
    limits: [...contract.limits, { name: "bounded", value: { num: "2" }, min: "1", max: "8.5" }],
  }))(scenario);
  return { ...bounded, settings: [...bounded.settings, { contract: bounded.contracts[0]?.name ?? "", limit, value }] };
}

function choice(yes: Expression, no: Expression): Expression {
  return { kind: "choice", condition: { kind: "root", name: "session.present" }, yes, no };
}

function fold(over: Expression): Expression {
  return { kind: "fold", macro: "exists", variable: "w", over, body: binary(">", { kind: "name", name: "w" }, one) };
}
