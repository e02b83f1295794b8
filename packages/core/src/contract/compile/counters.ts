import { canonical, didYouMean, memberBelow, type Canonical } from "../../wire/mod.ts";
import { countings, type Counter, type CountingKind, type Window } from "../core/counter.ts";
import { checkCondition, checkExpression } from "../check/check.ts";
import type { Facts } from "../check/facts.ts";
import type { Scope } from "../check/scope.ts";
import { walk, type Core, type HostFacts } from "../core/core.ts";
import { hostFactsIn } from "../check/host-facts.ts";
import type { Report } from "../text/diagnostic.ts";
import { checkKey, planKey, planIfValid, type Caller, type KeyPart, type KeyPlan } from "./keys.ts";
import type { CounterDocument, WrittenExpression } from "../text/document.ts";
import { keyText, toValueTexts } from "../core/key-text.ts";
import { planCollectors, type MembershipQuery, type LookupContexts, type CollectedValues } from "./memory.ts";
import { plan, planCondition, type Plan, type EvaluationContext } from "../plan/plan.ts";
import {
  compare,
  EvaluationError,
  exactText,
  floor,
  isExact,
  isInteger,
  multiply,
  subtract,
  type Exact,
} from "../value/rational.ts";
import { spell } from "../text/spell.ts";
import { parts, type Syntax } from "../text/syntax.ts";
import { calendarUnits, isTimezone, parseDuration, weekdays, type Weekday } from "../value/time.ts";
import { isKey, typeText } from "../value/type.ts";
import { isList, show, Timestamp, type Value } from "../value/value.ts";
import type { YamlScalar } from "../text/yaml.ts";

/** How the calls of one tool update a counter. */
export interface CounterWriter {
  readonly counter: Counter;
  readonly isTrue: (context: EvaluationContext) => boolean;
  /**
   * Canonical texts: one, or one for each value to remember, or none for a call without a session. @throws
   * {EvaluationError}
   */
  readonly keys: (context: EvaluationContext, caller: Caller) => readonly string[];
  readonly amount: (context: EvaluationContext) => string;
  /** The expressions that it is planned from: if one cannot be evaluated, the verdict is BLOCK. */
  readonly reads: {
    readonly when: Core | undefined;
    readonly per: readonly KeyPart[];
    readonly values: readonly Core[];
  };
  /** It reads neither input nor facts, so a call that failed a schema updates it too. */
  readonly blind: boolean;
}

/** How the rules of one tool read a counter. */
export interface CounterReader {
  readonly counter: Counter;
  readonly key: KeyPlan;
  /** For a counter that remembers: the values that the rules may look up. */
  readonly collectValues: ((contexts: LookupContexts) => CollectedValues) | undefined;
  /** The parts of its key, and the time up to which events are dropped. */
  readonly per: readonly KeyPart[];
  readonly since: Core | undefined;
  /**
   * Milliseconds: events at or before it are no longer counted (`since` minus `settles_within`); undefined without
   * `since`.
   */
  readonly settledThrough: ((context: EvaluationContext) => number) | undefined;
}

