import type { PolicySet, Span } from "../../../../readers/src/contract.ts";
import { isNumber, readMembers, type ContractDocument, type Core, type ToolPlan } from "../../../../readers/src/ir.ts";
import { isPartOf, pathNames, readPath } from "../../../../core/src/wire/mod.ts";
import { impossible } from "../formula/reasoner.ts";
import { isTrue, rulesOf, shortName, type RuleOnTools, type AnalysisSubject } from "../formula/subject.ts";
import type { ContractFinding } from "./finding.ts";

/** Parts of `approval` that change nothing. */
export function findInApprovals(
  subjects: readonly AnalysisSubject[],
  policySet: PolicySet,
): readonly ContractFinding[] {
  const plans = subjects.flatMap((subject) => {
    const plan = policySet.tools.get(subject.tool);
    return plan === undefined ? [] : [{ subject, plan }];
  });
  return [
    ...[...Map.groupBy(plans, ({ subject }) => subject.document)].flatMap(([document, own]) => [
      ...rulesWithoutAsking(document),
      ...sharedApprovals(document, own),
    ]),
    ...rulesOf(subjects)
      .filter(({ rule }) => rule.verdict === "ESCALATE")
      .flatMap((each) => [...pinFindings(each, policySet), ...driftFindings(each)]),
  ];
}

interface SubjectPlan {
  readonly subject: AnalysisSubject;
  readonly plan: ToolPlan;
}

/** An `approval` as it is written. */
type ApprovalSection = NonNullable<ContractDocument["approval"]>;

type ApprovalMemberName = Exclude<keyof ApprovalSection, "span">;

/** Rules with an approval and a verdict that no mode turns into ESCALATE. */
function rulesWithoutAsking({ rules }: ContractDocument): readonly ContractFinding[] {
  return rules.flatMap(({ name, span, verdict, final, approval }) => {
    if (approval === undefined || verdict === "ESCALATE" || (verdict === "BLOCK" && !final)) return [];
    const why = verdict === "ALLOW" ? "has the verdict ALLOW" : "is a final BLOCK";
    return [makeUnusedFinding(approval.span, span, `\`${name}\` ${why}, so in no mode it asks a person`)];
  });
}

/** The approvals of the contract and its tools: the defaults of their rules. */
function sharedApprovals(document: ContractDocument, plans: readonly SubjectPlan[]): readonly ContractFinding[] {
  const found = plans.flatMap((each) => {
    const tool = document.tools.get(each.subject.tool);
    if (tool?.approval === undefined) return [];
    const uses = (member: ApprovalMemberName): boolean => isUsed(each, member);
    return unusedMembers(tool.approval, tool.span, { of: `\`${each.subject.tool}\``, uses });
  });
  if (document.approval === undefined) return found;
  const uses = (member: ApprovalMemberName): boolean =>
    plans.some((each) => {
      const own = document.tools.get(each.subject.tool)?.approval;
      return own?.[member] === undefined && isUsed(each, member);
    });
  const { span } = document.approval;
  return [...found, ...unusedMembers(document.approval, span, { of: `\`${document.name}\``, uses })];
}

/** Does an approval of the tool use the default of a member? Rules in observe mode count: they may decide later. */
function isUsed({ subject, plan }: SubjectPlan, member: ApprovalMemberName): boolean {
  const { route, document } = subject;
  // In assist mode a softened BLOCK needs everything that the tool's approvals need.
  if (plan.routes.some(({ rules }) => rules.some(({ verdict, final }) => verdict === "BLOCK" && !final))) return true;
  const asking = route.rules.filter(({ verdict }) => verdict === "ESCALATE");
  if (member === "unbound") return plan.canEscalate || asking.length > 0;
  return (
    route.otherwise === "ESCALATE" ||
    asking.some(({ id }) => {
      const rule = document.rules.find(({ name }) => name === shortName(id));
      return rule?.approval?.[member] === undefined;
    })
  );
}

