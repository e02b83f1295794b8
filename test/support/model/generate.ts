import { Chance } from "./chance.ts";
import { limits, makeContract, rolling, settingFor, type Ground } from "./generate-contract.ts";
import { binary, literal } from "./generate-expression.ts";
import { damaged, members, objectFor, recordOf } from "./generate-schema.ts";
import type { Call, Contract, Expression, JsonObject, Scenario, Schema } from "./language.ts";
import { durationSeconds } from "./window.ts";

/** Generates a scenario from the seed alone; its contracts compile. */
export function generate(seed: number, calls?: number): Scenario {
  const chance = new Chance(seed);
  const toolMembers = members(chance);
  const ground: Ground = {
    tools: ["t.read", "t.pay", "t.mail"].map((name) => [name, recordOf(chance, toolMembers, false)] as const),
    facts: members(chance),
    settings: [],
  };
  const names = chance.pick([["one"], ["one", "two"], ["one", "two"], ["one", "two", "three"]]);
  const drawn = names.map((name) => ({ name, limits: limits(chance) }));
  const made = drawn.map((each) => makeContract(chance, each.name, ground, each.limits));
  const contracts = chance.often(0.2) ? withShared(made) : made;
  const settings = drawn.flatMap((each) =>
    chance
      .some(each.limits, 0.4)
      .map((limit) => ({ contract: each.name, limit: limit.name, value: settingFor(chance, limit) })),
  );
  return {
    mode: chance.pick(["observe", "assist", "enforce", "enforce"]),
    contracts: chance.often(0.3) ? withTwin(contracts) : contracts,
    settings,
    calls: makeCalls(chance, contracts, ground, calls ?? chance.whole(5, 40)),
  };
}

/** Repeats the first contract's first counter word for word under another name. */
function withTwin(contracts: readonly Contract[]): readonly Contract[] {
  return contracts.map((contract, index) => {
    const [first] = contract.counters;
    if (index > 0 || first === undefined) return contract;
    return { ...contract, counters: [...contract.counters, { ...first, name: "twin" }] };
  });
}

/** Gives every contract with the limit `most` the same counter text, each with its own limit. */
function withShared(contracts: readonly Contract[]): readonly Contract[] {
  const isOver: Expression = binary(">", { kind: "limit", name: "most" }, literal.number("3"));
  return contracts.map((contract) => {
    const of = contract.tools.slice(0, 1).map(({ name }) => name);
    if (!contract.limits.some(({ name }) => name === "most")) return contract;
    const when = binary(">=", { kind: "counter", name: "same" }, literal.number("1"));
    return {
      ...contract,
      counters: [...contract.counters, { name: "same", of, per: ["gate"], when: isOver }],
      rules: [
        ...contract.rules,
        { name: "same", on: of, lets: [], when, verdict: "ESCALATE", final: false, reason: ["it is not the first"] },
      ],
    };
  });
}

/** Moments of clock changes and of year ends, and ordinary ones. */
const starts = [
  "2026-03-29T00:30:00Z",
  "2026-10-24T21:00:00Z",
  "2026-03-08T06:30:00Z",
  "2026-11-01T03:00:00Z",
  "2025-12-31T12:00:00Z",
  "2024-02-28T23:59:59.999Z",
  "2026-04-24T20:00:00Z",
  "2026-09-06T03:00:00Z",
  "2026-10-03T14:00:00Z",
  "2026-04-04T14:00:00Z",
  "2026-07-04T12:34:56.789Z",
];

function makeCalls(chance: Chance, contracts: readonly Contract[], ground: Ground, count: number): readonly Call[] {
  let at = Date.parse(chance.pick(starts));
  const haste = chance.pick([0.1, 0.5, 0.9]);
  const platforms = contracts.flatMap(({ platform }) => platform ?? []);
  return chance.many(count, count, (): Call => {
    at += step(chance, haste);
    const [tool, schema] = chance.pick(ground.tools);
    const input = objectFor(chance, schema);
    return {
      at,
      key: chance.pick(["default", "default", "ci", "ops"]),
      session: chance.pick([null, "s1", "s1", "s1", "s2"]),
      tool: chance.often(0.05) ? "t.unknown" : tool,
      input: chance.often(0.06) ? damaged(chance, input) : input,
      platform: snapshot(chance, platforms, at),
    };
  });
}

/** Often the exact length of a window, or one millisecond off. */
function step(chance: Chance, haste: number): number {
  if (chance.often(0.2)) return 0;
  if (chance.often(0.2)) return chance.pick([1, 2, 499, 500, 501]);
  const lengths = chance.often(haste) ? rolling.slice(0, 5) : rolling.slice(4);
  const [{ n, d }, off] = [durationSeconds(chance.pick(lengths)), chance.pick([0, 0, -1, 1])];
  return Math.max(0, Number((n * 1000n) / d) + off);
}

/** Returns facts with every member that any of the contracts reads. */
function snapshot(chance: Chance, schemas: readonly Schema[], at: number): JsonObject | null {
  if (schemas.length === 0 ? chance.often(0.9) : chance.often(0.12)) return null;
  const properties = new Map(schemas.flatMap((schema) => schema.properties ?? []));
  const required = [...new Set(schemas.flatMap((schema) => schema.required ?? []))];
  const { obj } = objectFor(chance, { types: ["object"], properties: [...properties], required });
  const age = chance.pick([0, 0, 1, 10, 600, 86_400, -1]);
  const isWhole = schemas.some((schema) =>
    schema.properties?.some(([name, each]) => name === "as_of" && each.types[0] === "integer"),
  );
  const asOf = isWhole || chance.often(0.5) ? String(Math.floor(at / 1000) - age) : (at / 1000 - age).toFixed(3);
  const facts = {
    obj: obj.map(([name, value]) => [name, name === "as_of" ? { num: asOf } : value] as const),
  };
  return chance.often(0.04) ? damaged(chance, facts) : facts;
}