/** Compiles the part of a counter that all tools share. */
export function readCounter(name: string, document: CounterDocument, context: CounterContext): Counter {
  const { report } = context;
  const counting = choose(document.counting, countings, "attempts", report);
  if (document.settlesWithin !== undefined && document.since === undefined) {
    report.add("counter", document.settlesWithin.span, "`settles_within` belongs to `since:`");
  }
  const window = readWindow(document, report);
  const { when, sum, since, settlesWithin, remembers } = document;
  const settles = readSettles(document, counting, report);
  const { claims } = document;
  if (claims && counting !== "done")
    report.add(
      "counter",
      document.span,
      "`claims` is for `counting: done`",
      "it lets a report of the asking key count",
    );
  if (remembers !== undefined && sum !== undefined)
    report.add("counter", document.span, "a counter has `sum` or `remembers`, not both");
  const written = [...document.per, when, sum, since, remembers].flatMap((expression) => expression?.syntax ?? []);
  const hostFacts = hostFactsIn(written, context);
  const identity = canonical({
    counting,
    of: context.of.toSorted(),
    per: document.per.map(spellExpression),
    sum: spellExpression(sum),
    when: spellExpression(when),
    since: spellExpression(since),
    settles_within: settlesWithin === undefined ? null : `${readLength(settlesWithin, report)}ms`,
    window: windowText(window),
    names: collectNamedValues(written, context),
    ...(hostFacts.length > 0 && { host_facts: [...hostFacts] }),
    ...(remembers === undefined ? {} : { remembers: spellExpression(remembers) }),
    ...(settles && { settles: "outcome" }),
    ...(claims && { claims }),
    ...(document.per.some(({ text }) => text === "call") && { unbound: context.unbound }),
  });
  const { of, startsEmpty } = context;
  return {
    name,
    identity,
    of,
    counting,
    mayReserve: counting === "possible",
    window,
    sums: sum !== undefined,
    settles,
    claims,
    sumOf: sum && memberOfInput(sum.syntax),
    remembers: remembers !== undefined,
    startsEmpty,
  };
}

/** The path of a member that the input must have; undefined for any other expression. */
function memberOfInput(syntax: Syntax): string | undefined {
  if (syntax.kind !== "member" || syntax.optional) return undefined;
  const of = syntax.of.kind === "name" && syntax.of.name === "input" ? "input" : memberOfInput(syntax.of);
  return of === undefined ? undefined : memberBelow(of, syntax.name);
}

/** Only an amount that was released can be taken back, so `settles` is for sums of such calls. */
function readSettles({ settles, sum }: CounterDocument, counting: CountingKind, report: Report): boolean {
  if (settles === undefined) return false;
  if (settles.text !== "outcome")
    report.add(
      "counter",
      settles.span,
      "the only value of `settles` is `outcome`",
      "a counter without it never goes down",
    );
  else if (sum === undefined)
    report.add(
      "counter",
      settles.span,
      "`settles: outcome` needs a `sum`: the number of calls does not depend on outcomes",
    );
  else if (counting !== "released" && counting !== "possible")
    report.add(
      "counter",
      settles.span,
      "`settles: outcome` is for calls that were let through",
      "add `counting: released` or `counting: possible`",
    );
  return true;
}

export interface CounterContext {
  readonly of: readonly string[];
  readonly startsEmpty: boolean;
  /** The members of each tool that its approvals are not bound to. */
  readonly unbound: Readonly<Record<string, readonly string[]>>;
  readonly limits: Scope["limits"];
  readonly lets: Scope["lets"];
  readonly hostFacts: HostFacts;
  readonly report: Report;
}

function spellExpression(expression: WrittenExpression | undefined): string | null {
  return expression === undefined ? null : spell(expression.syntax);
}

/** The limits and `let:` names that expressions use, with their values: they are part of what the expressions mean. */
export function collectNamedValues(
  expressions: readonly Syntax[],
  context: Pick<CounterContext, "lets" | "limits">,
): Canonical {
  const found = new Map<string, string>();
  const open = [...expressions];
  for (let syntax = open.pop(); syntax !== undefined; syntax = open.pop()) {
    if (syntax.kind === "member" && syntax.of.kind === "name" && syntax.of.name === "limits") {
      found.set(`limits.${syntax.name}`, limitText(context.limits.get(syntax.name)?.value ?? null));
    }
    const definition = syntax.kind === "name" && !found.has(syntax.name) ? context.lets.get(syntax.name) : undefined;
    if (definition !== undefined && syntax.kind === "name") {
      found.set(syntax.name, spell(definition));
      open.push(definition);
    }
    open.push(...parts(syntax));
  }
  return Object.fromEntries(found);
}

function limitText(value: Value): string {
  return isExact(value)
    ? exactText(value)
    : Array.isArray(value)
      ? `[${value.map(limitText).join(",")}]`
      : JSON.stringify(value);
}

