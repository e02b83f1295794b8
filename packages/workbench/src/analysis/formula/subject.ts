import type { PolicySet, Span } from "../../../../readers/src/contract.ts";
import {
  walk,
  type ContractDocument,
  type Core,
  type Requirement,
  type Route,
  type Rule,
  type ToolPlan,
} from "../../../../readers/src/ir.ts";
import { shapeOf } from "./shapes.ts";
import type { ShapeEnvironment } from "./world.ts";

/** The part of one contract for one tool, with the facts known about each call that its rules see. */
export interface AnalysisSubject {
  readonly document: ContractDocument;
  readonly tool: string;
  readonly route: Route;
  readonly requirements: readonly Requirement[];
  /** The rules that decide: an observing rule changes nothing. */
  readonly rules: readonly Rule[];
  readonly world: ShapeEnvironment;
  /** The conditions that are true for every call that the rules see. */
  readonly context: readonly Assertion[];
}

/** A condition that is true, or false. */
export interface Assertion {
  readonly core: Core;
  readonly isTrue: boolean;
}

export function subjectsOf(policySet: PolicySet): readonly AnalysisSubject[] {
  return [...policySet.tools.values()].flatMap(({ tool, routes }) =>
    routes.flatMap((route) => {
      const document = policySet.documents.find(({ name }) => name === route.contract);
      return document === undefined ? [] : [subjectOf(document, tool, route)];
    }),
  );
}

/** The name of the part of a counter that parked calls reserve: `counters.x.held` in a contract. */
export function reservedName(counter: string): string {
  return `${counter}.held`;
}

function subjectOf(document: ContractDocument, tool: string, route: Route): AnalysisSubject {
  const requirements = [...route.presence, ...route.requires];
  const counting = [...document.counters].filter(([, { sum }]) => sum === undefined);
  return {
    document,
    tool,
    route,
    requirements,
    rules: route.rules.filter(({ observed }) => !observed),
    world: {
      input: shapeOf(route.schemas.input),
      platform: shapeOf(route.schemas.platform),
      ranges: new Map(),
      whole: new Set(
        counting.map(([name]) => `${document.name}.${name}`).flatMap((name) => [name, reservedName(name)]),
      ),
    },
    context: requirements.map(({ when }) => ({ core: when, isTrue: true })),
  };
}

/** One rule of a contract with each of its tools. */
export interface RuleOnTools {
  readonly id: string;
  readonly rule: Rule;
  readonly document: ContractDocument;
  readonly sites: readonly { readonly subject: AnalysisSubject; readonly rule: Rule }[];
}

export function rulesOf(subjects: readonly AnalysisSubject[]): readonly RuleOnTools[] {
  const found = new Map<string, { subject: AnalysisSubject; rule: Rule }[]>();
  for (const subject of subjects) {
    for (const rule of subject.rules) found.getOrInsertComputed(rule.id, () => []).push({ subject, rule });
  }
  return [...found].flatMap(([id, sites]) => {
    const [first] = sites;
    return first === undefined ? [] : [{ id, rule: first.rule, document: first.subject.document, sites }];
  });
}

/** A rule with ESCALATE, or an `otherwise`, because of which a person is asked. */
export interface EscalationCause {
  /** `contract.rule`, or `contract.$otherwise`. */
  readonly id: string;
  readonly contract: string;
  readonly terms: Route["terms"];
  /** Undefined for an `otherwise`. */
  readonly when: Core | undefined;
  /** What its reason shows. */
  readonly shows: readonly Core[];
}

/** Why people are asked for calls of a tool. Rules in observe mode ask nobody. */
export function causesOf({ routes }: ToolPlan): readonly EscalationCause[] {
  return routes.flatMap(({ contract, rules, otherwise, otherwiseShows: shows, terms }) => [
    ...rules
      .filter(({ verdict, observed }) => verdict === "ESCALATE" && !observed)
      .map((rule) => ({ id: rule.id, contract, terms: rule.terms, when: rule.when, shows: rule.shows })),
    ...(otherwise === "ESCALATE" ? [{ id: `${contract}.$otherwise`, contract, terms, when: undefined, shows }] : []),
  ]);
}

/**
 * The span of a rule's condition. The rule's name if the condition is under the contract's `let:`, which other rules
 * may read.
 */
export function locateCondition(
  { when, span }: Rule,
  document: ContractDocument,
): { readonly span: Span; readonly within: Span } {
  return { span: isShared(when, document) ? span : when.span, within: span };
}

/** Is an expression under the contract's `let:`, where other rules may read it? */
export function isShared({ span }: Core, { lets }: ContractDocument): boolean {
  return [...lets.values()].some((definition) => definition.span.from <= span.from && span.to <= definition.span.to);
}

/** A rule's or counter's name without its contract's. */
export function shortName(id: string): string {
  return id.slice(id.indexOf(".") + 1);
}

export function isTrue(core: Core): Assertion {
  return { core, isTrue: true };
}

export function isFalse(core: Core): Assertion {
  return { core, isTrue: false };
}

/** Does an expression read a root, such as `input`? */
export function readsRoot(core: Core, root: (Core & { readonly op: "root" })["root"]): boolean {
  return [...walk(core)].some((part) => part.op === "root" && part.root === root);
}

export function makeComparison(operator: "==" | ">=" | "<" | "in", left: Core, right: Core): Core {
  return { op: "binary", operator, left, right, type: { kind: "boolean" }, span: left.span };
}

export function zeroAt({ span }: Core): Core {
  return { op: "constant", value: 0, type: { kind: "number", notNegative: true }, span };
}

/** The test for facts, or for a session, as a condition writes it. */
export function presenceOf(root: "platform.present" | "session.present", span: Span): Core {
  return { op: "root", root, type: { kind: "boolean" }, span };
}
