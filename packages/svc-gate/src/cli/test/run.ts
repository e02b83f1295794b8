import type { PolicySet, Lookup } from "../../contract/mod.ts";
import { addDecimals } from "../../wire/mod.ts";
import { InMemoryCounters } from "../in-memory-counters.ts";
import { explain, type Explanation } from "../explain/explanation.ts";
import { evaluate, type Evaluation } from "../evaluate.ts";
import type { EvaluationTrace } from "../evaluation-trace.ts";
import type { Coverage } from "./coverage.ts";
import type { Expectation, TestCall, TestCase, TestFile } from "./document.ts";

/** The contract under test, with its trace and coverage. */
export interface Subject {
  readonly policySet: PolicySet;
  readonly trace: EvaluationTrace;
  readonly coverage: Coverage;
}

/** The expected and the actual result of a call. */
export interface Mismatch {
  readonly what: string;
  readonly expected: string;
  readonly came: string;
}

export interface Failure {
  readonly call: TestCall;
  /** The number of the call in the case, from 1. */
  readonly number: number;
  readonly mismatches: readonly Mismatch[];
  /** Undefined if the gate would refuse the body itself. */
  readonly evaluation: Evaluation | undefined;
  readonly explanation: Explanation | undefined;
}

export interface CaseResult {
  readonly case: TestCase;
  /** The first call with another result; the calls after it were not made. */
  readonly failure: Failure | undefined;
  readonly ms: number;
}

/** Runs the cases of a file, each with separate counters. */
export function runTests(file: TestFile, subject: Subject, isWanted: (name: string) => boolean): readonly CaseResult[] {
  return file.cases
    .filter(({ name }) => isWanted(`${file.title} ${name}`))
    .map((testCase) => {
      const began = performance.now();
      const failure = runCase(testCase, file, subject);
      return { case: testCase, failure, ms: performance.now() - began };
    });
}

function runCase({ calls, given }: TestCase, { mode }: TestFile, subject: Subject): Failure | undefined {
  const { policySet, trace, coverage } = subject;
  const counters = new InMemoryCounters();
  const wrong = unknownCounter(given, policySet);
  if (wrong !== undefined && calls[0] !== undefined)
    return { call: calls[0], number: 1, mismatches: [wrong], evaluation: undefined, explanation: undefined };
  const valueOf = (lookup: Lookup): string => addDecimals(counters.value(lookup), givenOf(lookup, given));
  for (const [index, call] of calls.entries()) {
    trace.forget();
    const evaluation = evaluate(policySet, { ...call, mode }, valueOf);
    const failed = { call, number: index + 1 };
    if (!evaluation.ok)
      return {
        ...failed,
        mismatches: [refused(call, evaluation.problem)],
        evaluation: undefined,
        explanation: undefined,
      };
    coverage.note(evaluation.value, trace);
    for (const move of evaluation.value.updates) counters.add(move, call.at);
    const mismatches = call.expect === undefined ? [] : compare(call.expect, evaluation.value);
    if (mismatches.length > 0)
      return { ...failed, mismatches, evaluation: evaluation.value, explanation: explain(evaluation.value, trace) };
  }
  return undefined;
}

function unknownCounter(given: ReadonlyMap<string, string>, { counters }: PolicySet): Mismatch | undefined {
  for (const name of given.keys()) {
    if (counters.some((counter) => isRule(name, counter.name))) continue;
    const came = `the contract has ${listed(counters.map((counter) => counter.name))}`;
    return { what: "given", expected: `a counter ${name}`, came };
  }
  return undefined;
}

function givenOf({ counter }: Lookup, given: ReadonlyMap<string, string>): string {
  return given.get(counter.name) ?? given.get(afterDot(counter.name)) ?? "0";
}

function refused({ expect }: TestCall, problem: string): Mismatch {
  return { what: "verdict", expected: expect?.verdict ?? "a decision", came: `refused with 400: ${problem}` };
}

function compare(expect: Expectation, { decision, answered, counters }: Evaluation): readonly Mismatch[] {
  const { verdict, rule, reason, final, fired } = decision;
  const found: Mismatch[] = [];
  const check = (what: string, expected: string | undefined, came: string, same = expected === came): void => {
    if (expected !== undefined && !same) found.push({ what, expected, came });
  };
  check("verdict", expect.verdict, verdict);
  check("answered", expect.answered, answered);
  check("rule", expect.rule, rule, isRule(expect.rule, rule));
  check("reason", expect.reason, reason, isReason(expect.reason, reason));
  check("final", expect.final?.toString(), String(final));
  const wouldFire = decision.observed.map((observation) => observation.rule);
  check("fired", expect.fired && listed(expect.fired), listed(fired), areRules(expect.fired, fired));
  check(
    "observed",
    expect.observed && listed(expect.observed),
    listed(wouldFire),
    areRules(expect.observed, wouldFire),
  );
  for (const [name, expected] of expect.counters) {
    const counter = counters.find((seen) => isRule(name, seen.name));
    check(
      `counter ${name}`,
      expected,
      counter?.value ?? (counter === undefined ? "no rule of this tool reads it" : "not known"),
    );
  }
  return found;
}

function listed(names: readonly string[]): string {
  return names.length === 0 ? "none" : names.join(", ");
}

function areRules(expected: readonly string[] | undefined, ids: readonly string[]): boolean {
  return expected?.length === ids.length && ids.every((id, at) => isRule(expected[at], id));
}

/** Is it the same rule, with or without its contract? */
function isRule(expected: string | undefined, id: string): boolean {
  return expected === id || expected === afterDot(id);
}

function afterDot(id: string): string {
  return id.slice(id.indexOf(".") + 1);
}

function isReason(expected: string | undefined, reason: string): boolean {
  return expected === undefined || (expected.startsWith("Svc:") ? expected === reason : reason.includes(expected));
}