function choose<Name extends string>(
  scalar: YamlScalar | undefined,
  names: readonly Name[],
  fallback: Name,
  report: Report,
): Name {
  if (scalar === undefined) return fallback;
  const found = names.find((name) => name === scalar.text);
  if (found !== undefined) return found;
  const known = names.map((name) => `\`${name}\``).join(", ");
  const hint = didYouMean(scalar.text, names, undefined);
  report.add("counter", scalar.span, `\`${scalar.text}\` is not one of ${known}`, hint);
  return fallback;
}

function readWindow(document: CounterDocument, report: Report): Window {
  const { within, timezone, weekStarts } = document;
  const unit = calendarUnits.find((name) => name === within?.text);
  if (unit === undefined) {
    for (const scalar of [timezone, weekStarts]) {
      if (scalar !== undefined)
        report.add(
          "counter",
          scalar.span,
          "time zones are for calendar periods",
          "`within: day` (or hour, week, month, year)",
        );
    }
    return within === undefined ? { kind: "ever" } : { kind: "rolling", ms: readLength(within, report) };
  }
  if (timezone === undefined) {
    report.add(
      "counter",
      within?.span ?? document.span,
      `a calendar ${unit} starts at a different time in every time zone`,
      "add `timezone: UTC`, or another IANA name",
    );
  } else if (!isTimezone(timezone.text)) {
    report.add(
      "counter",
      timezone.span,
      `\`${timezone.text}\` is not a time zone`,
      "an IANA name, such as `Europe/Berlin`",
    );
    return { kind: "ever" };
  }
  if (weekStarts !== undefined && unit !== "week")
    report.add("counter", weekStarts.span, "`week_starts` is for `within: week`");
  const starts: Weekday = choose(weekStarts, weekdays, "monday", report);
  return { kind: "calendar", calendar: { unit, timezone: timezone?.text ?? "UTC", weekStarts: starts } };
}

