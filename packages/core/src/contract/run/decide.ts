import {
  isStricter,
  nearest,
  quote,
  quoteAscii,
  type CheckRequest,
  type JsonObject,
  type Verdict,
} from "../../wire/mod.ts";
import type { PolicySet } from "../compile/compile.ts";
import type { Requirement, Route, Rule, ToolPlan } from "../compile/compile-tool.ts";
import {
  counterValues,
  evaluationMessage,
  contextOf,
  type LookupPlan,
  type CounterUpdate,
  type Prepared,
} from "./plan-lookups.ts";
import { noCounters, stepsMax, type EvaluationContext } from "../plan/plan.ts";
import type { Caller } from "../compile/keys.ts";
import type { Decision, Observation } from "../core/decision.ts";
import type { Counter } from "../core/counter.ts";
import { EvaluationError } from "../value/rational.ts";
import { mismatchText } from "../schema/schema.ts";
import { uncountedFacts, uncountedMismatch, withUncounted } from "./host-facts.ts";

const noUpdates: readonly CounterUpdate[] = [];
const noNames: readonly string[] = [];
const noPairs: readonly (readonly [string, string])[] = [];

/** Resolves and routes the call, checks presence and schemas, and finds the counter updates. Never throws. */
export function prepare(policySet: PolicySet, sent: CheckRequest, caller: Caller): Prepared {
  const request = withOwnName(policySet, sent);
  const plan = policySet.tools.get(request.toolName);
  const call = { request, caller, plan, updates: noUpdates, broken: noPairs, uncounted: noNames };
  if (plan === undefined) return { ...call, early: unknownTool(policySet, request.toolName) };
  const uncounted = uncountedFacts(request, caller, plan);
  const early = checkPresence(plan, request, caller) ?? checkSchemas(plan, request, caller);
  if (plan.writers.length === 0) return { ...call, early, uncounted };
  const updates: CounterUpdate[] = [];
  const broken: (readonly [string, string])[] = [];
  const context = contextOf(request, caller, 0);
  for (const { counter, isTrue, keys, amount, blind } of plan.writers) {
    if (early !== undefined && !blind) continue;
    try {
      if (!isTrue(context)) continue;
      for (const key of keys(context, caller)) updates.push({ counter, key, amount: amount(context) });
    } catch (error) {
      broken.push([counter.name.replace(".", ".$counters."), evaluationMessage(error)]);
    }
  }
  return { request, caller, plan, early, updates, broken, uncounted };
}

/** The call under the tool's own name. Everything after this sees that name only. */
function withOwnName({ aliases }: PolicySet, sent: CheckRequest): CheckRequest {
  const tool = aliases.get(sent.toolName);
  return tool === undefined ? sent : { ...sent, toolName: tool, alias: sent.toolName };
}

/**
 * The decision. Total: if an expression cannot be evaluated, the verdict is a BLOCK that names it.
 *
 * @param values for each lookup, the decimal from the ledger, or undefined if the counter's history is unknown
 */
export function decide(lookupPlan: LookupPlan, values: readonly (string | undefined)[]): Decision {
  return withUncounted(decisionOn(lookupPlan, values), lookupPlan.prepared);
}

function decisionOn(lookupPlan: LookupPlan, values: readonly (string | undefined)[]): Decision {
  const { prepared, now } = lookupPlan;
  const { plan, early, request } = prepared;
  if (early !== undefined || plan === undefined) return early ?? unknownTool(undefined, request.toolName);
  const read = new Map<string, string>();
  const counters = plan.readers.size === 0 ? noCounters : counterValues(lookupPlan, values, read);
  const context = contextOf(request, prepared.caller, now, counters);
  const accumulator = new VerdictAccumulator(context);
  for (const { requires } of plan.routes) {
    const failed = firstFailing(requires, context);
    if (failed !== undefined) return withRead(failed, read);
  }
  for (const route of plan.routes) accumulator.route(route);
  for (const [rule, why] of prepared.broken)
    accumulator.fails(rule, `the counter ${rule.replace(".$counters.", ".")} cannot be updated: ${why}`);
  if (plan.observing.length > 0) accumulator.observe(plan.observing);
  return accumulator.decision(read);
}

