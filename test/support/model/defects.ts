import type { Decision } from "../../../packages/core/src/contract/mod.ts";
import type { Defect, CounterUpdate } from "./engine.ts";
import type { Contract, Counter, Rule, Scenario, Schema } from "./language.ts";

/** Defects of an engine, each of which the comparison must notice. */
export const defects: readonly (readonly [fault: string, of: (scenario: Scenario) => Defect])[] = [
  ["a window one millisecond too long", () => ({ lookup: (each) => ({ ...each, after: each.after - 1 }) })],
  ["a window one millisecond too short", () => ({ lookup: (each) => ({ ...each, after: each.after + 1 }) })],
  [
    "a call does not see those of the same millisecond",
    () => ({
      isWithin: (move, lookup, now) => move.at > lookup.after && move.at < now,
    }),
  ],
  ["ALLOW beats ESCALATE", (scenario) => ({ decision: (decision) => leniently(scenario, decision) })],
  [
    "what cannot be evaluated is skipped",
    () => ({
      decision: (each) =>
        each.errors.some(([name]) => name === each.rule) ? { ...each, verdict: "ALLOW" as const } : each,
    }),
  ],
  ["`final` is lost", () => ({ decision: (each) => ({ ...each, final: false }) })],
  [
    "released calls are counted like attempts",
    () => inCounters((each) => (each.counting === "released" ? { ...each, counting: "attempts" } : each)),
  ],
  ["a call counts by what was reached, not by what was answered", () => ({ answered: (_, { verdict }) => verdict })],
  [
    "a call that is blocked moves nothing",
    () => ({
      updates: (updates) => updates.filter(({ identity }) => !identity.includes('"attempts"')),
    }),
  ],
  ["a session is the same for every key", () => ({ caller: ({ sessionId }) => ({ keyName: "default", sessionId }) })],
  ["a schema's bounds block nothing", () => inSchemas((each) => without(each, ["maximum", "maxLength", "multipleOf"]))],
  [
    "a day starts in UTC, wherever it is",
    () =>
      inCounters((each) =>
        each.within === undefined || "rolling" in each.within
          ? each
          : { ...each, within: { ...each.within, timezone: "UTC" } },
      ),
  ],
  ["nothing settles", () => inCounters((each) => without(each, ["since", "settlesWithin"]))],
  ["a mandate's limits are not heard", () => ({ scenario: (right) => ({ ...right, settings: [] }) })],
  ["the order of rules is reversed", () => inContracts((each) => ({ ...each, rules: each.rules.toReversed() }))],
  [
    "numbers are read as binary fractions",
    () => ({ body: (text) => text.replaceAll("9007199254740993", "9007199254740992") }),
  ],
  ["of a list, one value is remembered", () => ({ updates: oneValueEach })],
  [
    "a value is remembered though its call is not counted",
    () => inCounters((each) => (each.remembers === undefined ? each : { ...each, counting: "attempts" })),
  ],
  [
    "a value is remembered forever",
    () => inCounters((each) => (each.remembers === undefined ? each : without(each, ["within"]))),
  ],
  [
    "a value that is remembered is not found",
    () => ({ lookup: (each) => ({ ...each, key: each.key.replace(/"[^"]*"\]\]\]$/, "") }) }),
  ],
  [
    "a rule that observes decides",
    () => inContracts((each) => ({ ...each, rules: each.rules.map((rule) => without(rule, ["observed"])) })),
  ],
  [
    "an error in a rule that observes blocks",
    () => ({
      decision: (each) =>
        each.observed.some(({ reason }) => reason.includes("cannot be evaluated"))
          ? { ...each, verdict: "BLOCK" as const }
          : each,
    }),
  ],
];

/** Returns only the first of the values that one counter remembers of a call. */
function oneValueEach(updates: readonly CounterUpdate[]): readonly CounterUpdate[] {
  return updates.filter(
    (move, index) =>
      !move.identity.includes('"remembers"') ||
      updates.findIndex(({ identity }) => identity === move.identity) === index,
  );
}

function leniently({ contracts }: Scenario, decision: Decision): Decision {
  if (decision.verdict !== "ESCALATE") return decision;
  const allowing = contracts.flatMap(({ name, rules }) =>
    rules.filter(({ verdict }) => verdict === "ALLOW").map((rule: Rule) => `${name}.${rule.name}`),
  );
  return decision.fired.some((name) => allowing.includes(name)) ? { ...decision, verdict: "ALLOW" } : decision;
}

function inContracts(change: (contract: Contract) => Contract): Defect {
  return { scenario: (right) => ({ ...right, contracts: right.contracts.map(change) }) };
}

function inCounters(change: (counter: Counter) => Counter): Defect {
  return inContracts((contract) => ({ ...contract, counters: contract.counters.map(change) }));
}

function inSchemas(change: (schema: Schema) => Schema): Defect {
  const changed = (schema: Schema): Schema => ({
    ...change(schema),
    ...(schema.properties === undefined
      ? {}
      : { properties: schema.properties.map(([name, each]) => [name, changed(each)] as const) }),
  });
  return inContracts((contract) => ({
    ...contract,
    tools: contract.tools.map((tool) => ({ ...tool, input: changed(tool.input) })),
  }));
}

function without<Whole extends object>(whole: Whole, names: readonly (keyof Whole & string)[]): Whole {
  const kept = Object.entries(whole).filter(([name]) => !(names as readonly string[]).includes(name));
  return Object.fromEntries(kept) as Whole;
}
