import { canonical, isAmong, isPartOf, overlaps, type Canonical, type Verdict } from "../../wire/mod.ts";
import type { Route, Rule, ToolPlan } from "./compile-tool.ts";
import type { CallCore, Core } from "../core/core.ts";
import type { Decision } from "../core/decision.ts";
import { boundsOf, commandLineOf, findCommandLine, mergedBound, placeOf, type Bound } from "./bounds.ts";
import { isNumber, readCounters, readMembers } from "./reads.ts";
import { combineTerms, type ApprovalTerms, type GrantTerms, type CombinedTerms } from "../core/terms.ts";

/** A rule because of which a person must decide. */
export interface Cause {
  /** `contract.rule` or `contract.$otherwise`. */
  readonly rule: string;
  /** The rule's meaning as canonical text: with its limits, names, counters, schemas and terms. */
  readonly meaning: string;
  readonly terms: ApprovalTerms;
  /** The counters that the rule reads, by full name. */
  readonly counters: readonly string[];
  /** The facts that the rule or its reason reads, such as `platform.price`, without those that its terms leave free. */
  readonly facts: readonly ReadFact[];
  /** Those that its terms leave free. */
  readonly free: readonly string[];
  /** The members that decide the rule, such as `input.usd`, each with how it may differ in a call of a grant. */
  readonly bounds: ReadonlyMap<string, Bound>;
  /** What reads the condition's command line, if it has one. */
  readonly line: CallCore | undefined;
}

/** A fact that must be what the person saw, or near it if it is a number. */
export interface ReadFact {
  readonly path: string;
  /** `presence` if no value of the fact is read. */
  readonly as: "number" | "presence" | "value";
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
    const causes = active
      .filter(({ verdict }) => verdicts.includes(verdict))
      .map((rule) => ruleCause(rule, route, plan));
    return active.length === 0 && route.otherwise === "ESCALATE" ? [...causes, otherwiseCause(route, plan)] : causes;
  });
}

interface GrantNeeds extends Omit<GrantTerms, "form">, ReturnType<typeof addedMembers>, Pick<Cause, "bounds"> {
  readonly form: GrantedLine | undefined;
}

/** The command line that may differ in calls of a grant. */
interface GrantedLine {
  /** Such as `input.command`. */
  readonly member: string;
  /** What reads it. */
  readonly line: CallCore;
  /** Members and facts that may differ. */
  readonly free: readonly string[];
}

