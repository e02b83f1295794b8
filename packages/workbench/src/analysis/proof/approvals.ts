import type { PolicySet } from "../../../../readers/src/contract.ts";
import { compare, isExact, type ToolPlan } from "../../../../readers/src/ir.ts";
import { lengthText, parseNumber } from "../../../../core/src/wire/mod.ts";
import { isCoveredBy, impossible } from "../formula/reasoner.ts";
import { causesOf, isTrue, subjectsOf, type EscalationCause, type AnalysisSubject } from "../formula/subject.ts";
import type { ContractChange, ChangeDirection } from "./call.ts";
import { keyWith } from "../formula/key.ts";
import { makePlanKeyNames } from "./same.ts";

/** A part of the approvals that differs between two contracts. */
export interface ApprovalChange extends ContractChange<PartValue> {
  /** The rule that asks, such as `payments.large`; null if the part belongs to the tool or the mandate. */
  readonly rule: string | null;
  /** The rule after the change, if another rule may ask for the same call; else null. */
  readonly instead: string | null;
  /** As a contract writes it, such as `use_within`. */
  readonly part: string;
}

/** Times are lengths, such as `30m`. Null is everyone with the scope `approve`. */
export type PartValue = boolean | number | string | readonly string[] | null;

interface ComparisonSide {
  readonly policySet: PolicySet;
  readonly plan: ToolPlan;
}

/**
 * Compares what approvals of one tool need. No solver is needed: if a rule may ask for fewer calls than before,
 * it is compared with each rule that may ask instead.
 */
export function compareApprovals(before: ComparisonSide, after: ComparisonSide): readonly ApprovalChange[] {
  const [had, has] = [keyedCauses(before.plan), keyedCauses(after.plan)];
  const kept = had.flatMap((cause) => {
    const same = counterpart(cause, has);
    return same === undefined ? [] : termChanges(cause, same);
  });
  const lost = findReplacements(had, has, subjectsIn(after));
  const gained = findReplacements(has, had, subjectsIn(before)).map(reverseChange);
  const all = [...kept, ...lost, ...gained, ...boundChanges(before.plan, after.plan)];
  return [...new Map(all.map((change) => [JSON.stringify(change), change])).values()];
}

/** Compares the mandates' settings for all approvals. */
export function compareSettings({ approvals: a }: PolicySet, { approvals: b }: PolicySet): readonly ApprovalChange[] {
  const caps = ["key", "session", "ledger"] as const;
  return changes([
    ["self", a.self, b.self, order(Number(a.self), Number(b.self))],
    ...caps.map((cap): PartComparison => [`open.${cap}`, a.open[cap], b.open[cap], order(a.open[cap], b.open[cap])]),
  ]);
}

/** In assist mode, approvals of softened BLOCKs need more or less: a sentence for each rule. */
export function assistNotes(before: ToolPlan, after: ToolPlan): readonly string[] {
  const findSoftenedRules = ({ routes }: ToolPlan): readonly RuleTerms[] =>
    routes.flatMap(({ rules }) =>
      rules
        .filter(({ verdict, observed, final }) => verdict === "BLOCK" && !observed && !final)
        .map((rule) => ({ id: rule.id, terms: rule.terms })),
    );
  const has = findSoftenedRules(after);
  return findSoftenedRules(before).flatMap((cause) => {
    const same = has.find(({ id }) => id === cause.id);
    const parts = same === undefined ? [] : termChanges(cause, same).map(changeText);
    return parts.length === 0 ? [] : [`in assist mode, for a BLOCK by ${cause.id}: ${parts.join("; ")}`];
  });
}

/** `of: 2 -> 1 (weaker)` */
export function changeText({ part, before, after, direction }: Omit<ApprovalChange, "rule" | "instead">): string {
  return `${part}: ${valueText(before)} -> ${valueText(after)} (${direction})`;
}

