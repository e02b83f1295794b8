/**
 * Goal: `diff` never gives a wrong answer about two contracts, and seldom an unknown one. Method: random contracts,
 * each with a change of a known kind (`model/mutate.ts`). An answer is wrong if a tightening makes a call weaker or a
 * renaming changes anything. It is also wrong if one of many random calls shows a direction that `diff` excludes.
 * `DIFF_PAIRS` and `DIFF_SEED` set how many pairs and which.
 */
import assert from "node:assert/strict";
import { after, suite, test } from "node:test";
import { compareContracts, openSolver, type ToolDifference } from "../../../packages/workbench/src/analysis/mod.ts";
import type { PolicySet } from "../../../packages/core/src/contract/mod.ts";
import { isStricter } from "../../../packages/core/src/wire/mod.ts";
import { compile, Engine } from "../../support/model/engine.ts";
import { generate } from "../../support/model/generate.ts";
import { mutate, type Kind, type Mutation } from "../../support/model/mutate.ts";
import { printContract } from "../../support/model/print.ts";
import { printSeed, seedOf } from "../../support/random-test.ts";

const pairs = Number(process.env["DIFF_PAIRS"] ?? 30);
const seed = seedOf("DIFF_SEED", 1);
/** A bound that only detects a hang. */
const timeMs = 120_000;
const callsMax = 400;

interface Pair {
  readonly seed: number;
  readonly mutation: Mutation;
  readonly before: PolicySet;
  readonly after: PolicySet;
}

/** Returns pairs that compile on both sides, from the seed on. */
function* pairsFrom(from: number, count: number): Generator<Pair> {
  for (let at = from, left = count; left > 0; at += 1) {
    const mutation = mutate(generate(at, 1), at);
    if (mutation === undefined) continue;
    const [a, b] = [compile(mutation.before), compile(mutation.after)];
    if (!a.ok || !b.ok) continue;
    left -= 1;
    yield { seed: at, mutation, before: a.value, after: b.value };
  }
}

/** The possible answers for a change of this kind. */
const possible: Readonly<Record<Kind, readonly string[]>> = {
  equal: ["equivalent"],
  renamed: ["equivalent"],
  reordered: ["equivalent"],
  tightened: ["equivalent", "stricter"],
  loosened: ["equivalent", "weaker"],
  both: ["equivalent", "stricter", "weaker", "changed"],
};

/** Returns the directions in which random calls get another verdict, by tool, each with its first call. */
function seen(pair: Pair): ReadonlySet<string> {
  const found = new Set<string>();
  for (const call of generate(pair.seed, callsMax).calls) {
    const [a, b] = [pair.before, pair.after].map(
      (policySet) => new Engine(policySet, "enforce").check(call).decision.verdict,
    );
    if (a === undefined || b === undefined || a === b) continue;
    found.add(`${call.tool} ${isStricter(a, b) ? "weaker" : "stricter"}`);
  }
  return found;
}

function wrong({ mutation }: Pair, found: ToolDifference, shown: ReadonlySet<string>): string | undefined {
  if (found.defects.length > 0) return "a defect of the translation";
  if (found.answer === "unknown") return undefined;
  if (!possible[mutation.kind].includes(found.answer)) return `${mutation.kind} cannot be ${found.answer}`;
  for (const direction of ["weaker", "stricter"] as const) {
    if (shown.has(`${found.tool} ${direction}`) && !found.shown.has(direction)) return `it is ${direction}, too`;
  }
  return undefined;
}

function tell({ mutation }: Pair, found: ToolDifference): string {
  const texts = [mutation.before, mutation.after].map((scenario) => scenario.contracts.map(printContract).join("\n"));
  return `${mutation.kind}: ${mutation.way}\n${JSON.stringify({ ...found, shown: [...found.shown] }, null, 1)}\n${texts.join("\n=====\n")}`;
}

suite("random pairs of contracts", () => {
  const opened = openSolver();
  after(async () => (await opened)?.close());

  test(
    `diff gives no wrong answer on ${pairs} pairs from seed ${seed}, and at most 5 % unknown`,
    { timeout: 3_600_000 },
    async (t) => {
      printSeed(t, { cases: pairs, seed, variable: "DIFF_SEED" });
      const solver = await opened;
      assert.ok(solver, "z3-solver is not installed");
      const counts = new Map<string, number>();
      let unknown = 0;
      for (const pair of pairsFrom(seed, pairs)) {
        const differences = await compareContracts(pair.before, pair.after, { solver, timeMs });
        const shown = seen(pair);
        for (const found of differences) {
          const problem = wrong(pair, found, shown);
          assert.equal(problem, undefined, tell(pair, found));
          const key = `${pair.mutation.kind} ${found.answer}`;
          counts.set(key, (counts.get(key) ?? 0) + 1);
          if (found.answer === "unknown" && process.env["DIFF_TELL"] !== undefined) t.diagnostic(tell(pair, found));
        }
        if (differences.some(({ answer }) => answer === "unknown")) unknown += 1;
      }
      t.diagnostic(JSON.stringify(Object.fromEntries([...counts].toSorted(([a], [b]) => (a < b ? -1 : 1)))));
      t.diagnostic(`${unknown} of ${pairs} pairs have a tool that is unknown`);
      assert.ok(unknown <= pairs * 0.05, `${unknown} of ${pairs} are unknown`);
    },
  );
});
