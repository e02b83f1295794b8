/**
 * Goal: what `analyze` says cannot be, is not; and where it says nothing of errors, there is none.
 * Method: random contracts are analysed, and random calls are decided by the engine with a probe around each condition. A
 * condition that is said never to be true must never be, a rule that is said never to decide must decide nothing, a
 * division or an index that is not said to fail must not. The same check on findings made up for the occasion must fail.
 * The seed of a failing case is printed.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { analyze, type Finding } from "../src/analysis/mod.ts";
import type { ContractInForce, Core, Probe, Span } from "../src/contract/mod.ts";
import { EvaluationError } from "../src/contract/mod.ts";
import { compile, Engine } from "./model/engine.ts";
import { generate } from "./model/generate.ts";

/** What conditions came to, by their places. */
class Seen {
  readonly #values = new Map<string, Set<unknown>>();
  readonly #errors = new WeakSet<EvaluationError>();
  readonly failures = new Map<string, string>();
  readonly deciders = new Set<string>();

  readonly probe: Probe = (core: Core, evaluate) => (situation) => {
    try {
      const value = evaluate(situation);
      if (typeof value === "boolean") this.valuesAt(core.span).add(value);
      return value;
    } catch (error) {
      const isOwn = core.op === "index" || (core.op === "binary" && (core.operator === "/" || core.operator === "%"));
      const isNew = error instanceof EvaluationError && !this.#errors.has(error);
      if (isNew) this.#errors.add(error);
      if (isOwn && isNew) this.failures.set(placeText(core.span), error.message);
      throw error;
    }
  };

  valuesAt(span: Span): Set<unknown> {
    const key = placeText(span);
    const found = this.#values.get(key) ?? new Set();
    this.#values.set(key, found);
    return found;
  }
}

function placeText({ file, from, to }: Span): string {
  return `${file.name}:${from}:${to}`;
}

/** What is not true of the findings, after what was seen. */
function lies(findings: readonly Finding[], force: ContractInForce, seen: Seen): readonly string[] {
  const rules = [...force.tools.values()].flatMap(({ routes }) => routes.flatMap((route) => route.rules));
  return findings.flatMap((finding) => {
    const values = seen.valuesAt(finding.span);
    const lie = `${finding.code} at ${placeText(finding.span)}: ${finding.message}`;
    switch (finding.code) {
      case "never-fires":
        return values.has(true) ? [lie] : [];
      case "always-fires":
        return values.has(false) ? [lie] : [];
      case "dead-part":
        return values.has(finding.message.includes("||")) ? [lie] : [];
      case "shadowed":
      case "contradiction":
      case "escalate-under-block": {
        const rule = rules.find(({ when }) => placeText(when.span) === placeText(finding.span));
        return rule !== undefined && seen.deciders.has(rule.id) ? [lie] : [];
      }
      default:
        return [];
    }
  });
}

interface Run {
  readonly findings: readonly Finding[];
  readonly force: ContractInForce;
  readonly seen: Seen;
}

/** Undefined for the rare scenario that does not compile. */
async function run(seed: number): Promise<Run | undefined> {
  const scenario = generate(seed);
  const seen = new Seen();
  const force = compile(scenario, { probe: seen.probe });
  if (!force.ok) return undefined;
  const findings = await analyze(force.value);
  const engine = new Engine(force.value, scenario.mode);
  for (const call of scenario.calls) {
    const { decision } = engine.check(call);
    if (decision.errors.length === 0) seen.deciders.add(decision.rule);
  }
  return { findings, force: force.value, seen };
}

const scenarios = 150;

suite("what is found is true", () => {
  test(`of ${scenarios} random mandates`, async (t) => {
    let told = 0;
    for (let seed = 1; seed <= scenarios; seed += 1) {
      const ran = await run(seed);
      if (ran === undefined) continue;
      const { findings, force, seen } = ran;
      told += findings.length;
      assert.deepEqual(lies(findings, force, seen), [], `seed ${seed}`);
      const warned = new Set(findings.filter(({ code }) => code === "may-fail").map(({ span }) => placeText(span)));
      for (const [place, message] of seen.failures)
        assert.equal(warned.has(place), true, `seed ${seed}: ${place}: ${message}`);
    }
    t.diagnostic(`${told} findings`);
    assert.equal(told > scenarios, true);
  });

  test("and what is made up is not", async () => {
    const found: string[] = [];
    for (let seed = 1; seed <= 10; seed += 1) {
      const ran = await run(seed);
      if (ran === undefined) continue;
      const { force, seen } = ran;
      const rules = [...force.tools.values()].flatMap(({ routes }) => routes.flatMap((route) => route.rules));
      const madeUp = rules.flatMap(({ when }) =>
        (["never-fires", "always-fires", "shadowed"] as const).map((code) => ({
          code,
          span: when.span,
          message: "",
          hint: "",
        })),
      );
      found.push(...lies(madeUp, force, seen).map((lie) => lie.split(" ")[0] ?? ""));
    }
    assert.deepEqual([...new Set(found)].toSorted(), ["always-fires", "never-fires", "shadowed"]);
  });
});