function valueText(value: PartValue): string {
  if (value === null) return "everyone";
  return typeof value === "object" ? `[${value.join(", ")}]` : String(value);
}

type RuleTerms = Pick<EscalationCause, "id" | "terms">;

interface KeyedCause extends EscalationCause {
  /** The condition in one spelling. */
  readonly key: string;
}

function keyedCauses(plan: ToolPlan): readonly KeyedCause[] {
  const names = makePlanKeyNames(plan);
  return causesOf(plan).map((cause) => {
    return { ...cause, key: cause.when === undefined ? cause.id : keyWith(cause.when, names) };
  });
}

/** The rule of the same name; else the one with the same condition. */
function counterpart(cause: KeyedCause, others: readonly KeyedCause[]): KeyedCause | undefined {
  return others.find(({ id }) => id === cause.id) ?? others.find(({ key }) => key === cause.key);
}

/** The rules of a side, with its schemas and requirements. */
function subjectsIn({ policySet, plan }: ComparisonSide): readonly AnalysisSubject[] {
  return subjectsOf(policySet).filter(({ tool }) => tool === plan.tool);
}

/** Is it proven that each call for which the rule asks is refused, or asked for by its counterpart? */
function isKept(cause: KeyedCause, same: KeyedCause | undefined, subjects: readonly AnalysisSubject[]): boolean {
  if (cause.key === same?.key) return true;
  const subject = subjects.find(({ route }) => route.contract === cause.contract);
  if (subject === undefined || cause.when === undefined) return false;
  const blocks = subject.rules.filter(({ verdict }) => verdict === "BLOCK").map(({ when }) => when);
  const by = same?.when === undefined ? blocks : [...blocks, same.when];
  return isCoveredBy(subject, by.map(isTrue), isTrue(cause.when));
}

/** Is it proven that the two never ask for the same call? */
function areExclusive(cause: EscalationCause, other: EscalationCause, subjects: readonly AnalysisSubject[]): boolean {
  const subject = subjects.find(({ route }) => route.contract === cause.contract);
  if (subject === undefined || cause.when === undefined || other.when === undefined) return false;
  return impossible(subject, isTrue(cause.when), isTrue(other.when));
}

/**
 * The weaker terms under which other rules may ask, for calls for which a rule asks no longer. An `otherwise` asks only
 * if no rule fires, so only rules with another condition can replace it.
 */
function findReplacements(
  had: readonly KeyedCause[],
  has: readonly KeyedCause[],
  subjects: readonly AnalysisSubject[],
): readonly ApprovalChange[] {
  return had.flatMap((cause) => {
    const same = counterpart(cause, has);
    const isOtherwise = cause.when === undefined;
    if (!isOtherwise && isKept(cause, same, subjects)) return [];
    const known = isOtherwise ? new Set(had.map(({ key }) => key)) : new Set<string>();
    return has
      .filter((other) => other !== same && !known.has(other.key) && !areExclusive(cause, other, subjects))
      .flatMap((other) =>
        termChanges(cause, other)
          .filter(({ direction }) => direction !== "stricter")
          .map((change) => ({ ...change, instead: other.id })),
      );
  });
}

function reverseChange(change: ApprovalChange): ApprovalChange {
  const direction = change.direction === "weaker" ? "stricter" : change.direction;
  const { before, after } = change;
  return { ...change, rule: change.instead, instead: change.rule, direction, before: after, after: before };
}

type PartComparison = readonly [
  part: string,
  before: PartValue,
  after: PartValue,
  direction: ContractChange["direction"],
];

