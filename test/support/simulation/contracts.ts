import { compileContracts, type PolicySet } from "../../../packages/readers/src/contract.ts";

/**
 * Three contracts of a tool that asks no person as a rule, and of one that always does. They replace each other: counters
 * stay, are new, or return.
 */
const texts = [
  contract(
    "{ calls: { of: pay, per: session, within: 10s }, spent: { of: [pay, buy], per: key, sum: input.amount, counting: released } }",
    [rule("often", "counters.calls >= 6", "ESCALATE"), rule("budget", "counters.spent + input.amount > 400", "BLOCK")],
  ),
  contract(
    "{ spent: { of: [pay, buy], per: key, sum: input.amount, counting: released }, lately: { of: pay, per: key, within: 30s } }",
    [rule("budget", "counters.spent > 400", "ESCALATE"), rule("burst", "counters.lately >= 9", "BLOCK")],
    "{ decide_within: 20s, use_within: 5s }",
  ),
  contract(
    "{ calls: { of: pay, per: session, within: 10s }, all: { of: [pay, buy], per: session, counting: possible } }",
    [rule("often", "counters.calls >= 4", "BLOCK"), rule("many", "counters.all > 50", "ESCALATE")],
  ),
];

function contract(counters: string, rules: readonly string[], approval?: string): string {
  return [
    "contract: simulated",
    "tools:",
    ...tool("pay", "ALLOW"),
    ...tool("buy", "ESCALATE"),
    ...(approval === undefined ? [] : [`approval: ${approval}`]),
    `counters: ${counters}`,
    `rules: [${rules.join(", ")}]`,
    "",
  ].join("\n");
}

function tool(name: string, otherwise: string): readonly string[] {
  return [
    `  ${name}:`,
    "    input:",
    "      type: object",
    "      additionalProperties: false",
    "      required: [amount, call]",
    "      properties: { amount: { type: integer, minimum: 1 }, call: { type: string } }",
    `    otherwise: ${otherwise}`,
  ];
}

function rule(name: string, when: string, verdict: string): string {
  return `{ rule: ${name}, on: pay, when: "${when}", verdict: ${verdict}, reason: "it is ${name}" }`;
}

export const contracts: readonly PolicySet[] = texts.map((text, index) => {
  const compiled = compileContracts([{ name: `simulated-${index}.yaml`, text }]);
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.problem.map(({ message }) => message)));
  return compiled.value;
});
