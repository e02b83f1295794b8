import { isStricter } from "../../../../core/src/wire/mod.ts";
import { walk, type Core, type Rule } from "../../../../readers/src/ir.ts";
import type { ContractFinding } from "./finding.ts";
import { isCoveredBy, impossible } from "../formula/reasoner.ts";
import {
  locateCondition,
  isFalse,
  isShared,
  isTrue,
  rulesOf,
  shortName,
  type RuleOnTools,
  type AnalysisSubject,
} from "../formula/subject.ts";
import { keyOf } from "../formula/key.ts";

/** Rules that never fire, always fire, or never decide. */
export function findInRules(subjects: readonly AnalysisSubject[]): readonly ContractFinding[] {
  const findings: ContractFinding[] = [];
  const open: AnalysisSubject[] = [];
  for (const subject of subjects) {
    const [first] = subject.requirements;
    if (first === undefined || !impossible(subject)) open.push(subject);
    else findings.push(requiresNeverTrue(subject, first.when));
  }
  for (const each of rulesOf(open)) {
    const found = findInRule(each);
    findings.push(...found);
    if (!found.some(({ code }) => code === "never-fires")) findings.push(...deadParts(each));
  }
  const named = new Set(findings.filter(({ code }) => code === "always-fires").map(({ within }) => within?.from));
  for (const subject of open) findings.push(...nothingPasses(subject, named));
  return findings;
}

function requiresNeverTrue({ tool }: AnalysisSubject, when: Core): ContractFinding {
  return {
    code: "requires-never-hold",
    span: when.span,
    message: `the requirements of \`${tool}\` exclude one another, so every call of it is BLOCK`,
    hint: "remove one of them, or take the tool out of the contract",
  };
}

function findInRule(each: RuleOnTools): readonly ContractFinding[] {
  const { rule, sites } = each;
  const at = locateCondition(rule, each.document);
  const name = shortName(each.id);
  if (sites.every(({ subject, rule: { when } }) => impossible(subject, isTrue(when))))
    return [
      {
        ...at,
        code: "never-fires",
        message: `\`${name}\` never fires: its condition is false for every call that its schemas and requirements let through`,
        hint: "compare it with the schema's bounds, the limits in force and the other parts of the condition",
      },
    ];
  const covering = findCover(each);
  if (covering !== undefined) return [{ ...at, ...covering }];
  if (sites.every(({ subject, rule: { when } }) => impossible(subject, isFalse(when))))
    return [
      {
        ...at,
        code: "always-fires",
        message: `\`${name}\` fires on every call, so \`otherwise\` never decides`,
        hint: `if every call should be ${rule.verdict}, write it as the tool's \`otherwise\`; else narrow the condition`,
      },
    ];
  return [];
}

type Cover = Pick<ContractFinding, "code" | "message" | "hint">;

/** Why a rule's verdict never counts; undefined if it may. */
function findCover(each: RuleOnTools): Cover | undefined {
  const { rule, sites } = each;
  const name = shortName(each.id);
  if (rule.verdict === "ALLOW" && sites.every(({ subject }) => subject.route.otherwise === "ALLOW"))
    return {
      code: "never-decides",
      message: `\`${name}\` has the verdict ALLOW, and \`otherwise\` is ALLOW already: it changes no verdict`,
      hint: "remove it, or write `otherwise: ESCALATE` (or BLOCK) if only calls that a rule allows may pass",
    };
  const isCovered = sites.every((site) => {
    const others = strongerThan(site.rule, site.subject);
    return isCoveredBy(
      site.subject,
      others.map(({ when }) => isTrue(when)),
      isTrue(site.rule.when),
    );
  });
  if (!isCovered) return undefined;
  const single = findSingleCover(each);
  if (single === undefined)
    return {
      code: "never-decides",
      message: `whenever \`${name}\` fires, another rule decides: its ${rule.verdict} is never the verdict`,
      hint: "narrow the other rules, or remove this one",
    };
  return coverOf(each, single);
}

/** Rules that are compared with one rule; if there are more, the last ones are left out. */
const rivalsMax = 200;

/**
 * The rules of the same contract and tool that win over one rule: stricter ones, and earlier ones of its verdict. Rules
 * that read nothing in common with it are left out, unless they read nothing at all.
 */
function strongerThan(rule: Rule, { rules }: AnalysisSubject): readonly Rule[] {
  const at = rules.findIndex(({ id }) => id === rule.id);
  const read = readsOf(rule.when);
  const wins = (other: Rule, index: number): boolean =>
    isStricter(other.verdict, rule.verdict) ||
    (other.verdict === rule.verdict && index < at && (other.final || !rule.final));
  const isRelated = ({ when }: Rule): boolean => readsOf(when).size === 0 || !readsOf(when).isDisjointFrom(read);
  return rules.filter((other, index) => wins(other, index) && isRelated(other)).slice(0, rivalsMax);
}

const readsOfConditions = new WeakMap<Core, ReadonlySet<string>>();

/** The members and counters that a condition reads. */
function readsOf(core: Core): ReadonlySet<string> {
  return readsOfConditions.getOrInsertComputed(core, () => {
    const parts = [...walk(core)].filter(({ op }) => ["member", "has", "counter", "select"].includes(op));
    return new Set(parts.map((part) => keyOf(part.op === "has" ? { ...part, op: "member" } : part)));
  });
}