/** A duration above zero, in whole milliseconds. Days are 24 hours: `7d`. */
export function readLength(scalar: YamlScalar, report: Report): number {
  try {
    const days = /^([0-9]{1,6})d$/.exec(scalar.text);
    const ms = multiply(parseDuration(days === null ? scalar.text : `${Number(days[1]) * 24}h`), 1000);
    if (compare(ms, 0) > 0 && compare(ms, Number.MAX_SAFE_INTEGER) < 0 && isInteger(ms)) return Number(floor(ms));
    report.add("counter", scalar.span, "a duration is above zero, in whole milliseconds");
  } catch (error) {
    if (!(error instanceof EvaluationError)) throw error;
    report.add(
      "counter",
      scalar.span,
      error.message,
      `a time such as \`10m\`, \`24h\`, \`7d\`, or ${calendarUnits.map((unit) => `\`${unit}\``).join(", ")}`,
    );
  }
  return 1;
}

function windowText(window: Window): Canonical {
  if (window.kind === "ever") return "ever";
  if (window.kind === "rolling") return `${window.ms}ms`;
  const { unit, timezone, weekStarts } = window.calendar;
  return unit === "week" ? [unit, timezone, weekStarts] : [unit, timezone];
}

/** Checks and plans how calls of one tool update the counter. */
export function planWriter(counter: Counter, document: CounterDocument, scope: Scope, facts: Facts): CounterWriter {
  const when = document.when === undefined ? undefined : checkCondition(document.when.syntax, scope, facts).core;
  const sum = document.sum === undefined ? undefined : checkSum(document.sum.syntax, scope, facts);
  const remembers =
    document.remembers === undefined ? undefined : checkRemembered(document.remembers.syntax, scope, facts);
  const keys = checkKey(document.per, scope, facts);
  const key = planKey(keys, scope);
  const reads = [when, sum, remembers, ...keys].filter((core) => core !== undefined && typeof core !== "string");
  return {
    counter,
    isTrue: when === undefined ? () => true : planIfValid(scope, when, planCondition, () => false),
    keys:
      remembers === undefined
        ? (context, caller) => keysOf(key(context, caller), [undefined])
        : planIfValid(
            scope,
            remembers,
            (core) => planRemembered(key, plan(core)),
            () => [],
          ),
    amount: sum === undefined ? () => "1" : planIfValid(scope, sum, planAmount, () => "0"),
    reads: { when, per: keys, values: [sum, remembers].filter((core) => core !== undefined) },
    blind:
      !keys.includes("call") &&
      !reads.some((core) =>
        [...walk(core)].some((node) => node.op === "root" && (node.root === "input" || node.root === "platform")),
      ),
  };
}

/** Checks and plans how rules on one tool read the counter. */
export function planReader(
  counter: Counter,
  document: CounterDocument,
  scope: Scope,
  { facts, queries }: { readonly facts: Facts; readonly queries: readonly MembershipQuery[] },
): CounterReader {
  const per = checkKey(document.per, scope, facts);
  const key = planKey(per, scope);
  const collectValues = counter.remembers && scope.report.size === 0 ? planCollectors(queries) : undefined;
  if (document.since === undefined)
    return { counter, key, collectValues, per, since: undefined, settledThrough: undefined };
  const { core } = checkExpression(document.since.syntax, scope, facts);
  if (!["number", "timestamp", "broken"].includes(core.type.kind)) {
    scope.report.add("type", core.span, "`since` is a time: seconds since the epoch, or a timestamp");
  }
  const settlesMs = document.settlesWithin === undefined ? 0 : readLength(document.settlesWithin, scope.report);
  return {
    counter,
    key,
    collectValues,
    per,
    since: core,
    settledThrough: planIfValid(
      scope,
      core,
      (since) => planSettled(plan(since), settlesMs),
      () => 0,
    ),
  };
}

function checkRemembered(syntax: Syntax, scope: Scope, facts: Facts): Core {
  const { core } = checkExpression(syntax, scope, facts);
  const of = core.type.kind === "list" ? core.type.of : core.type;
  if (!isKey(of) && of.kind !== "broken")
    scope.report.add(
      "counter",
      core.span,
      `a counter remembers texts, numbers and booleans, or a list of these, not ${typeText(core.type)}`,
    );
  return core;
}

function planRemembered(key: KeyPlan, values: Plan): CounterWriter["keys"] {
  return (context, caller) => {
    const under = key(context, caller);
    if (under === null) return [];
    const value = values(context);
    return keysOf(under, [...toValueTexts(isList(value) ? value : [value])]);
  };
}

/** The texts of a key, with each of the values appended. */
function keysOf(key: readonly Canonical[] | null, values: readonly (string | undefined)[]): readonly string[] {
  return key === null ? [] : values.map((value) => keyText(key, value));
}

function checkSum(syntax: Syntax, scope: Scope, facts: Facts): Core {
  const { core } = checkExpression(syntax, scope, facts);
  for (const node of walk(core)) {
    if (node.op === "binary" && (node.operator === "/" || node.operator === "%")) {
      scope.report.add(
        "counter",
        node.span,
        "a `sum` adds decimals: it has no `/` and no `%`",
        "divide where the counter is read",
      );
    }
  }
  if (core.type.kind === "number" && !core.type.notNegative) {
    scope.report.add(
      "counter",
      core.span,
      "a `sum` must be proven not negative, or a call could reduce the total",
      "add `minimum: 0` to its schema",
    );
  } else if (core.type.kind !== "number" && core.type.kind !== "broken") {
    scope.report.add("type", core.span, "a `sum` adds numbers");
  }
  return core;
}

function planAmount(core: Core): (context: EvaluationContext) => string {
  const run = plan(core);
  return (context) => exactText(run(context) as Exact);
}

function planSettled(since: Plan, settlesMs: number): (context: EvaluationContext) => number {
  return (context) => {
    const value = since(context);
    const seconds = value instanceof Timestamp ? value.seconds : (value as Exact);
    if (compare(multiply(seconds, 1000), context.now) > 0)
      throw new EvaluationError(`its \`since\` (${show(seconds)}) is in the future`);
    return Number(floor(subtract(multiply(seconds, 1000), settlesMs)));
  };
}