/** How a call was decided, and how the mode answered it. */
export interface CallAnswer {
  readonly verdict: Verdict;
  readonly answered: Verdict;
  /** What became of the call if a person had to decide it; undefined otherwise. */
  readonly how?: string | undefined;
  /** True for a call whose outcome `done` has come. A decision alone never has it. */
  readonly isDone?: boolean | undefined;
}

/** The updates of the counters that count calls with this decision and answer. */
export function count(prepared: Prepared, outcome: CallAnswer): readonly CounterUpdate[] {
  if (prepared.updates.length === 0) return noUpdates;
  const counted = prepared.updates.filter(({ counter }) => isCounted(counter, outcome));
  if (outcome.how !== "opened") return counted;
  return counted.map((update) => (update.counter.mayReserve ? { ...update, held: true } : update));
}

/** Does the counter count calls with this decision and answer? */
export function isCounted({ counting }: Counter, { verdict, answered, how, isDone }: CallAnswer): boolean {
  switch (counting) {
    case "attempts":
      return true;
    case "released":
      return answered === "ALLOW";
    case "possible":
      // A call that waits already, or that nobody put on a list, reserves nothing.
      return answered === "ALLOW" || (answered === "ESCALATE" && how !== "attached" && how !== "capped");
    case "held":
      return how === "opened";
    case "blocked":
      return verdict === "BLOCK";
    case "escalated":
      // A call counts when it is first put before a person, not each time that it is sent.
      return verdict === "ESCALATE" && (how === undefined || how === "opened" || how === "capped");
    case "done":
      return answered === "ALLOW" && isDone === true;
    default:
      return counting satisfies never;
  }
}

/** Collects the verdicts of the contracts on one call. The strictest wins; the first rule with it gives the reason. */
class VerdictAccumulator {
  readonly #context: EvaluationContext;
  readonly #fired: string[] = [];
  readonly #errors: (readonly [string, string])[] = [];
  readonly #observed: Observation[] = [];
  #defect: unknown;
  #winner:
    | { readonly verdict: Verdict; readonly rule: string; readonly reason: string; readonly misses?: Route["misses"] }
    | undefined;
  #final = false;

  constructor(context: EvaluationContext) {
    this.#context = context;
  }

