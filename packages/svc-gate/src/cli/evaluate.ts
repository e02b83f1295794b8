import { planLookups, count, decide, prepare } from "../contract/mod.ts";
import type { LookupPlan, PolicySet, Decision, Lookup, CounterUpdate, Prepared } from "../contract/mod.ts";
import { answeredVerdict } from "../gate/mod.ts";
import { bad, good, parseCheckRequest, type CheckRequest } from "../wire/mod.ts";
import type { Mode, Result, Verdict } from "../wire/mod.ts";

/** A call as it reaches the gate, with its time. */
export interface Call {
  /** The body of POST /check. */
  readonly body: string;
  /** The API key's name. */
  readonly key: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly mode: Mode;
}

/** The value of a counter before the call. */
export interface CounterSeen {
  readonly name: string;
  /** A decimal; undefined if it is unknown. */
  readonly value: string | undefined;
  /** Undefined if there was nothing to look up. */
  readonly lookup: Lookup | undefined;
}

export interface Evaluation {
  readonly prepared: Prepared;
  readonly decision: Decision;
  readonly answered: Verdict;
  /** The counters that the tool's rules may read; empty if the call is refused before any rule. */
  readonly counters: readonly CounterSeen[];
  /** The counter updates of the call. */
  readonly updates: readonly CounterUpdate[];
}

/**
 * Returns the value of a counter; undefined if it is unknown.
 *
 * @param read its name on receipts: the counter's name, or for one that remembers `name[N]` for the N-th value looked
 *   up
 */
export type ValueOf = (lookup: Lookup, read: string) => string | undefined;

/**
 * Decides one call as the gate would.
 *
 * @returns the decision, or the sentence of the gate's 400 response
 */
export function evaluate(policySet: PolicySet, call: Call, valueOf: ValueOf): Result<Evaluation, string> {
  const request = parseCheckRequest(call.body);
  return request.ok ? good(evaluateRequest(policySet, request.value, call, valueOf)) : bad(request.problem.detail);
}

/** Decides a request that was read before. */
export function evaluateRequest(
  policySet: PolicySet,
  request: CheckRequest,
  { key, at, mode }: Omit<Call, "body">,
  valueOf: ValueOf,
): Evaluation {
  const prepared = prepare(policySet, request, { keyName: key, sessionId: request.sessionId });
  const lookupPlan = planLookups(prepared, at);
  const counterReads = [...lookupPlan.sources].flatMap(([name, source]) => soughtOf(name, source));
  const reads = new Map(counterReads.map(({ index, read }) => [index, read]));
  const values = lookupPlan.lookups.map((lookup, index) => valueOf(lookup, reads.get(index) ?? ""));
  const decision = decide(lookupPlan, values);
  const out = answeredVerdict(decision, mode);
  const counters = counterReads.map(({ name, index }) => ({
    name,
    value: index === undefined ? "0" : values[index],
    lookup: index === undefined ? undefined : lookupPlan.lookups[index],
  }));
  const updates = count(prepared, { verdict: decision.verdict, answered: out });
  return { prepared, decision, answered: out, counters, updates };
}

interface CollectedValues {
  /** For a person: includes the value that is looked up if the counter remembers values. */
  readonly name: string;
  readonly read: string;
  /** Undefined if there is nothing to look up: the call has no session. */
  readonly index: number | undefined;
}

type Source = LookupPlan["sources"] extends ReadonlyMap<string, infer Found> ? Found : never;

function soughtOf(name: string, source: Source): readonly CollectedValues[] {
  if (source === "nothing") return [{ name, read: name, index: undefined }];
  if ("error" in source) return [];
  if ("lookup" in source) return [{ name, read: name, index: source.lookup }];
  return [...source.asked].map(([value, index], at) => {
    return { name: `${name}[${rememberedText(value)}]`, read: `${name}[${at}]`, index };
  });
}

/** A remembered value in the spelling of a condition. */
function rememberedText(value: string): string {
  const [type, text = ""] = JSON.parse(value) as readonly string[];
  return type === "text" ? JSON.stringify(text) : text;
}