function termChanges(before: RuleTerms, after: RuleTerms): readonly ApprovalChange[] {
  const [a, b] = [before.terms, after.terms];
  const parts: readonly PartComparison[] = [
    ["by", a.by, b.by, groupsDirection(a.by, b.by)],
    ["of", a.of, b.of, order(b.of, a.of)],
    lengthPart("decide_within", a.decideWithinMs, b.decideWithinMs),
    lengthPart("use_within", a.useWithinMs, b.useWithinMs),
    ["batch", a.batch, b.batch, order(Number(a.batch), Number(b.batch))],
    ["pins", a.pins, b.pins, moreIs("stricter", a.pins, b.pins)],
    ["drift", a.drift, b.drift, driftDirection(a.drift, b.drift)],
    ["free", a.free, b.free, moreIs("weaker", a.free, b.free)],
    ["self", a.self === true, b.self === true, order(Number(a.self ?? false), Number(b.self ?? false))],
    ...grantParts(a.grants, b.grants),
  ];
  return changes(parts).map((change) => ({
    ...change,
    rule: before.id,
    instead: after.id === before.id ? null : after.id,
  }));
}

/** A rule that lets grants lift it is weaker than one that does not. */
function grantParts(before: GrantSettings | undefined, after: GrantSettings | undefined): readonly PartComparison[] {
  if (before === undefined || after === undefined)
    return [["grants", before !== undefined, after !== undefined, after === undefined ? "stricter" : "weaker"]];
  const [a, b] = [before, after];
  return [
    lengthPart("grants.at_most", a.atMostMs, b.atMostMs),
    ["grants.uses", a.uses, b.uses, order(a.uses, b.uses)],
    ["grants.pin", a.pin, b.pin, moreIs("stricter", a.pin, b.pin)],
    ...formParts(a.form, b.form),
  ];
}

/** With a form, the command line may differ; without one, other members may. So neither is stricter. */
function formParts(before: GrantSettings["form"], after: GrantSettings["form"]): readonly PartComparison[] {
  const [a, b] = [before?.free ?? [], after?.free ?? []];
  return [
    ["grants by form", before !== undefined, after !== undefined, "changed"],
    ["grants.free", a, b, moreIs("weaker", a, b)],
  ];
}

type GrantSettings = NonNullable<RuleTerms["terms"]["grants"]>;

/** The members and facts that an approval of the tool is, and is not, bound to. Only if both can ask a person. */
function boundChanges(before: ToolPlan, after: ToolPlan): readonly ApprovalChange[] {
  if (!before.canEscalate || !after.canEscalate) return [];
  return changes([
    ["unbound", before.unbound, after.unbound, moreIs("weaker", before.unbound, after.unbound)],
    ["subject", before.subject, after.subject, moreIs("stricter", before.subject, after.subject)],
  ]);
}

function changes(parts: readonly PartComparison[]): readonly ApprovalChange[] {
  return parts
    .filter(([, before, after]) => JSON.stringify(before) !== JSON.stringify(after))
    .map(([part, before, after, direction]) => ({ rule: null, instead: null, part, direction, before, after }));
}

function lengthPart(part: string, before: number, after: number): PartComparison {
  return [part, lengthText(before), lengthText(after), order(before, after)];
}

/** The direction if a larger number is weaker. */
function order(before: number, after: number): ChangeDirection {
  return after > before ? "weaker" : "stricter";
}

/** The direction between two lists if the longer one is weaker, or stricter. */
export function moreIs(
  more: ChangeDirection,
  before: readonly string[],
  after: readonly string[],
): ContractChange["direction"] {
  const [a, b] = [new Set(before), new Set(after)];
  if (a.isSubsetOf(b)) return more;
  if (b.isSubsetOf(a)) return more === "weaker" ? "stricter" : "weaker";
  return "changed";
}

function groupsDirection(
  before: readonly string[] | null,
  after: readonly string[] | null,
): ContractChange["direction"] {
  if (before === null) return "stricter";
  return after === null ? "weaker" : moreIs("weaker", before, after);
}

function driftDirection(before: string, after: string): ChangeDirection {
  const [a, b] = [parseNumber(before), parseNumber(after)];
  return isExact(a) && isExact(b) && compare(a, b) > 0 ? "stricter" : "weaker";
}
