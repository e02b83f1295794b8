import { canonical, type Canonical, type Verdict } from "../../wire/mod.ts";
import type { Route, Rule, ToolPlan } from "./compile-tool.ts";
import type { Decision } from "../core/decision.ts";
import { boundsOf, mergedBound, type Bound } from "./bounds.ts";
import { isNumber, readCounters, readMembers } from "./reads.ts";
import { requirementOf, type ApprovalTerms, type GrantTerms, type Requirement } from "./terms.ts";

/** A rule because of which a person must decide. */
export interface Cause {
  /** `contract.rule` or `contract.$otherwise`. */
  readonly rule: string;
  /** The rule's meaning as canonical text: with its limits, names, counters, schemas and terms. */
  readonly meaning: string;
  readonly terms: ApprovalTerms;
  /** The counters that the rule reads, by full name. */
  readonly counters: readonly string[];
  /** The numeric facts that the rule reads, such as `platform.price`. */
  readonly facts: readonly string[];
  /** The members that decide the rule, such as `input.usd`, each with how it may differ in a call of a grant. */
  readonly bounds: ReadonlyMap<string, Bound>;
  /** The facts that the rule or its reason reads. */
  readonly reads: readonly string[];
}

/**
 * The rules because of which a person must decide this call.
 *
 * @param softened whether assist mode softened a BLOCK; then the rules that BLOCK are causes too
 */
export function causesOf(plan: ToolPlan, { fired }: Pick<Decision, "fired">, softened: boolean): readonly Cause[] {
  const verdicts: readonly Verdict[] = softened ? ["ESCALATE", "BLOCK"] : ["ESCALATE"];
  return plan.routes.flatMap((route) => {
    const active = route.rules.filter(({ id }) => fired.includes(id));
    const causes = active.filter(({ verdict }) => verdicts.includes(verdict)).map((rule) => ruleCause(rule, route));
    return active.length === 0 && route.otherwise === "ESCALATE" ? [...causes, otherwiseCause(route)] : causes;
  });
}

/** What an approval needs, and what a grant must bind if the causes permit one. */
type Needed = Omit<Requirement, "grants"> & {
  readonly grants: (GrantTerms & ReturnType<typeof addedMembers> & Pick<Cause, "bounds" | "reads">) | undefined;
};

/** The members that decide what a call adds to counters: numbers that are added up as they are, and all others. */
function addedMembers({ writers }: ToolPlan): {
  readonly sums: readonly string[];
  readonly others: readonly string[];
} {
  const summing = writers.filter(({ counter }) => counter.sums);
  const sums = summing.flatMap(({ counter }) => counter.sumOf ?? []);
  const others = summing
    .filter(({ counter }) => counter.sumOf === undefined)
    .flatMap(({ reads }) => readMembers(reads.values).map(({ path }) => path));
  return { sums: [...new Set(sums)].toSorted(), others: [...new Set(others)].toSorted() };
}

/**
 * What an approval of these causes needs. A softened BLOCK needs everything that any approval of the tool needs, because
 * its rule names nobody.
 */
export function requirementFor(plan: ToolPlan, causes: readonly Cause[], softened: boolean): Needed {
  const own = causes.map(({ terms }) => terms);
  const all = plan.routes.flatMap(({ terms, rules }) => [
    terms,
    ...rules.filter(({ verdict }) => verdict === "ESCALATE").map((rule) => rule.terms),
  ]);
  const requirement = requirementOf(softened ? [...own, ...all] : own);
  // A grant never lifts a BLOCK.
  if (softened || requirement.grants === undefined) return { ...requirement, grants: undefined };
  const bounds = new Map<string, Bound>();
  for (const [path, bound] of causes.flatMap((cause) => [...cause.bounds]))
    bounds.set(path, mergedBound(bounds.get(path), bound));
  const reads = [...new Set(causes.flatMap((cause) => cause.reads))].toSorted();
  return { ...requirement, grants: { ...requirement.grants, ...addedMembers(plan), bounds, reads } };
}

const known = new WeakMap<Rule | Route, Cause>();

function ruleCause(rule: Rule, route: Route): Cause {
  return remembered(rule, () => {
    const meaning = { ...rule.meaning(), verdict: rule.verdict };
    return causeOf(rule.id, rule.terms, route, meaning, [rule.when, ...rule.shows], boundsOf(rule.when));
  });
}

function otherwiseCause(route: Route): Cause {
  const rule = `${route.contract}.$otherwise`;
  return remembered(route, () => causeOf(rule, route.terms, route, { otherwise: "ESCALATE" }, route.otherwiseShows));
}

function remembered(of: Rule | Route, make: () => Cause): Cause {
  const found = known.get(of) ?? make();
  known.set(of, found);
  return found;
}

function causeOf(
  rule: string,
  terms: ApprovalTerms,
  route: Route,
  meaning: Readonly<Record<string, Canonical>>,
  cores: Rule["shows"],
  bounds: Cause["bounds"] = new Map(),
): Cause {
  const facts = readMembers(cores).filter(({ path }) => path.startsWith("platform."));
  const numeric = facts.filter(({ type }) => isNumber(type));
  const schemas = JSON.stringify([route.schemas.input ?? null, route.schemas.platform ?? null], textOfJson);
  return {
    rule,
    meaning: canonical({ ...meaning, rule, schemas, terms: termsJson(terms) }),
    terms: { ...terms, pins: terms.pins.map((pin) => pin.replace(/^counters\./, `counters.${route.contract}.`)) },
    counters: readCounters(cores),
    facts: [...new Set(numeric.map(({ path }) => path))].toSorted(),
    bounds,
    reads: [...new Set(facts.map(({ path }) => path))].toSorted(),
  };
}

function termsJson({ by, grants, ...terms }: ApprovalTerms): Canonical {
  const own = { ...terms, by: by === null ? null : [...by], pins: [...terms.pins] };
  return grants === undefined ? own : { ...own, grants: { ...grants, pin: [...grants.pin] } };
}

/** Maps and decimals as JSON has them. */
function textOfJson(_name: string, value: unknown): unknown {
  if (value instanceof Map) return Object.fromEntries(value);
  return typeof value === "object" && value !== null && "text" in value && !Array.isArray(value) ? value.text : value;
}
