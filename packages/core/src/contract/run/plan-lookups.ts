import { Decimal, type CheckRequest } from "../../wire/mod.ts";
import type { ToolPlan } from "../compile/compile-tool.ts";
import type { Caller } from "../compile/keys.ts";
import type { CounterReader } from "../compile/counters.ts";
import { windowStart, type Counter } from "../core/counter.ts";
import { keyText, rememberedMax, valueText } from "../core/key-text.ts";
import type { Decision } from "../core/decision.ts";
import type { LookupContexts } from "../compile/memory.ts";
import { noCounters, stepsMax, type CounterValues, type EvaluationContext } from "../plan/plan.ts";
import { EvaluationError, type Exact } from "../value/rational.ts";

/** Events of one counter under one key: those that a call adds, or those that it looks up. */
export interface CounterUpdate {
  readonly counter: Counter;
  readonly key: string;
  /** A decimal. */
  readonly amount: string;
  /** True if the amount is reserved until a person decides the call. */
  readonly held?: true;
}

/** A call after all work that does not depend on the time or on counters. */
export interface Prepared {
  /** With the tool's own name. */
  readonly request: CheckRequest;
  readonly caller: Caller;
  readonly plan: ToolPlan | undefined;
  /** Decided before any rule: an unknown tool, a requirement on presence, a schema. */
  readonly early: Decision | undefined;
  readonly updates: readonly CounterUpdate[];
  /** Counters that this call should update but cannot: BLOCK. */
  readonly broken: readonly (readonly [rule: string, message: string])[];
  /** The sent facts that count under none of the tool's contracts, because a host's key sent them. */
  readonly uncounted: readonly string[];
}

export interface Lookup {
  readonly counter: Counter;
  readonly key: string;
  /** Milliseconds since the epoch: events at or before it are not counted. */
  readonly after: number;
}

/** A prepared call with its time: the counters that its rules may look up in the ledger. */
export interface LookupPlan {
  readonly prepared: Prepared;
  readonly now: number;
  readonly lookups: readonly Lookup[];
  readonly sources: ReadonlyMap<string, CounterSource>;
}

/** The source of a counter's value: a lookup, one lookup for each value, no lookup (no session), or an error. */
type CounterSource =
  | { readonly lookup: number }
  | { readonly byValue: ReadonlyMap<string, number>; readonly complete: boolean }
  | { readonly error: string }
  | "nothing";

const noLookups: readonly Lookup[] = [];
const noSources: ReadonlyMap<string, CounterSource> = new Map();

/** @param now milliseconds since the epoch: the only clock reading of this check, written on its receipt as `at` */
export function planLookups(prepared: Prepared, now: number): LookupPlan {
  const { plan, early } = prepared;
  if (plan === undefined || early !== undefined || plan.readers.size === 0)
    return { prepared, now, lookups: noLookups, sources: noSources };
  const lookups: Lookup[] = [];
  const sources = new Map<string, CounterSource>();
  const { request, caller } = prepared;
  const contexts = { deciding: contextOf(request, caller, now), observing: contextOf(request, caller, now) };
  for (const [name, reader] of plan.readers) sources.set(name, source(reader, prepared, contexts, lookups));
  return { prepared, now, lookups, sources };
}

function source(
  { counter, key, collectValues, settledThrough }: CounterReader,
  { caller }: Prepared,
  contexts: LookupContexts,
  lookups: Lookup[],
): CounterSource {
  const context = contexts.deciding;
  try {
    const under = key(context, caller);
    if (under === null) return "nothing";
    const start = windowStart(counter.window, context.now);
    const after = settledThrough === undefined ? start : Math.max(start, settledThrough(context));
    if (collectValues === undefined) return { lookup: lookups.push({ counter, key: keyText(under), after }) - 1 };
    const { values, complete } = collectValues(contexts);
    const entries = [...values].map((value): readonly [string, number] => [
      value,
      lookups.push({ counter, key: keyText(under, value), after }) - 1,
    ]);
    return { byValue: new Map(entries), complete };
  } catch (error) {
    return { error: evaluationMessage(error) };
  }
}

/** The indexes in `lookups` that a counter's value comes from. */
export function lookupsOf({ sources }: LookupPlan, counter: string): readonly number[] {
  const from = sources.get(counter);
  if (from === undefined || from === "nothing" || "error" in from) return [];
  return "lookup" in from ? [from.lookup] : [...from.byValue.values()];
}

/**
 * The counters of one decision.
 *
 * @param values for each lookup, the decimal from the ledger, or undefined if the counter's history is unknown
 * @param read receives every read: a counter's name, or for one that remembers `name[N]` for the N-th value, with 1 or
 *   0
 */
export function counterValues(
  { sources }: LookupPlan,
  values: readonly (string | undefined)[],
  read: Map<string, string>,
): CounterValues {
  return {
    value: (name) => {
      const from = sourceOf(sources, name);
      const value = from === "nothing" ? "0" : requireValue(name, "lookup" in from ? values[from.lookup] : undefined);
      read.set(name, value);
      return exact(value);
    },
    contains: (name, value) => {
      const from = sourceOf(sources, name);
      if (from === "nothing") return false;
      const text = valueText(value);
      const texts = "byValue" in from ? [...from.byValue.keys()] : [];
      const lookup = "byValue" in from ? from.byValue.get(text) : undefined;
      if (lookup === undefined && "byValue" in from && !from.complete)
        throw new EvaluationError(
          `the counter ${name} cannot be read: the call looks up over ${rememberedMax} values, or finding them takes too many steps`,
        );
      const found = requireValue(name, lookup === undefined ? undefined : values[lookup]) !== "0";
      read.set(`${name}[${texts.indexOf(text)}]`, found ? "1" : "0");
      return found;
    },
  };
}

function sourceOf(sources: LookupPlan["sources"], name: string): Exclude<CounterSource, { readonly error: string }> {
  const from = sources.get(name);
  if (from === undefined) throw new EvaluationError(`the counter ${name} cannot be read: it is not in force`);
  if (typeof from === "object" && "error" in from)
    throw new EvaluationError(`the counter ${name} cannot be read: ${from.error}`);
  return from;
}

function requireValue(name: string, value: string | undefined): string {
  if (value !== undefined) return value;
  throw new EvaluationError(`the counter ${name} is unknown, because receipts in its window were lost`);
}

function exact(decimal: string): Exact {
  return /^[0-9]{1,15}$/.test(decimal) ? Number(decimal) : new Decimal(decimal);
}

export function contextOf(
  request: CheckRequest,
  caller: Caller,
  now: number,
  counters: CounterValues = noCounters,
): EvaluationContext {
  return {
    tool: request.toolName,
    input: request.toolInput,
    platform: request.platformState,
    keyKind: caller.keyKind,
    hasSession: request.sessionId !== null,
    now,
    counters,
    variables: [],
    steps: stepsMax,
  };
}

/**
 * The message of an error for a reason: evaluation errors explain themselves, any other error is a defect of the
 * engine.
 */
export function evaluationMessage(error: unknown): string {
  return error instanceof EvaluationError ? error.message : "the engine failed";
}
