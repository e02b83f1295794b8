import { compare, walk, type Core } from "../../../../readers/src/ir.ts";
import type { ContractFinding } from "./finding.ts";
import { formulaOf, type Formula } from "../formula/formula.ts";
import type { Linear } from "../formula/linear.ts";
import { impossible } from "../formula/reasoner.ts";
import {
  makeComparison,
  locateCondition,
  isFalse,
  isTrue,
  presenceOf,
  readsRoot,
  rulesOf,
  shortName,
  zeroAt,
  type RuleOnTools,
  type AnalysisSubject,
} from "../formula/subject.ts";
import { keyOf } from "../formula/key.ts";

/** Rules that an absent fact, or a negative number, bypasses. */
export function findInFacts(subjects: readonly AnalysisSubject[]): readonly ContractFinding[] {
  return rulesOf(subjects)
    .filter(({ rule }) => rule.verdict !== "ALLOW")
    .flatMap((each) => [
      ...platformFindings(each),
      ...(each.rule.verdict === "BLOCK" ? factFindings(each) : []),
      ...negativeFindings(each),
    ]);
}

function platformFindings({ id, rule, document, sites }: RuleOnTools): readonly ContractFinding[] {
  for (const { subject, rule: own } of sites) {
    const present = presenceOf("platform.present", own.when.span);
    if (!readsRoot(own.when, "platform") || impossible(subject, isFalse(present))) continue;
    if (!isSkipped(own.id, isFalse(present).core, { subject, own: own.when })) continue;
    return [
      {
        code: "platform-not-required",
        ...locateCondition(rule, document),
        message: `\`${shortName(id)}\` does not apply to a call without facts, and \`${subject.tool}\` accepts such calls`,
        hint: "add `platform.present` to `requires:`, or a rule for calls without facts",
      },
    ];
  }
  return [];
}

/** Facts that may be missing, so that a BLOCK is skipped and no other rule replaces it. */
function factFindings({ id, rule, document, sites }: RuleOnTools): readonly ContractFinding[] {
  return optionalFacts(rule.when)
    .filter((test) => sites.every(({ subject, rule: own }) => isSkipped(own.id, test, { subject, own: own.when })))
    .map(({ name }) => ({
      code: "absent-fact-skips",
      ...locateCondition(rule, document),
      message: `\`${shortName(id)}\` does not BLOCK if the platform omits \`platform.${name}\``,
      hint: `make it \`required\`, or BLOCK without it: \`!has(platform.${name}) || ...\``,
    }));
}

/** Does the rule never fire if the test is false, and does no other rule handle that case, so that the call passes? */
function isSkipped(
  id: string,
  test: Core,
  { subject, own }: { readonly subject: AnalysisSubject; readonly own: Core },
): boolean {
  if (!impossible(subject, isTrue(own), isFalse(test))) return false;
  const { rules, route } = subject;
  const allows = rules.filter(({ verdict }) => verdict === "ALLOW");
  const mayPass =
    route.otherwise === "ALLOW" || !allows.every(({ when }) => impossible(subject, isTrue(when), isFalse(test)));
  if (!mayPass || impossible(subject, isFalse(test))) return false;
  const key = keyOf(test);
  const others = rules.filter((rule) => rule.id !== id && rule.verdict !== "ALLOW" && testsIn(rule.when).has(key));
  return others.every(({ when }) => impossible(subject, isTrue(when), isFalse(test)));
}

function testsIn(core: Core): ReadonlySet<string> {
  const found = new Set<string>();
  for (const part of walk(core)) {
    if (part.op === "has" || part.op === "root") found.add(keyOf(part));
    if (part.op === "select") {
      const test = testOf(part);
      if (test !== undefined) found.add(keyOf(test));
    }
  }
  return found;
}

type FactTest = Core & { readonly op: "has" };

function testOf(part: Core): FactTest | undefined {
  if (part.op !== "select" || part.at.op !== "constant" || typeof part.at.value !== "string") return undefined;
  return { op: "has", of: part.of, name: part.at.value, type: { kind: "boolean" }, span: part.span };
}

function optionalFacts(core: Core): readonly FactTest[] {
  const found = new Map<string, FactTest>();
  for (const part of walk(core)) {
    const test = part.op === "has" ? part : testOf(part);
    if (test?.of.op === "root" && test.of.root === "platform") found.set(test.name, test);
  }
  return [...found.values()];
}

/** Amounts of the input that are added to a total, and may be below zero. */
function negativeFindings({ id, rule, sites }: RuleOnTools): readonly ContractFinding[] {
  return amountsIn(rule.when).flatMap((amount) => {
    const below = makeComparison("<", amount, zeroAt(amount));
    const safe = sites.every(({ subject }) => {
      const blocks = subject.rules.filter(({ verdict }) => verdict === "BLOCK").map(({ when }) => isFalse(when));
      return impossible(subject, isTrue(below), ...blocks);
    });
    if (safe) return [];
    const text = amount.span.file.text.slice(amount.span.from, amount.span.to);
    return {
      code: "may-be-negative",
      span: amount.span,
      within: rule.span,
      message: `\`${text}\` may be negative, and \`${shortName(id)}\` would then allow more than the budget`,
      hint: "write `minimum: 0` or `exclusiveMinimum: 0` in its schema",
    };
  });
}

function amountsIn(core: Core): readonly Core[] {
  const found = new Map<string, Core>();
  for (const form of formsOf(formulaOf(core))) {
    const raising = [...form.terms].filter(([, { factor }]) => compare(factor, 0) > 0);
    const isBudget = raising.some(([, term]) => !readsRoot(term.core, "input"));
    for (const [key, term] of raising)
      if (isBudget && term.core.op === "member" && readsRoot(term.core, "input")) found.set(key, term.core);
  }
  return [...found.values()];
}

function formsOf(formula: Formula): readonly Linear[] {
  if (formula.kind === "all" || formula.kind === "any") return formula.parts.flatMap(formsOf);
  return formula.kind === "at-least" ? [formula.form] : [];
}
