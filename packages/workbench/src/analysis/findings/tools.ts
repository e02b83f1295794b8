import type { PolicySet, Span } from "../../../../readers/src/contract.ts";
import { stepsMax, walk, type Core } from "../../../../readers/src/ir.ts";
import type { ContractFinding } from "./finding.ts";
import type { AnalysisSubject } from "../formula/subject.ts";
import { keyOf } from "../formula/key.ts";

/** Tools without rules, inputs that no rule reads, lists without a maximum length. */
export function findInTools(subjects: readonly AnalysisSubject[], policySet: PolicySet): readonly ContractFinding[] {
  return subjects.flatMap((subject) => [
    ...ruleFindings(subject, policySet),
    ...openInput(subject),
    ...unboundedLists(subject),
    ...stepFindings(subject, policySet),
  ]);
}

function findSpan({ document, tool }: AnalysisSubject): Span {
  return document.tools.get(tool)?.span ?? document.span;
}

function ruleFindings(subject: AnalysisSubject, policySet: PolicySet): readonly ContractFinding[] {
  const { tool, rules, route, requirements } = subject;
  if (route.otherwise !== "ALLOW" || rules.some(({ verdict }) => verdict !== "ALLOW")) return [];
  const span = findSpan(subject);
  if (rules.length > 0)
    return [
      {
        code: "only-allow",
        span,
        message: `every rule of \`${tool}\` has the verdict ALLOW, and so has its \`otherwise\`: no call of it is ever stopped`,
        hint: "write `otherwise: BLOCK` or ESCALATE, so that only calls that a rule allows may pass",
      },
    ];
  const isCounted = policySet.counters.some(({ of }) => of.includes(tool));
  if (isCounted || requirements.length > 0 || (policySet.tools.get(tool)?.routes.length ?? 0) > 1) return [];
  return [
    {
      code: "no-rule",
      span,
      message: `no part of the contract judges \`${tool}\`: no rule, requirement or counter names it, and \`otherwise\` is ALLOW`,
      hint: "add a rule, or write `otherwise: ESCALATE`; if every call may pass, give the reason in a comment that allows this note",
    },
  ];
}

function openInput({ document, tool }: AnalysisSubject): readonly ContractFinding[] {
  const input = document.tools.get(tool)?.input;
  const entry = input?.kind === "map" ? input.entries.get("additionalProperties") : undefined;
  if (entry?.value.kind !== "scalar" || entry.value.value !== true) return [];
  return [
    {
      code: "open-input",
      span: entry.key.span,
      message: `\`${tool}\` accepts members that its schema does not declare, and no rule sees them`,
      hint: "write `additionalProperties: false`, and declare the members that the tool accepts",
    },
  ];
}

function unboundedLists({ rules, requirements }: AnalysisSubject): readonly ContractFinding[] {
  const conditions = [
    ...requirements.map(({ when }) => ({ when, within: when.span })),
    ...rules.map(({ when, span }) => ({ when, within: span })),
  ];
  const found = new Map<string, ContractFinding>();
  for (const { when, within } of conditions) {
    for (const list of [...walk(when)].flatMap(listsOf)) {
      const text = list.span.file.text.slice(list.span.from, list.span.to);
      found.set(keyOf(list), {
        code: "unbounded-list",
        span: list.span,
        within,
        message: `\`${text}\` may have any number of items, and this condition walks over them`,
        hint: "write `maxItems` in its schema: a longer list is then refused before any rule runs",
      });
    }
  }
  return [...found.values()];
}

/** The lists that an expression itself walks over, if their schema could bound them but does not. */
function listsOf(core: Core): readonly Core[] {
  const ranges = core.op === "fold" ? [core.range] : core.op === "binary" && core.operator === "in" ? [core.right] : [];
  return ranges
    .flatMap((range) =>
      range.op === "fold" ? [] : range.op === "call" ? range.args.filter(({ op }) => op === "select") : [range],
    )
    .filter(({ op, type }) => (op === "member" || op === "select") && isUnbounded(type));
}

function isUnbounded(type: Core["type"]): boolean {
  const of = type.kind === "optional" || type.kind === "nullable" ? type.of : type;
  return of.kind === "list" && of.maxItems === undefined;
}

function stepFindings(subject: AnalysisSubject, policySet: PolicySet): readonly ContractFinding[] {
  const plan = policySet.tools.get(subject.tool);
  if (plan === undefined || plan.worstCost <= stepsMax || plan.routes[0] !== subject.route) return [];
  return [
    {
      code: "may-exhaust",
      span: findSpan(subject),
      message: `one decision on \`${subject.tool}\` may take ${plan.worstCost} steps, and over ${stepsMax} it is BLOCK`,
      hint: "bound the lists by `maxItems` and the texts by `maxLength`, or avoid walking over a list inside another walk",
    },
  ];
}
