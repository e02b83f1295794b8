import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readTests } from "../packages/workbench/src/test/read.ts";
import {
  compileContracts,
  planLookups,
  count,
  decide,
  loadFunctions,
  prepare,
  type PolicySet,
} from "../packages/readers/src/contract.ts";
import { openReady } from "../packages/gate/src/server/policy/mod.ts";
import { bad, parseCheckRequest, type CheckRequest } from "../packages/core/src/wire/mod.ts";
import { atMost, conclude, median, printTable, round } from "./report.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const rounds = 9;
const perRoundMs = 60;

/**
 * Measures the cost of one decision under each starter contract and under a thousand rules, and the cost of `check`
 * from a cold start.
 */
export async function benchContracts(): Promise<void> {
  const names = readdirSync(join(root, "contracts")).filter((name) => /(?<!\.test)\.yaml$/.test(name));
  const starters = await Promise.all(names.map(starter));
  const thousand = await compiled(manyContracts());
  const many = costOf(thousand, [requestOf('{"tool_name":"shared","tool_input":{"n":1,"s":"x"},"session_id":"s"}')]);
  printTable([
    ["contract", "rules", "calls", "us, median of rounds", "of the slowest call"],
    ...starters.map(({ name, rules, calls, each, slowest }) => [name, rules, calls, round(each), round(slowest)]),
    ["10 contracts of 100 rules, 300 on the tool", 1000, 1, round(many.each), round(many.slowest)],
  ]);
  const largest = starters.toSorted((a, b) => b.rules - a.rules)[0];
  const dearest = starters.toSorted((a, b) => b.each - a.each)[0];
  console.log(`\nlargest by rules: ${largest?.name}; dearest: ${dearest?.name}`);
  conclude("contracts", {
    largest_starter_us: atMost(largest?.each ?? Infinity, 20),
    three_hundred_rules_us: atMost(many.each, 300),
    check_all_cold_ms: atMost(checkMs(names), 1000),
  });
}

interface Starter extends Cost {
  readonly name: string;
  readonly rules: number;
  readonly calls: number;
}

/** Measures a contract of the library, on the calls of its own tests. */
async function starter(name: string): Promise<Starter> {
  const file = join(root, "contracts", name);
  const policySet = await compiled([{ name, text: readFileSync(file, "utf8") }]);
  const rules = new Set(
    [...policySet.tools.values()].flatMap(({ routes }) => routes.flatMap((route) => route.rules.map(({ id }) => id))),
  );
  const tests = file.replace(/\.yaml$/, ".test.yaml");
  const read = readTests({ name: tests, text: readFileSync(tests, "utf8") });
  if (!read.ok) throw new Error(`${tests} cannot be read`);
  const bodies = read.value.cases.flatMap(({ steps }) =>
    steps.flatMap((step) => (step.kind === "call" ? step.body : [])),
  );
  const requests = bodies.flatMap((body) => {
    const parsed = parseCheckRequest(body);
    return parsed.ok ? [parsed.value] : [];
  });
  return { name, rules: rules.size, calls: requests.length, ...costOf(policySet, requests) };
}

async function compiled(files: readonly { readonly name: string; readonly text: string }[]): Promise<PolicySet> {
  const found = compileContracts(files, { open: (name) => openReady(name) ?? bad("not a ready pack") });
  if (!found.ok) throw new Error(found.problem.map(({ message }) => message).join("\n"));
  await loadFunctions(found.value);
  return found.value;
}

interface Cost {
  /** Microseconds of a decision, over all calls. */
  readonly each: number;
  /** Microseconds of the slowest call. */
  readonly slowest: number;
}

function costOf(policySet: PolicySet, requests: readonly CheckRequest[]): Cost {
  const single = requests.map((request) => timed(policySet, [request], perRoundMs / 10));
  timed(policySet, requests, 500);
  const each = median(Array.from({ length: rounds }, () => timed(policySet, requests, perRoundMs)));
  return {
    each,
    slowest: Math.max(
      ...requests.map((request, at) => Math.min(single[at] ?? Infinity, timed(policySet, [request], perRoundMs / 10))),
    ),
  };
}

/** Returns the microseconds of one decision, including schemas and counting. */
function timed(policySet: PolicySet, requests: readonly CheckRequest[], forMs: number): number {
  const from = performance.now();
  let decided = 0;
  while (performance.now() - from < forMs) {
    for (const request of requests) decideOnce(policySet, request);
    decided += requests.length;
  }
  return ((performance.now() - from) / decided) * 1000;
}

function decideOnce(policySet: PolicySet, request: CheckRequest): void {
  const prepared = prepare(policySet, request, { keyName: "default", sessionId: request.sessionId });
  const lookupPlan = planLookups(prepared, 1_790_000_000_000);
  const { verdict } = decide(
    lookupPlan,
    lookupPlan.lookups.map(() => "0"),
  );
  count(prepared, { verdict, answered: verdict });
}

function requestOf(body: string): CheckRequest {
  const parsed = parseCheckRequest(body);
  if (!parsed.ok) throw new Error(parsed.problem.detail);
  return parsed.value;
}

/** Ten contracts of a hundred rules each; thirty rules of each apply to a tool that all of them route. */
function manyContracts(): readonly { readonly name: string; readonly text: string }[] {
  const input =
    "{ type: object, additionalProperties: false, required: [n, s], properties: { n: { type: number, minimum: 0 }, s: { type: string } } }"
      .replace("[n,", '["n",')
      .replace("{ n:", '{ "n":');
  return Array.from({ length: 10 }, (_, contract) => ({
    name: `c${contract}.yaml`,
    text: [
      `contract: c${contract}`,
      "tools:",
      ...["shared", `own${contract}`].map((tool) => `  ${tool}: { input: ${input}, otherwise: ALLOW }`),
      `counters: { k: { of: shared, per: session, within: ${contract + 1}m } }`,
      "rules:",
      ...Array.from({ length: 100 }, (_rule, rule) => {
        const on = rule < 30 ? "shared" : `own${contract}`;
        const when = `input.n > ${rule + 10} && input.s == "a${rule}" || counters.k > ${rule + 5}`;
        return `  - { rule: r${rule}, on: ${on}, when: '${when}', verdict: BLOCK, reason: "{input.n} is too much" }`;
      }),
    ].join("\n"),
  }));
}

/** Runs a process that compiles every contract of the library, first each alone, then all in one mandate. */
function checkMs(names: readonly string[]): number {
  const mandate = join(root, "examples", "mandate.all.yaml");
  const missing = names.filter((name) => !readFileSync(mandate, "utf8").includes(name));
  if (missing.length > 0) throw new Error(`examples/mandate.all.yaml does not name ${missing.join(", ")}`);
  const times = Array.from({ length: 5 }, () => {
    const from = performance.now();
    const { status, stderr } = spawnSync(process.execPath, [join(root, "bin", "svc-gate.mjs"), "check", mandate]);
    if (status !== 0) throw new Error(String(stderr));
    return performance.now() - from;
  });
  return median(times);
}