function unusedMembers(
  approval: ApprovalSection,
  within: Span,
  { of, uses }: { readonly of: string; readonly uses: (member: ApprovalMemberName) => boolean },
): readonly ContractFinding[] {
  const { span, ...members } = approval;
  const written = (Object.keys(members) as ApprovalMemberName[]).filter((member) => members[member] !== undefined);
  const dead = written.filter((member) => !uses(member));
  if (dead.length > 0 && dead.length === written.length)
    return [makeUnusedFinding(span, within, `no rule of ${of} that asks a person takes anything from it`)];
  return dead.map((member) =>
    makeUnusedFinding(
      findMemberSpan(approval, member),
      within,
      `each rule of ${of} that asks a person has \`${writtenName(member)}\` from a nearer \`approval\``,
    ),
  );
}

/** As a contract writes it: `decide_within`. */
function writtenName(member: ApprovalMemberName): string {
  return member.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** The span of a member's value; of the whole `approval` if the value has none. */
export function findMemberSpan(approval: ApprovalSection, member: ApprovalMemberName): Span {
  const value = approval[member];
  if (typeof value !== "object") return approval.span;
  return ("span" in value ? value : value[0])?.span ?? approval.span;
}

/** Pins of a rule that change nothing: the fact is absent, or every approval of the tool is bound to it. */
function pinFindings({ id, document, sites }: RuleOnTools, policySet: PolicySet): readonly ContractFinding[] {
  const written = document.rules.find(({ name }) => name === shortName(id));
  return (written?.approval?.pins ?? []).flatMap(({ text, span }) => {
    const path = pathNames(text) ?? [];
    if (path[0] !== "platform") return [];
    const within = written?.span ?? span;
    const isAbsent = sites.every(({ subject, rule }) =>
      presences(path, rule.when).some((present) => impossible(subject, isTrue(rule.when), isTrue(present))),
    );
    if (isAbsent)
      return [makeUnusedFinding(span, within, `whenever \`${shortName(id)}\` fires, \`${text}\` is absent`)];
    const isBound = sites.every(({ subject: { tool } }) =>
      policySet.tools.get(tool)?.subject.some((fact) => isPartOf(readPath(text) ?? text, fact)),
    );
    return isBound
      ? [makeUnusedFinding(span, within, `an approval is already bound to \`${text}\`, which is a \`subject\``)]
      : [];
  });
}

/** The tests for each member on the way to a fact. */
function presences([, ...path]: readonly string[], { span }: Core): readonly Core[] {
  const boolean = { kind: "boolean" } as const;
  const record = { kind: "record", fields: new Map(), others: undefined, open: false } as const;
  let of: Core = { op: "root", root: "platform", type: record, span };
  const found: Core[] = [{ op: "root", root: "platform.present", type: boolean, span }];
  for (const name of path) {
    found.push({ op: "has", of, name, type: boolean, span });
    of = { op: "member", of, name, type: record, span };
  }
  return found;
}

/** A `drift` of a rule that reads no number that may move. */
function driftFindings({ id, document, sites }: RuleOnTools): readonly ContractFinding[] {
  const written = document.rules.find(({ name }) => name === shortName(id));
  const drift = written?.approval?.drift;
  if (written === undefined || drift === undefined) return [];
  const moves = sites.some(({ rule: { when, shows, terms } }) =>
    readMembers([when, ...shows]).some(
      ({ path, type }) =>
        path.startsWith("platform.") && isNumber(type) && ![...terms.free, ...terms.pins].includes(path),
    ),
  );
  if (moves) return [];
  return [
    makeUnusedFinding(
      drift.span,
      written.span,
      `\`${shortName(id)}\` reads no numeric fact outside \`pins\` and \`free\``,
    ),
  ];
}

function makeUnusedFinding(span: Span, within: Span, why: string): ContractFinding {
  return {
    code: "unused-approval",
    span,
    within,
    message: `${why}: this part of \`approval\` changes nothing`,
    hint: "remove it, or write it where a person is asked",
  };
}
