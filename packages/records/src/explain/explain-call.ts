import type { Lookup, PolicySet } from "../../../core/src/contract/mod.ts";
import type { Leaf } from "../../../core/src/record/entry/mod.ts";
import { bad, good, type Result } from "../../../core/src/wire/mod.ts";
import { evaluate, type TimedCall, type CounterValueSource } from "../evaluate.ts";
import type { EvaluationTrace } from "../evaluation-trace.ts";
import type { ReceiptCheck, RecordedTrace } from "../replay/recorded.ts";
import type { CounterExplained } from "./counted.ts";
import { explain } from "./explanation.ts";
import type { CallExplanation } from "./report.ts";

/** A receipt as far as its explanation needs it. */
export interface ReceiptExplained
  extends Pick<Leaf, "rule" | "seq" | "verdict">, Pick<RecordedTrace, "counters">, Pick<ReceiptCheck, "reasonText"> {
  /** The contract that it names: `sha256:` and hex digits. */
  readonly contract: string;
}

interface TracedPolicy {
  /** Compiled with the probe of the trace. */
  readonly policySet: PolicySet;
  readonly trace: EvaluationTrace;
}

/** Decides a call and explains the decision. Returns the sentence of the gate's 400 response if it refuses the call. */
export function explainCall(
  { policySet, trace }: TracedPolicy,
  call: TimedCall,
  valueOf: CounterValueSource,
  receipt?: ReceiptExplained,
): Result<CallExplanation, string> {
  const evaluation = evaluate(policySet, call, valueOf);
  if (!evaluation.ok) return bad(evaluation.problem);
  const counters = evaluation.value.counters.map((counter): CounterExplained => ({ ...counter, counted: undefined }));
  const { decision } = evaluation.value;
  return good({
    call,
    evaluation: evaluation.value,
    explanation: explain(evaluation.value, trace),
    counters,
    recorded: receipt && {
      seq: receipt.seq,
      contract: receipt.contract,
      agrees:
        decision.verdict === receipt.verdict &&
        decision.rule === receipt.rule &&
        JSON.stringify(decision.reason) === receipt.reasonText,
    },
  });
}

/**
 * The values that a person gave, by the counter's whole or short name.
 *
 * @param others the value of any other counter
 */
export function givenValues<Other>(
  given: ReadonlyMap<string, string>,
  others: Other,
): (lookup: Pick<Lookup, "counter">) => Other | string {
  return ({ counter: { name } }) => given.get(name) ?? given.get(shortName(name)) ?? others;
}

/** A clause about a name that no counter has; undefined if each name is that of a counter. */
export function unknownCounter(
  given: ReadonlyMap<string, string>,
  { counters }: Pick<PolicySet, "counters">,
): string | undefined {
  const names = counters.flatMap(({ name }) => [name, shortName(name)]);
  const unknown = [...given.keys()].find((name) => !names.includes(name));
  if (unknown === undefined) return undefined;
  const known = counters.map(({ name }) => name).join(", ") || "none";
  return `the counter ${unknown} does not exist; the counters are ${known}`;
}

/** The name without its contract. */
export function shortName(name: string): string {
  return name.slice(name.indexOf(".") + 1);
}

/**
 * The recorded values of the counters, under the contract of the receipt. A receipt has those that were read, by the
 * value's number if the counter remembers.
 */
export function recordedValues({
  counters,
}: Pick<ReceiptExplained, "counters">): (lookup: Lookup) => string | undefined {
  const counts = new Map<string, number>();
  return ({ counter: { name, remembers } }) => {
    if (!remembers) return counters[name];
    const index = counts.get(name) ?? 0;
    counts.set(name, index + 1);
    return counters[`${name}[${index}]`];
  };
}
