import { canonical, nearest, utf8Bytes, type Canonical } from "../wire/mod.ts";
import { checkCondition, checkExpression } from "./check.ts";
import type { Facts } from "./facts.ts";
import type { Scope } from "./scope.ts";
import { walk, type Core } from "./core.ts";
import type { Report } from "./diagnostic.ts";
import type { CounterDocument, WrittenExpression } from "./document.ts";
import { plan, planCondition, type Plan, type Situation } from "./plan.ts";
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
} from "./rational.ts";
import { spell } from "./spell.ts";
import { parts, type Syntax } from "./syntax.ts";
import {
  calendarStart,
  calendarUnits,
  isTimezone,
  parseDuration,
  weekdays,
  type Calendar,
  type Weekday,
} from "./time.ts";
import { show, Timestamp, type Value } from "./value.ts";
import type { YamlScalar } from "./yaml.ts";

/** Which calls a counter counts, by how they were answered or what was decided of them. */
export const countings = ["attempts", "released", "possible", "blocked", "escalated"] as const;
export type Counting = (typeof countings)[number];

/** A counter in force: one idea for velocity, budgets and sequence. */
export interface Counter {
  /** `contract.counter`. */
  readonly name: string;
  /** Its definition in one fixed spelling: two counters of one definition are one counter, whatever their names. */
  readonly identity: string;
  readonly of: readonly string[];
  readonly counting: Counting;
  readonly window: Window;
  /** The mandate says that it begins at nothing, so older receipts are not folded into it. */
  readonly startsEmpty: boolean;
}

/** From when events count: all of them, those of a rolling time, or those of a calendar period. */
export type Window =
  | { readonly kind: "ever" }
  | { readonly kind: "rolling"; readonly ms: number }
  | { readonly kind: "calendar"; readonly calendar: Calendar };

/** How one tool's calls move a counter. */
export interface Mover {
  readonly counter: Counter;
  readonly holds: (situation: Situation) => boolean;
  readonly key: KeyPlan;
  readonly amount: (situation: Situation) => string;
  /** It reads neither input nor snapshot, so that a call that failed a schema moves it too. */
  readonly blind: boolean;
}

/** How one tool's rules read a counter. */
export interface Reader {
  readonly counter: Counter;
  readonly key: KeyPlan;
  /** Milliseconds: events at or before it have been let go (`since` less `settles_within`); undefined without `since`. */
  readonly settledThrough: ((situation: Situation) => number) | undefined;
}

/** Who asks: the key's name, and the session that it speaks for. */
export interface Caller {
  readonly keyName: string;
  readonly sessionId: string | null;
}

/** The text of a key, typed and unambiguous; null where the call belongs to no session. @throws {EvaluationError} */
export type KeyPlan = (situation: Situation, caller: Caller) => string | null;

const keyBytesMax = 256;

/** Compiles what all tools share of a counter. */
export function readCounter(name: string, document: CounterDocument, context: CounterContext): Counter {
  const { report } = context;
  const counting = choose(document.counting, countings, "attempts", report);
  if (document.settlesWithin !== undefined && document.since === undefined) {
    report.add("counter", document.settlesWithin.span, "`settles_within` belongs to `since:`");
  }
  const window = readWindow(document, report);
  const { when, sum, since, settlesWithin } = document;
  const identity = canonical({
    counting,
    of: context.of.toSorted(),
    per: document.per.map(spelt),
    sum: spelt(sum),
    when: spelt(when),
    since: spelt(since),
    settles_within: settlesWithin === undefined ? null : `${readLength(settlesWithin, report)}ms`,
    window: windowText(window),
    names: namesIn([...document.per, when, sum, since], context),
  });
  return { name, identity, of: context.of, counting, window, startsEmpty: context.startsEmpty };
}

export interface CounterContext {
  readonly of: readonly string[];
  readonly startsEmpty: boolean;
  readonly limits: Scope["limits"];
  readonly lets: Scope["lets"];
  readonly report: Report;
}

function spelt(expression: WrittenExpression | undefined): string | null {
  return expression === undefined ? null : spell(expression.syntax);
}

/** The limits and `let:` names that a definition uses, with what they stand for: they are part of its identity. */
function namesIn(expressions: readonly (WrittenExpression | undefined)[], context: CounterContext): Canonical {
  const found = new Map<string, string>();
  const open = expressions.flatMap((expression) => expression?.syntax ?? []);
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
  const near = nearest(scalar.text, names);
  report.add(
    "counter",
    scalar.span,
    `\`${scalar.text}\` is none of ${names.map((name) => `\`${name}\``).join(", ")}`,
    near === undefined ? undefined : `did you mean \`${near}\`?`,
  );
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
      `a calendar ${unit} begins at another moment in every time zone`,
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

