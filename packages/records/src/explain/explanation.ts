import { EvaluationError, type Span } from "../../../core/src/contract/mod.ts";
import { children, type Core, type Requirement, type Route, type Rule } from "../../../core/src/contract/ir.ts";
import type { ExplainedMismatch, ExplainedRule, Verdict } from "../../../core/src/wire/mod.ts";
import type { Evaluation } from "../evaluate.ts";
import type { Came, PartTrace, EvaluationTrace } from "../evaluation-trace.ts";

/** Why a call got its verdict: every requirement and rule of its tool, with the values that decided. */
export interface Explanation {
  readonly rules: readonly RuleExplained[];
  /** The difference between the input or the facts and their schema. */
  readonly mismatch: ExplainedMismatch | null;
}

export interface RuleExplained extends Omit<ExplainedRule, "condition"> {
  /** The condition with its parts; an `otherwise` has none. */
  readonly condition: PartExplained | null;
}

/** A part of a condition and its results: several in a macro, none if it was not evaluated. */
export interface PartExplained {
  readonly span: Span;
  readonly first: readonly Came[];
  readonly times: number;
  readonly parts: readonly PartExplained[];
}

/** @param trace the trace of only this decision */
export function explain(evaluation: Evaluation, trace: EvaluationTrace): Explanation {
  const routes = evaluation.prepared.plan?.routes ?? [];
  const requirements = routes.flatMap(({ presence, requires }) => [...presence, ...requires]);
  return {
    rules: [
      ...requirements.map((requirement) => ruleExplained(requirement, trace)),
      ...routes.flatMap(({ rules }) => rules.map((rule) => ruleExplained(rule, trace))),
      ...routes.map((route) => otherwiseExplained(route, evaluation)),
    ],
    mismatch: mismatchOf(routes, evaluation),
  };
}

function ruleExplained(rule: Requirement | Rule, trace: EvaluationTrace): RuleExplained {
  const seen = trace.findPart(rule.when);
  const came = cameTo(seen);
  const { verdict = "BLOCK", observed = false } = "verdict" in rule ? rule : {};
  const speaks = came === "error" || came === ("verdict" in rule ? "true" : "false");
  return {
    id: rule.id,
    kind: observed ? "observing" : "verdict" in rule ? "rule" : "requirement",
    came,
    speaks: speaks ? explainVerdict(came === "error" ? "BLOCK" : verdict, rule, seen) : null,
    condition: part(rule.when, trace),
  };
}

function explainVerdict(
  verdict: Verdict,
  { reason }: Pick<Rule, "reason">,
  seen: PartTrace | undefined,
): NonNullable<RuleExplained["speaks"]> {
  const failed = seen?.first.find((came) => "error" in came);
  if (failed !== undefined) return { verdict, reason: `it cannot be evaluated: ${failed.error}` };
  try {
    return { verdict, reason: seen === undefined ? "" : reason(seen.context) };
  } catch (error) {
    if (!(error instanceof EvaluationError)) throw error;
    return { verdict: "BLOCK", reason: `its reason cannot be evaluated: ${error.message}` };
  }
}

function otherwiseExplained({ contract, rules, otherwise }: Route, { prepared, decision }: Evaluation): RuleExplained {
  const id = `${contract}.$otherwise`;
  const isEarly = prepared.early !== undefined || decision.rule.includes(".$requires.");
  const spoke = new Set([...decision.fired, ...decision.errors.map(([rule]) => rule)]);
  const isReached = !isEarly && !rules.some((rule) => spoke.has(rule.id));
  const reason = decision.rule === id ? decision.reason.replace(/^Svc: /, "") : "";
  return {
    id,
    kind: "otherwise",
    came: isEarly ? "not evaluated" : isReached ? "true" : "false",
    speaks: isReached ? { verdict: otherwise, reason } : null,
    condition: null,
  };
}

function cameTo(seen: PartTrace | undefined): RuleExplained["came"] {
  if (seen === undefined) return "not evaluated";
  if (seen.first.some((came) => "error" in came)) return "error";
  return seen.trues > 0 ? "true" : "false";
}

function part(core: Core, trace: EvaluationTrace): PartExplained {
  const seen = trace.findPart(core);
  const known = core.op === "constant" ? { first: [{ value: core.value }], times: 1 } : { first: [], times: 0 };
  const { first, times } = seen ?? known;
  return {
    span: core.span,
    first,
    times,
    parts: isPath(core) ? [] : children(core).flatMap((child) => explainChild(child, trace)),
  };
}

/** Leaves out parts whose value is obvious: literals, and the roots that members are read from. */
function explainChild(core: Core, trace: EvaluationTrace): readonly PartExplained[] {
  const { file, from } = core.span;
  if (core.op === "constant" && !file.text.startsWith("limits", from)) return [];
  if (core.op === "root" && (core.root === "input" || core.root === "platform")) return [];
  if (core.type.kind === "memory") return [];
  return [part(core, trace)];
}

/** A member of a member of a root: showing its owners adds nothing. */
function isPath(core: Core): boolean {
  if (core.op === "member" || core.op === "has") return core.of.op === "root" || isPath(core.of);
  return core.op === "root" || core.op === "variable";
}

function mismatchOf(routes: readonly Route[], { prepared, decision }: Evaluation): ExplainedMismatch | null {
  const { request } = prepared;
  for (const { contract, validateInput, validatePlatform } of routes) {
    const isInput = decision.rule === `${contract}.$input`;
    if (!isInput && decision.rule !== `${contract}.$platform`) continue;
    const wrong = isInput
      ? validateInput(request.toolInput)
      : request.platformState === null
        ? undefined
        : validatePlatform?.(request.platformState, prepared.caller.keyKind);
    if (wrong === undefined) return null;
    const path = wrong.path.map((step) => (typeof step === "number" ? `[${step}]` : `.${step}`)).join("");
    const { expected, found } = wrong;
    return { id: decision.rule, path: `${isInput ? "input" : "platform"}${path}`, expected, found };
  }
  return null;
}
