import { loadFunctions, type PolicySet } from "../../../core/src/contract/mod.ts";
import { compileContracts, recompile, type CompileOptions } from "../../../readers/src/compile.ts";
import { renderDiagnostics } from "../../../gate/src/server/policy/mod.ts";
import { bad, good, refuse, type Refusal, type Result } from "../../../core/src/wire/mod.ts";
import { evaluate, type TimedCall, type CounterValueSource } from "../evaluate.ts";
import { EvaluationTrace } from "../evaluation-trace.ts";
import { explainCall, givenValues, recordedValues, unknownCounter, type ReceiptExplained } from "./explain-call.ts";
import { explainedJson } from "./report.ts";

/** One explanation, as data that one thread can send to another. */
export interface ExplainJob {
  readonly call: TimedCall;
  /** The contract that decides: the text of one contract, or a body of GET /rules. */
  readonly contract: { readonly pasted: string } | { readonly rules: string };
  /** Values of counters by name. */
  readonly given: ReadonlyMap<string, string>;
  /** The receipt of the call, and the body of GET /rules that it names. */
  readonly receipt: (ReceiptExplained & { readonly rules: string }) | undefined;
}

/**
 * Compiles a contract, decides the call and explains the decision as JSON.
 *
 * @param passed called after each tool of a contract
 */
export async function explainJob(
  { call, contract, given, receipt }: ExplainJob,
  passed?: () => void,
): Promise<Result<string, Refusal>> {
  const trace = new EvaluationTrace();
  const compiled = await compile(contract, { probe: trace.probe, passed });
  if (!compiled.ok) return compiled;
  const unknown = unknownCounter(given, compiled.value);
  if (unknown !== undefined) return bad(refuse("invalid-request", unknown));
  const isRecorded = receipt !== undefined && "rules" in contract && contract.rules === receipt.rules;
  const valueOf =
    receipt === undefined
      ? givenValues(given, "0")
      : isRecorded
        ? recordedValues(receipt)
        : await otherValues(call, receipt, given, passed);
  const explained = explainCall({ policySet: compiled.value, trace }, call, valueOf, receipt);
  return explained.ok
    ? good(JSON.stringify(explainedJson(explained.value)))
    : bad(refuse("invalid-request", explained.problem));
}

const diagnosticsMax = 50;

async function compile(
  contract: ExplainJob["contract"],
  options: CompileOptions = {},
): Promise<Result<PolicySet, Refusal>> {
  const compiled =
    "rules" in contract
      ? recompile(contract.rules, options)
      : compileContracts([{ name: "contract.yaml", text: contract.pasted }], options);
  if (compiled.ok) {
    await loadFunctions(compiled.value);
    return compiled;
  }
  const { problem } = compiled;
  const more = problem.length > diagnosticsMax ? `, and ${problem.length - diagnosticsMax} more` : "";
  return bad(refuse("contract-refused", renderDiagnostics(problem.slice(0, diagnosticsMax)) + more));
}

/**
 * The values of counters under another contract than that of the receipt. A recorded value is that of a counter with the
 * same definition, key and window. A counter that the receipt does not record has the given value, or is unknown.
 */
async function otherValues(
  call: TimedCall,
  receipt: NonNullable<ExplainJob["receipt"]>,
  given: ReadonlyMap<string, string>,
  passed: (() => void) | undefined,
): Promise<CounterValueSource> {
  const known = new Map<string, string | undefined>();
  const compiled = await compile({ rules: receipt.rules }, { passed });
  const evaluation = compiled.ok ? evaluate(compiled.value, call, recordedValues(receipt)) : undefined;
  if (evaluation?.ok === true)
    for (const { lookup, value } of evaluation.value.counters) if (lookup !== undefined) known.set(idOf(lookup), value);
  const valueGiven = givenValues(given, undefined);
  return (lookup) => known.get(idOf(lookup)) ?? valueGiven(lookup);
}

function idOf({ counter, key, after }: Parameters<CounterValueSource>[0]): string {
  return JSON.stringify([counter.identity, key, after]);
}
