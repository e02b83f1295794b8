import { compileContracts, type PolicySet } from "../../../packages/svc-gate/src/contract/mod.ts";

/** Three contracts of one tool, which replace each other: counters stay, are new, or return. */
const texts = [
  contract(
    "{ calls: { of: pay, per: session, within: 10s }, spent: { of: pay, per: key, sum: input.amount, counting: released } }",
    [rule("often", "counters.calls >= 6", "ESCALATE"), rule("budget", "counters.spent + input.amount > 400", "BLOCK")],
  ),
  contract(
    "{ spent: { of: pay, per: key, sum: input.amount, counting: released }, lately: { of: pay, per: key, within: 30s } }",
    [rule("budget", "counters.spent > 400", "ESCALATE"), rule("burst", "counters.lately >= 9", "BLOCK")],
  ),
  contract("{ calls: { of: pay, per: session, within: 10s }, all: { of: pay, per: session, counting: possible } }", [
    rule("often", "counters.calls >= 4", "BLOCK"),
    rule("many", "counters.all > 50", "ESCALATE"),
  ]),
];

function contract(counters: string, rules: readonly string[]): string {
  return [
    "contract: simulated",
    "tools:",
    "  pay:",
    "    input:",
    "      type: object",
    "      additionalProperties: false",
    "      required: [amount, call]",
    "      properties: { amount: { type: integer, minimum: 1 }, call: { type: string } }",
    "    otherwise: ALLOW",
    `counters: ${counters}`,
    `rules: [${rules.join(", ")}]`,
    "",
  ].join("\n");
}

function rule(name: string, when: string, verdict: string): string {
  return `{ rule: ${name}, on: pay, when: "${when}", verdict: ${verdict}, reason: "it is ${name}" }`;
}

export const contracts: readonly PolicySet[] = texts.map((text, index) => {
  const compiled = compileContracts([{ name: `simulated-${index}.yaml`, text }]);
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.problem.map(({ message }) => message)));
  return compiled.value;
});
