import type { PolicySet } from "../../../../readers/src/contract.ts";
import { children, memberPath, readMembers, type Core, type ToolPlan } from "../../../../readers/src/ir.ts";
import { causesOf, shortName, type AnalysisSubject } from "../formula/subject.ts";
import { declaredFacts, type DeclaredFact } from "./declared-facts.ts";
import type { ContractFinding } from "./finding.ts";

/** Facts that say whose money or data a call uses, but to which an approval is not bound. */
export function findInSubjects(subjects: readonly AnalysisSubject[], policySet: PolicySet): readonly ContractFinding[] {
  const plans = Map.groupBy(subjects, ({ document }) => document);
  return [...plans].flatMap(([document, own]) => {
    const all = own.flatMap(({ tool }) => policySet.tools.get(tool) ?? []);
    return declaredFacts(document).flatMap((fact) => {
      const [first] = all.flatMap((plan) => looseIn(plan, fact, all) ?? []);
      return first === undefined ? [] : [findingOf(fact, first)];
    });
  });
}

interface Loose {
  readonly tool: string;
  readonly why: string;
}

function findingOf({ path, span }: DeclaredFact, { tool, why }: Loose): ContractFinding {
  return {
    code: "open-subject",
    span,
    message: `an approval for \`${tool}\` is valid for any \`${path}\`: ${why}`,
    hint:
      `add \`${path}\` to \`subject:\`, or to the \`pins\` of the rules that ask; or write above the fact ` +
      "`# svc-gate: allow open-subject because ...`",
  };
}

/** Why an approval of the tool should be bound to the fact; undefined if it is, or if it does not matter. */
function looseIn(plan: ToolPlan, fact: DeclaredFact, all: readonly ToolPlan[]): Loose | undefined {
  const { tool } = plan;
  if (fact.kind === "other" || plan.subject.some((bound) => isTrue(bound, fact.path))) return undefined;
  const causes = causesOf(plan).filter(({ terms: { pins } }) => !pins.some((pin) => isTrue(pin, fact.path)));
  if (causes.length === 0 || isTied(plan, fact.path)) return undefined;
  if (isIdentity(fact) && !hasBoundId(plan, fact.path) && all.some((each) => isRead(each, fact.path)))
    return { tool, why: "its name says whose money or data the call uses" };
  if (fact.kind === "number" || fact.isLimited) return undefined;
  for (const { id, when, shows } of causes) {
    const name = when === undefined ? "`otherwise`" : `\`${shortName(id)}\``;
    if (shows.some((core) => reads(core, fact.path)))
      return { tool, why: `a person reads it in the reason of ${name}` };
    if (when !== undefined && isCompared(when, fact.path, false))
      return { tool, why: `${name} asks a person because it differs from another value of the call` };
  }
  return undefined;
}

/** Is the fact one of the names of a party whose `id` is bound, such as `customer.email` beside `customer.id`? */
function hasBoundId({ subject }: ToolPlan, path: string): boolean {
  const [label = "", party = "", ...above] = path.split(".").toReversed();
  return labels.has(label) && parties.has(party) && subject.includes([...above.toReversed(), party, "id"].join("."));
}

/** Is the fact the bound one, or inside it? */
function isTrue(bound: string, path: string): boolean {
  return path === bound || path.startsWith(`${bound}.`);
}

/** Does the expression read the fact's value, alone or within an object? */
function reads(core: Core, path: string): boolean {
  return readMembers([core]).some((read) => read.type.kind !== "boolean" && isTrue(read.path, path));
}

/** Does anything read the fact for a call of the tool? A fact that nothing reads is an unused fact. */
function isRead({ routes, writers, readers }: ToolPlan, path: string): boolean {
  const cores = [
    ...routes.flatMap(({ rules, requires, otherwiseShows }) => [
      ...rules.flatMap(({ when, shows }) => [when, ...shows]),
      ...requires.map(({ when }) => when),
      ...otherwiseShows,
    ]),
    ...writers.flatMap(({ reads: { when, per, values } }) => [when, ...per, ...values]),
    ...[...readers.values()].flatMap(({ per, since }) => [...per, since]),
  ];
  return cores.some((core) => core !== undefined && typeof core !== "string" && reads(core, path));
}

/** Does a rule BLOCK each call in which the fact differs from a part of the call that is bound? */
function isTied({ routes, subject }: ToolPlan, path: string): boolean {
  const isBound = (core: Core): boolean => {
    const other = memberPath(core);
    return other !== undefined && (other.startsWith("input.") || subject.some((bound) => isTrue(bound, other)));
  };
  const ties = (core: Core, operator: "!=" | "=="): boolean =>
    core.op === "binary" &&
    core.operator === operator &&
    [
      [core.left, core.right],
      [core.right, core.left],
    ].some(([one, other]) => one !== undefined && other !== undefined && memberPath(one) === path && isBound(other));
  return routes.some(
    ({ rules, requires }) =>
      rules.some(
        ({ when, verdict, observed }) =>
          verdict === "BLOCK" && !observed && sides(when, "or").some((side) => ties(side, "!=")),
      ) || requires.some(({ when }) => sides(when, "and").some((side) => ties(side, "=="))),
  );
}

function sides(core: Core, op: "and" | "or"): readonly Core[] {
  return core.op === op ? [...sides(core.left, op), ...sides(core.right, op)] : [core];
}

/** Is the condition true because the fact differs from another value that the call or the platform sent? */
function isCompared(core: Core, path: string, isNegated: boolean): boolean {
  if (core.op === "not") return isCompared(core.of, path, !isNegated);
  if (core.op === "binary" && ["==", "!=", "in"].includes(core.operator)) {
    const differs = (core.operator === "!=") !== isNegated;
    const [one, other] = reads(core.left, path) ? [core.left, core.right] : [core.right, core.left];
    return differs && reads(one, path) && readMembers([other]).length > 0;
  }
  return children(core).some((child) => isCompared(child, path, isNegated));
}

/** Words for a party or a location. `isIdentity` finds them at the end of a name. */
const parties: ReadonlySet<string> = new Set(
  (
    "account wallet user customer client tenant org organisation organization company team workspace project owner " +
    "member patient employee person subscriber mailbox server host database cluster namespace cwd folder directory " +
    "repo repository"
  ).split(" "),
);
const labels: ReadonlySet<string> = new Set("id ids name number no key address uuid email path ref".split(" "));

/** Does the name end with a party, or with a party and a label: `wallet`, `user_id`, `customer.id`? */
function isIdentity({ path, kind, isLimited }: DeclaredFact): boolean {
  if (isLimited && kind === "number") return false;
  const words = path
    .split(".")
    .slice(1)
    .flatMap((name) => name.replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2").split(/[^A-Za-z0-9]+/))
    .map((word) => word.toLowerCase());
  const last = words.at(-1) ?? "";
  if (parties.has(last)) return kind === "text";
  return labels.has(last) && parties.has(words.at(-2) ?? "");
}