function findSingleCover({ sites }: RuleOnTools): Rule | undefined {
  const [first] = sites;
  const stronger = first === undefined ? [] : strongerThan(first.rule, first.subject);
  // A stricter rule explains more than an earlier rule of the same verdict.
  for (const { id } of stronger.toSorted(
    (a, b) => Number(isStricter(b.verdict, a.verdict)) - Number(isStricter(a.verdict, b.verdict)),
  )) {
    const alone = sites.every(({ subject, rule }) => {
      const other = strongerThan(rule, subject).find((each) => each.id === id);
      return other !== undefined && isCoveredBy(subject, [isTrue(other.when)], isTrue(rule.when));
    });
    if (alone) return first?.subject.rules.find((rule) => rule.id === id);
  }
  return undefined;
}

function coverOf(each: RuleOnTools, cover: Rule): Cover {
  const { rule, sites } = each;
  const [name, other] = [shortName(each.id), shortName(cover.id)];
  if (cover.verdict === rule.verdict)
    return {
      code: "shadowed",
      message: `whenever \`${name}\` fires, \`${other}\` has fired before it with the same verdict`,
      hint: `remove \`${name}\`, or write it before \`${other}\` if its reason is better`,
    };
  const same = sites.every(({ subject, rule: { when } }) => {
    const rival = subject.rules.find(({ id }) => id === cover.id);
    return rival !== undefined && isCoveredBy(subject, [isTrue(when)], isTrue(rival.when));
  });
  if (same)
    return {
      code: "contradiction",
      message: `\`${name}\` and \`${other}\` have one condition and two verdicts: ${cover.verdict} wins over ${rule.verdict}`,
      hint: "decide which of the two is right, and remove the other",
    };
  if (rule.verdict === "ESCALATE")
    return {
      code: "escalate-under-block",
      message: `\`${name}\` never asks a person: \`${other}\` BLOCKs each call that it would ESCALATE`,
      hint: `narrow \`${other}\`, or remove \`${name}\``,
    };
  return {
    code: "shadowed",
    message: `whenever \`${name}\` fires, \`${other}\` fires too with ${cover.verdict}`,
    hint: `narrow \`${other}\`, or remove \`${name}\``,
  };
}

/** Rules with BLOCK that together refuse every call. */
function nothingPasses(subject: AnalysisSubject, named: ReadonlySet<number | undefined>): readonly ContractFinding[] {
  const blocks = subject.rules.filter(({ verdict }) => verdict === "BLOCK");
  const isOpen = subject.route.otherwise !== "BLOCK" || subject.rules.length > blocks.length;
  const [last] = blocks.toReversed();
  if (!isOpen || last === undefined || blocks.some(({ span }) => named.has(span.from))) return [];
  if (!impossible(subject, ...blocks.map(({ when }) => isFalse(when)))) return [];
  return [
    {
      code: "nothing-passes",
      ...locateCondition(last, subject.document),
      message: `the rules that BLOCK together refuse every call of \`${subject.tool}\`, so no other rule decides`,
      hint: `narrow one of ${blocks.map(({ id }) => `\`${shortName(id)}\``).join(", ")}`,
    },
  ];
}

/** Operands of `||` that are never true, and operands of `&&` that always are. */
function deadParts({ document, sites }: RuleOnTools): readonly ContractFinding[] {
  const [first] = sites;
  if (first === undefined) return [];
  return findOperands(first.rule.when).flatMap((side) => {
    if (isShared(side.core, document)) return [];
    const dead = sites.every(({ subject, rule }) => {
      const same = findOperands(rule.when).find(({ at }) => at.join() === side.at.join());
      if (same === undefined) return false;
      const before = same.before;
      return impossible(subject, ...before, side.of === "or" ? isTrue(same.core) : isFalse(same.core));
    });
    if (!dead) return [];
    return {
      code: "dead-part",
      span: side.core.span,
      within: first.rule.span,
      message:
        side.of === "or"
          ? "this side of `||` is never true when it is evaluated, so it changes nothing"
          : "this side of `&&` is always true when it is evaluated, so it changes nothing",
      hint: "remove it, or fix it",
    };
  });
}

interface LogicalOperand {
  readonly of: "and" | "or";
  readonly core: Core;
  /** The conditions that are true if it is evaluated. */
  readonly before: readonly ReturnType<typeof isTrue>[];
  /** The left and right turns from the whole condition. */
  readonly at: readonly string[];
}

function findOperands(
  core: Core,
  before: LogicalOperand["before"] = [],
  at: readonly string[] = [],
): readonly LogicalOperand[] {
  if (core.op === "not") return findOperands(core.of, before, at);
  if (core.op !== "and" && core.op !== "or") return [];
  const reached = [...before, core.op === "and" ? isTrue(core.left) : isFalse(core.left)];
  const sides: readonly LogicalOperand[] = [
    { of: core.op, core: core.left, before, at: [...at, "left"] },
    { of: core.op, core: core.right, before: reached, at: [...at, "right"] },
  ];
  return [
    // An operand that is a chain of the same operator has its own operands.
    ...sides.filter((side) => !(side.of === "and" && isGuard(side.core)) && side.core.op !== core.op),
    ...findOperands(core.left, before, [...at, "left"]),
    ...findOperands(core.right, reached, [...at, "right"]),
  ];
}

/** A condition that proves presence may be stronger than necessary. */
function isGuard(core: Core): boolean {
  if (core.op === "constant" || core.op === "has" || core.op === "root") return true;
  if (core.op === "not") return isGuard(core.of);
  if (core.op === "and" || core.op === "or") return isGuard(core.left) && isGuard(core.right);
  return core.op === "binary" && [core.left, core.right].some(({ type }) => type.kind === "null");
}