  route(route: Route): void {
    let any = false;
    for (const rule of route.rules) {
      if (rule.observed) continue;
      try {
        if (!rule.fires(this.#context)) continue;
        this.#add(rule.verdict, rule.id, rule.reason(this.#context), rule.final);
        this.#fired.push(rule.id);
      } catch (error) {
        this.fails(rule.id, `the rule ${rule.id} cannot be evaluated: ${evaluationMessage(error)}`, error);
      }
      any = true;
    }
    if (any) return;
    const id = `${route.contract}.$otherwise`;
    try {
      const reason = route.otherwiseReason(this.#context);
      this.#add(route.otherwise, id, reason, route.otherwise === "BLOCK", route.misses);
    } catch (error) {
      this.fails(id, `the \`otherwise\` of ${route.contract} cannot be evaluated: ${evaluationMessage(error)}`, error);
    }
  }

  /** Runs after everything that decides, with a separate budget: observing rules take nothing from deciding ones. */
  observe(rules: readonly Rule[]): void {
    this.#context.steps = stepsMax;
    for (const rule of rules) {
      try {
        if (!rule.fires(this.#context)) continue;
        this.#observed.push({ rule: rule.id, verdict: rule.verdict, reason: rule.reason(this.#context) });
      } catch (error) {
        this.#noteDefect(error);
        const reason = `the rule ${rule.id} cannot be evaluated: ${evaluationMessage(error)}`;
        this.#observed.push({ rule: rule.id, verdict: "BLOCK", reason });
      }
    }
  }

  #noteDefect(error: unknown): void {
    if (!(error instanceof EvaluationError)) this.#defect ??= error;
  }

  fails(rule: string, why: string, error?: unknown): void {
    this.#errors.push([rule, why]);
    if (error !== undefined) this.#noteDefect(error);
    this.#add("BLOCK", rule, why, true);
  }

  #add(verdict: Verdict, rule: string, reason: string, final: boolean, misses?: Route["misses"]): void {
    if (final && verdict === "BLOCK") this.#final = true;
    if (this.#winner === undefined || isStricter(verdict, this.#winner.verdict))
      this.#winner = { verdict, rule, reason, misses };
  }

  /** Has a separate budget, too: a long sentence changes no verdict. */
  #sayMisses(misses: NonNullable<Route["misses"]>): string {
    this.#context.steps = stepsMax;
    try {
      return `: ${misses(this.#context)}`;
    } catch (error) {
      this.#noteDefect(error);
      return "";
    }
  }

  decision(read: ReadonlyMap<string, string>): Decision {
    const { verdict, rule, reason, misses } = this.#winner ?? {
      verdict: "BLOCK",
      rule: "$route",
      reason: "no contract has a decision",
    };
    return {
      verdict,
      reason: `Svc: ${reason}${misses === undefined ? "" : this.#sayMisses(misses)}`,
      rule,
      final: this.#final,
      fired: this.#fired,
      errors: this.#errors,
      read: read.size === 0 ? noPairs : [...read],
      observed: this.#observed,
      defect: this.#defect,
    };
  }
}

function makeBlock(rule: string, reason: string, error?: unknown): Decision {
  const failed = error !== undefined;
  return {
    verdict: "BLOCK",
    reason: `Svc: ${reason}`,
    rule,
    final: true,
    fired: noNames,
    errors: failed ? [[rule, reason]] : noPairs,
    read: noPairs,
    observed: [],
    defect: failed && !(error instanceof EvaluationError) ? error : undefined,
  };
}

function withRead(decision: Decision, read: ReadonlyMap<string, string>): Decision {
  return read.size === 0 ? decision : { ...decision, read: [...read] };
}

function unknownTool(policySet: PolicySet | undefined, name: string): Decision {
  const near = policySet && nearest(name, [...policySet.tools.keys(), ...policySet.aliases.keys()]);
  const tool = near && policySet.aliases.get(near);
  const known = tool === undefined ? "" : `, an alias of ${quote(tool)}`;
  const resembles = near === undefined ? "" : `; it resembles ${quote(near)}${known}`;
  return makeBlock("$route", `unknown tool ${quoteAscii(name)}: no contract routes it${resembles}`);
}

function checkPresence(plan: ToolPlan, request: CheckRequest, caller: Caller): Decision | undefined {
  let context: EvaluationContext | undefined;
  for (const { presence } of plan.routes) {
    if (presence.length === 0) continue;
    context ??= contextOf(request, caller, 0);
    const failed = firstFailing(presence, context);
    if (failed !== undefined) return failed;
  }
  return undefined;
}

function firstFailing(requirements: readonly Requirement[], context: EvaluationContext): Decision | undefined {
  for (const { id, isTrue, reason } of requirements) {
    try {
      if (!isTrue(context)) return makeBlock(id, reason(context));
    } catch (error) {
      return makeBlock(id, `the requirement ${id} cannot be evaluated: ${evaluationMessage(error)}`, error);
    }
  }
  return undefined;
}

function checkSchemas(plan: ToolPlan, request: CheckRequest, caller: Caller): Decision | undefined {
  for (const route of plan.routes) {
    const { contract, validateInput, validatePlatform } = route;
    try {
      const wrong = validateInput(request.toolInput);
      if (wrong !== undefined) return makeBlock(`${contract}.$input`, mismatchText("input", wrong));
      const snapshot: JsonObject | null = request.platformState;
      const off = snapshot === null ? undefined : validatePlatform?.(snapshot, caller.keyKind);
      if (off !== undefined)
        return makeBlock(
          `${contract}.$platform`,
          `${mismatchText("platform", off)}${uncountedMismatch(off, caller, route)}`,
        );
    } catch (error) {
      return makeBlock(
        `${contract}.$input`,
        `the schemas of ${contract} cannot be applied: ${evaluationMessage(error)}`,
        error,
      );
    }
  }
  return undefined;
}
