import {
  planLookups,
  decide,
  prepare,
  type LookupPlan,
  type PolicySet,
  type Decision,
  type Lookup,
  type Prepared,
} from "../../core/src/contract/mod.ts";
import {
  answeredVerdict,
  bad,
  good,
  parseCheckRequest,
  type KeyKind,
  type Mode,
  type Result,
  type Verdict,
} from "../../core/src/wire/mod.ts";

/** A call as it reaches the gate, with its time. */
export interface TimedCall {
  /** The body of POST /check. */
  readonly body: string;
  /** The API key's name. */
  readonly key: string;
  /** Undefined for an ordinary key. */
  readonly keyKind?: KeyKind | undefined;
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
}

/**
 * Returns the value of a counter; undefined if it is unknown.
 *
 * @param read its name on receipts: the counter's name, or for one that remembers `name[N]` for the N-th value looked
 *   up
 */
export type CounterValueSource = (lookup: Lookup, read: string) => string | undefined;

/**
 * Decides one call as the gate would.
 *
 * @returns the decision, or the sentence of the gate's 400 response
 */
export function evaluate(
  policySet: PolicySet,
  { body, key, keyKind, at, mode }: TimedCall,
  valueOf: CounterValueSource,
): Result<Evaluation, string> {
  const request = parseCheckRequest(body);
  if (!request.ok) return bad(request.problem.detail);
  const prepared = prepare(policySet, request.value, { keyName: key, keyKind, sessionId: request.value.sessionId });
  const lookupPlan = planLookups(prepared, at);
  const reads = new Map(readsOf(lookupPlan).map(({ index, read }) => [index, read]));
  const values = lookupPlan.lookups.map((lookup, index) => valueOf(lookup, reads.get(index) ?? ""));
  const decision = decide(lookupPlan, values);
  const answered = answeredVerdict(decision, mode);
  return good({ prepared, decision, answered, counters: countersSeen(lookupPlan, values) });
}

/** The counters that the tool's rules may read, with the values that were looked up. */
export function countersSeen(lookupPlan: LookupPlan, values: readonly (string | undefined)[]): readonly CounterSeen[] {
  return readsOf(lookupPlan).map(({ name, index }) => ({
    name,
    value: index === undefined ? "0" : values[index],
    lookup: index === undefined ? undefined : lookupPlan.lookups[index],
  }));
}

function readsOf({ sources }: LookupPlan): readonly CounterRead[] {
  return [...sources].flatMap(([name, source]) => soughtOf(name, source));
}

interface CounterRead {
  /** For a person: includes the value that is looked up if the counter remembers values. */
  readonly name: string;
  readonly read: string;
  /** Undefined if there is nothing to look up: the call has no session. */
  readonly index: number | undefined;
}

type LookupSource = LookupPlan["sources"] extends ReadonlyMap<string, infer Found> ? Found : never;

function soughtOf(name: string, source: LookupSource): readonly CounterRead[] {
  if (source === "nothing") return [{ name, read: name, index: undefined }];
  if ("error" in source) return [];
  if ("lookup" in source) return [{ name, read: name, index: source.lookup }];
  return [...source.byValue].map(([value, index], at) => {
    return { name: `${name}[${rememberedText(value)}]`, read: `${name}[${at}]`, index };
  });
}

/** A remembered value in the spelling of a condition. */
function rememberedText(value: string): string {
  const [type, text = ""] = JSON.parse(value) as readonly string[];
  return type === "text" ? JSON.stringify(text) : text;
}