/** A length of time above zero, in whole milliseconds. Days are 24 hours: `7d`. */
function readLength(scalar: YamlScalar, report: Report): number {
  try {
    const days = /^([0-9]{1,6})d$/.exec(scalar.text);
    const ms = multiply(parseDuration(days === null ? scalar.text : `${Number(days[1]) * 24}h`), 1000);
    if (compare(ms, 0) > 0 && compare(ms, Number.MAX_SAFE_INTEGER) < 0 && isInteger(ms)) return Number(floor(ms));
    report.add("counter", scalar.span, "a time is above zero, in whole milliseconds");
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

/** Checks and plans how calls of one tool move the counter. */
export function planMover(counter: Counter, document: CounterDocument, scope: Scope, facts: Facts): Mover {
  const when = document.when === undefined ? undefined : checkCondition(document.when.syntax, scope, facts).core;
  const sum = document.sum === undefined ? undefined : checkSum(document.sum.syntax, scope, facts);
  const keys = checkKey(document.per, scope, facts);
  const reads = [when, sum, ...keys].filter((core) => core !== undefined && typeof core !== "string");
  return {
    counter,
    holds: when === undefined ? () => true : planned(scope, when, planCondition, () => false),
    key: planKey(keys, scope),
    amount: sum === undefined ? () => "1" : planned(scope, sum, planAmount, () => "0"),
    blind: !reads.some((core) =>
      [...walk(core)].some((node) => node.op === "root" && (node.root === "input" || node.root === "platform")),
    ),
  };
}

/** Checks and plans how rules on one tool read the counter. */
export function planReader(counter: Counter, document: CounterDocument, scope: Scope, facts: Facts): Reader {
  const key = planKey(checkKey(document.per, scope, facts), scope);
  if (document.since === undefined) return { counter, key, settledThrough: undefined };
  const { core } = checkExpression(document.since.syntax, scope, facts);
  if (!["number", "timestamp", "broken"].includes(core.type.kind)) {
    scope.report.add("type", core.span, "`since` is a moment: seconds since the epoch, or a timestamp");
  }
  const settlesMs = document.settlesWithin === undefined ? 0 : readLength(document.settlesWithin, scope.report);
  return {
    counter,
    key,
    settledThrough: planned(
      scope,
      core,
      (since) => planSettled(plan(since), settlesMs),
      () => 0,
    ),
  };
}

/** Plans an expression unless something in the compilation is wrong: then nothing of it will run. */
function planned<Result>(scope: Scope, core: Core, make: (core: Core) => Result, broken: Result): Result {
  return scope.report.size > 0 ? broken : make(core);
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
      "a `sum` must be proven not negative, or a call could give back what others spent",
      "add `minimum: 0` to its schema",
    );
  } else if (core.type.kind !== "number" && core.type.kind !== "broken") {
    scope.report.add("type", core.span, "a `sum` adds numbers");
  }
  return core;
}

function planAmount(core: Core): (situation: Situation) => string {
  const run = plan(core);
  return (situation) => exactText(run(situation) as Exact);
}

type KeyPart = "session" | "key" | "gate" | Core;

function checkKey(per: readonly WrittenExpression[], scope: Scope, facts: Facts): readonly KeyPart[] {
  return per.flatMap(({ text: word, syntax }): KeyPart[] => {
    if (word === "session" || word === "key" || word === "gate") return [word];
    const { core } = checkExpression(syntax, scope, facts);
    if (core.type.kind === "broken") return [];
    if (core.op === "member" && ["string", "number", "boolean"].includes(core.type.kind)) return [core];
    scope.report.add(
      "counter",
      syntax.span,
      `\`${word}\` is not a key`,
      "`session`, `key`, `gate`, or a required text, number or boolean such as `platform.wallet_id`",
    );
    return [];
  });
}

function planKey(keys: readonly KeyPart[], scope: Scope): KeyPlan {
  const pieces = keys.map((part) => (typeof part === "string" ? part : planned<Plan>(scope, part, plan, () => null)));
  return (situation, caller) => {
    const values: Canonical[] = [];
    for (const piece of pieces) {
      if (piece === "session" && caller.sessionId === null) return null;
      if (piece === "session") values.push(["session", caller.keyName, caller.sessionId ?? ""]);
      else if (piece === "key") values.push(["key", caller.keyName]);
      else if (piece === "gate") values.push(["gate"]);
      else values.push(keyValue(piece(situation)));
    }
    return canonical(values);
  };
}

/** A value as a part of a key, with its type: the text "1" is not the number 1. @throws {EvaluationError} */
function keyValue(value: Value): Canonical {
  const [type, text] =
    typeof value === "string"
      ? ["text", value]
      : isExact(value)
        ? ["number", exactText(value)]
        : ["boolean", value === true ? "true" : "false"];
  if (utf8Bytes(text) > keyBytesMax) throw new EvaluationError(`its key is over ${keyBytesMax} bytes`);
  return [type, text];
}

function planSettled(since: Plan, settlesMs: number): (situation: Situation) => number {
  return (situation) => {
    const value = since(situation);
    const seconds = value instanceof Timestamp ? value.seconds : (value as Exact);
    if (compare(multiply(seconds, 1000), situation.now) > 0)
      throw new EvaluationError(`its \`since\` (${show(seconds)}) is in the future`);
    return Number(floor(subtract(multiply(seconds, 1000), settlesMs)));
  };
}

/** Events after this moment (milliseconds) are in the window: `(now - within, now]`, or the calendar's period so far. */
export function windowStart(window: Window, now: number): number {
  switch (window.kind) {
    case "ever":
      return -1;
    case "rolling":
      return Math.max(-1, now - window.ms);
    case "calendar":
      return calendarStart(window.calendar, now) - 1;
    default:
      return window satisfies never;
  }
}
