import { consult, count, decide, prepare } from "../contract/mod.ts";
import type { ContractInForce, Decision, Lookup, Move, Prepared } from "../contract/mod.ts";
import { answered } from "../gate/mod.ts";
import { bad, good, parseCheckRequest, type Mode, type Result, type Verdict } from "../wire/mod.ts";

/** A call as it reaches the gate, at its moment. */
export interface Call {
  /** The body of POST /check. */
  readonly body: string;
  /** The API key's name. */
  readonly key: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly mode: Mode;
}

/** What a counter stood at before the call. */
export interface CounterSeen {
  readonly name: string;
  /** A decimal; undefined where it is not known, or was not to be read. */
  readonly value: string | undefined;
  /** Undefined where there was nothing to look up. */
  readonly lookup: Lookup | undefined;
}

export interface Judged {
  readonly prepared: Prepared;
  readonly decision: Decision;
  readonly answered: Verdict;
  /** The counters that the tool's rules may read; empty where the call is refused before any rule. */
  readonly counters: readonly CounterSeen[];
  /** What the call counts. */
  readonly moves: readonly Move[];
}

/**
 * Decides one call as the gate would.
 *
 * @param valueOf what a counter stands at; undefined where that is not known
 * @returns the decision, or the sentence of the 400 that the gate would answer
 */
export function judge(
  force: ContractInForce,
  { body, key, at, mode }: Call,
  valueOf: (lookup: Lookup) => string | undefined,
): Result<Judged, string> {
  const request = parseCheckRequest(body);
  if (!request.ok) return bad(request.problem.detail);
  const prepared = prepare(force, request.value, { keyName: key, sessionId: request.value.sessionId });
  const consultation = consult(prepared, at);
  const values = consultation.lookups.map(valueOf);
  const decision = decide(consultation, values);
  const out = answered(decision, mode);
  const counters = [...consultation.sources].flatMap(([name, source]): CounterSeen[] => {
    if (source === "nothing") return [{ name, value: "0", lookup: undefined }];
    if ("error" in source) return [{ name, value: undefined, lookup: undefined }];
    const seen = (label: string, place: number): CounterSeen => {
      return { name: label, value: values[place], lookup: consultation.lookups[place] };
    };
    if ("lookup" in source) return [seen(name, source.lookup)];
    return [...source.asked].map(([value, place]) => seen(`${name}[${value}]`, place));
  });
  const moves = count(prepared, { verdict: decision.verdict, answered: out });
  return good({ prepared, decision, answered: out, counters, moves });
}
