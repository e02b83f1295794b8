import { analyze, type ContractFinding } from "../../../packages/workbench/src/analysis/mod.ts";
import { EvaluationError, type PolicySet, type Span } from "../../../packages/core/src/contract/mod.ts";
import type { Core, Probe } from "../../../packages/core/src/contract/ir.ts";
import { compile, Engine } from "../model/engine.ts";
import { generate } from "../model/generate.ts";

/** The observed values of conditions, by their positions. */
class Seen {
  readonly #values = new Map<string, Set<unknown>>();
  readonly #errors = new WeakSet<EvaluationError>();
  readonly failures = new Map<string, string>();
  readonly deciders = new Set<string>();

  readonly probe: Probe = (core: Core, evaluate) => (context) => {
    try {
      const value = evaluate(context);
      if (typeof value === "boolean") this.valuesAt(core.span).add(value);
      return value;
    } catch (error) {
      const isOwn = core.op === "index" || (core.op === "binary" && (core.operator === "/" || core.operator === "%"));
      const isNew = error instanceof EvaluationError && !this.#errors.has(error);
      if (isNew) this.#errors.add(error);
      if (isOwn && isNew) this.failures.set(locationText(core.span), error.message);
      throw error;
    }
  };

  valuesAt(span: Span): Set<unknown> {
    const key = locationText(span);
    const found = this.#values.get(key) ?? new Set();
    this.#values.set(key, found);
    return found;
  }
}

export function locationText({ file, from, to }: Span): string {
  return `${file.name}:${from}:${to}`;
}

/** Returns the findings that the observations contradict. */
export function lies(findings: readonly ContractFinding[], policySet: PolicySet, seen: Seen): readonly string[] {
  const rules = [...policySet.tools.values()].flatMap(({ routes }) => routes.flatMap((route) => route.rules));
  return findings.flatMap((finding) => {
    const values = seen.valuesAt(finding.span);
    const lie = `${finding.code} at ${locationText(finding.span)}: ${finding.message}`;
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
        const rule = rules.find(({ when }) => locationText(when.span) === locationText(finding.span));
        return rule !== undefined && seen.deciders.has(rule.id) ? [lie] : [];
      }
      default:
        return [];
    }
  });
}

export interface Run {
  readonly findings: readonly ContractFinding[];
  readonly policySet: PolicySet;
  readonly seen: Seen;
}

/** Undefined for the rare scenario that does not compile. */
export function run(seed: number): Run | undefined {
  const scenario = generate(seed);
  const seen = new Seen();
  const policySet = compile(scenario, { probe: seen.probe });
  if (!policySet.ok) return undefined;
  const findings = analyze(policySet.value);
  const engine = new Engine(policySet.value, scenario.mode);
  for (const call of scenario.calls) {
    const { decision } = engine.check(call);
    if (decision.errors.length === 0) seen.deciders.add(decision.rule);
  }
  return { findings, policySet: policySet.value, seen };
}