/** What an approval needs, and what a grant must bind if the causes permit one. */
type ApprovalNeeds = Omit<CombinedTerms, "grants"> & {
  readonly grants: GrantNeeds | undefined;
  /** The facts that the causes read and that may differ. */
  readonly free: readonly string[];
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
export function requirementFor(plan: ToolPlan, causes: readonly Cause[], softened: boolean): ApprovalNeeds {
  const own = causes.map(({ terms }) => terms);
  const all = plan.routes.flatMap(({ terms, rules }) => [
    terms,
    ...rules.filter(({ verdict }) => verdict === "ESCALATE").map((rule) => rule.terms),
  ]);
  const combined = combineTerms(softened ? [...own, ...all] : own);
  // Nobody moves money for themselves.
  const self = combined.self && !softened && !plan.writers.some(({ counter }) => counter.sums);
  const requirement = { ...combined, self };
  const kept = causes.flatMap(({ facts }) => facts);
  const isKept = (path: string): boolean =>
    kept.some((fact) => (fact.as === "presence" ? isPartOf(fact.path, path) : overlaps(fact.path, path)));
  const free = [...new Set(causes.flatMap((cause) => cause.free))].filter((path) => !isKept(path)).toSorted();
  // A grant never lifts a BLOCK.
  if (softened || requirement.grants === undefined) return { ...requirement, grants: undefined, free };
  const bounds = new Map<string, Bound>();
  for (const [path, bound] of causes.flatMap((cause) => [...cause.bounds]))
    if (!isAmong(path, requirement.grants.form?.free ?? [])) bounds.set(path, mergedBound(bounds.get(path), bound));
  const { form: terms } = requirement.grants;
  const form = terms && formOf(causes, bounds, terms.free);
  if (terms !== undefined && form === undefined) return { ...requirement, grants: undefined, free };
  return { ...requirement, grants: { ...requirement.grants, ...addedMembers(plan), bounds, form }, free };
}

/** Undefined if two expressions read a command line: they may have two tables. */
function formOf(causes: readonly Cause[], bounds: Cause["bounds"], free: readonly string[]): GrantedLine | undefined {
  const [line, ...others] = new Map(causes.map((cause) => [cause.line && placeOf(cause.line), cause.line])).values();
  const member = line && commandLineOf(line);
  if (line === undefined || member === undefined || others.length > 0) return undefined;
  return bounds.get(member) === "form" ? { member, line, free } : undefined;
}

const known = new WeakMap<Rule | Route, Cause>();

function ruleCause(rule: Rule, route: Route, plan: ToolPlan): Cause {
  return memoizeCause(rule, () => {
    const meaning = { ...rule.meaning(), verdict: rule.verdict };
    return causeOf(rule, route, plan, meaning);
  });
}

function otherwiseCause(route: Route, plan: ToolPlan): Cause {
  const { contract, otherwiseShows: shows, terms } = route;
  const rule = { id: `${contract}.$otherwise`, shows, terms };
  return memoizeCause(route, () => causeOf(rule, route, plan, { otherwise: "ESCALATE" }));
}

function memoizeCause(of: Rule | Route, make: () => Cause): Cause {
  const found = known.get(of) ?? make();
  known.set(of, found);
  return found;
}

function causeOf(
  { id, shows, terms, when }: Pick<Rule, "id" | "shows" | "terms"> & { readonly when?: Core },
  route: Route,
  { subject, unbound }: ToolPlan,
  own: Readonly<Record<string, Canonical>>,
): Cause {
  const cores = when === undefined ? shows : [when, ...shows];
  const facts = readFacts(cores);
  const isFree = isFreeIn(terms);
  const schemas = JSON.stringify([route.schemas.input ?? null, route.schemas.platform ?? null], textOfJson);
  // What the approval of a call is bound to is a part of what the person was asked.
  const binding = { hostFacts: [...route.hostFacts].toSorted(), numbers: route.onlyDoubles, subject, unbound };
  return {
    rule: id,
    meaning: canonical({ ...own, binding, rule: id, schemas, terms: termsJson(terms) }),
    terms: { ...terms, pins: terms.pins.map((pin) => pin.replace(/^counters\./, `counters.${route.contract}.`)) },
    counters: readCounters(cores),
    facts: facts.filter(({ path }) => !isFree(path)),
    free: facts.filter(({ path }) => isFree(path)).map(({ path }) => path),
    bounds: when === undefined ? new Map() : boundsOf(when, isFree),
    line: when && findCommandLine(when),
  };
}

function isFreeIn({ free }: ApprovalTerms): (path: string) => boolean {
  return (path) => free.some((each) => isPartOf(path, each));
}

function readFacts(cores: readonly Core[]): readonly ReadFact[] {
  const read = readMembers(cores).filter(({ path }) => /^platform(?:\.|$)/.test(path));
  const paths = [...new Set(read.map(({ path }) => path))].toSorted();
  return paths.map((path) => {
    const values = read.filter((each) => each.path === path && !each.isPresence);
    const as = values.some(({ type }) => isNumber(type)) ? "number" : values.length > 0 ? "value" : "presence";
    return { path, as };
  });
}

function termsJson({ anySession, by, grants, ...terms }: ApprovalTerms): Canonical {
  const sessions = anySession ? { sessions: "any" } : {};
  const own = { ...terms, ...sessions, by: by === null ? null : [...by], free: [...terms.free], pins: [...terms.pins] };
  if (grants === undefined) return own;
  const { form, pin, ...most } = grants;
  return { ...own, grants: { ...most, pin: [...pin], ...(form !== undefined && { form: { free: [...form.free] } }) } };
}

/** Maps and decimals as JSON has them. */
function textOfJson(_name: string, value: unknown): unknown {
  if (value instanceof Map) return Object.fromEntries(value);
  return typeof value === "object" && value !== null && "text" in value && !Array.isArray(value) ? value.text : value;
}
