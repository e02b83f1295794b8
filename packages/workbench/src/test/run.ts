import type { PolicySet } from "../../../core/src/contract/mod.ts";
import type { AnswerApproval } from "../../../gate/src/server/mod.ts";
import { givenValues, shortName, explain, type Explanation, type EvaluationTrace } from "../../../records/src/mod.ts";
import { CaseGate, type CaseAnswer, type StepResult, type Obstacle } from "./case-gate.ts";
import type { Coverage } from "./coverage.ts";
import type { Expectation, TestCall, TestCase, TestDecision, TestFile, TestOutcome, TestStep } from "./document.ts";

/** The contract under test, with its trace and coverage. */
export interface TestSubject {
  readonly policySet: PolicySet;
  readonly trace: EvaluationTrace;
  readonly coverage: Coverage;
}

/** The expected and the actual result of a call. */
export interface TestMismatch {
  readonly what: string;
  readonly expected: string;
  readonly came: string;
}

export interface Failure {
  readonly step: TestStep;
  /** The number of the step in the case, from 1. */
  readonly number: number;
  readonly mismatches: readonly TestMismatch[];
  /** Undefined if the step is not a call, or the gate would refuse the body itself. */
  readonly answered: CaseAnswer | undefined;
  readonly explanation: Explanation | undefined;
}

export interface CaseResult {
  readonly case: TestCase;
  /** The first step with another result; the steps after it were not made. */
  readonly failure: Failure | undefined;
  readonly ms: number;
}

/** Runs the cases of a file one after another, each with a separate gate. */
export async function runTests(
  file: TestFile,
  subject: TestSubject,
  isWanted: (name: string) => boolean,
): Promise<readonly CaseResult[]> {
  const results: CaseResult[] = [];
  for (const testCase of file.cases.filter(({ name }) => isWanted(`${file.title} ${name}`))) {
    const startedAt = performance.now();
    const failure = await runCase(testCase, file, subject);
    results.push({ case: testCase, failure, ms: performance.now() - startedAt });
  }
  return results;
}

async function runCase(
  { steps, given }: TestCase,
  { mode, people }: TestFile,
  subject: TestSubject,
): Promise<Failure | undefined> {
  const { policySet } = subject;
  const wrong = unknownCounter(given, policySet);
  const [first] = steps;
  if (wrong !== undefined && first !== undefined)
    return { ...nothingCame, step: first, number: 1, mismatches: [wrong] };
  const valueOf = givenValues(given, "0");
  const gate = new CaseGate(policySet, { mode, people, given: (counter) => valueOf({ counter }) });
  for (const [index, step] of steps.entries()) {
    const failure = await runStep(step, gate, subject);
    if (failure !== undefined) return { ...failure, step, number: index + 1 };
  }
  return undefined;
}

type StepFailure = Omit<Failure, "number" | "step">;

const nothingCame = { answered: undefined, explanation: undefined };

function runStep(step: TestStep, gate: CaseGate, subject: TestSubject): Promise<StepFailure | undefined> {
  if (step.kind === "call") return runCall(step, gate, subject);
  return step.kind === "decision" ? runDecision(step, gate) : runOutcome(step, gate);
}

async function runCall(
  call: TestCall,
  gate: CaseGate,
  { trace, coverage }: TestSubject,
): Promise<StepFailure | undefined> {
  trace.forget();
  const answered = await gate.call(call);
  if (!answered.ok) return { ...nothingCame, mismatches: [toMismatch(call.expect, answered.problem)] };
  coverage.note(answered.value, trace);
  const mismatches = call.expect === undefined ? [] : compare(call.expect, answered.value);
  if (mismatches.length === 0) return undefined;
  return { mismatches, answered: answered.value, explanation: explain(answered.value, trace) };
}

async function runDecision(decision: TestDecision, gate: CaseGate): Promise<StepFailure | undefined> {
  const { act, expect } = decision;
  const decided = await gate.decide(decision);
  if (!decided.ok) return { ...nothingCame, mismatches: [toMismatch(undefined, decided.problem)] };
  return unlike({ what: act, expected: expect?.result, otherwise: "a decision that counts" }, decided.value);
}

async function runOutcome(outcome: TestOutcome, gate: CaseGate): Promise<StepFailure | undefined> {
  const expected = outcome.expect?.result;
  return unlike({ what: "outcome", expected, otherwise: "an outcome that is accepted" }, await gate.report(outcome));
}

/** @param step its expected result, or in words that the gate must accept it */
function unlike(
  { what, expected, otherwise }: Pick<TestMismatch, "what"> & { expected: string | undefined; otherwise: string },
  { result, refusal }: StepResult,
): StepFailure | undefined {
  if (expected === undefined ? refusal === undefined : expected === result) return undefined;
  const came = refusal === undefined ? result : `${result}: ${refusal}`;
  return { ...nothingCame, mismatches: [{ what, expected: expected ?? otherwise, came }] };
}

function unknownCounter(given: ReadonlyMap<string, string>, { counters }: PolicySet): TestMismatch | undefined {
  for (const name of given.keys()) {
    if (counters.some((counter) => isRule(name, counter.name))) continue;
    const came = `the contract has ${formatNames(counters.map((counter) => counter.name))}`;
    return { what: "given", expected: `a counter ${name}`, came };
  }
  return undefined;
}

function toMismatch(expect: Expectation | undefined, { what, came }: Obstacle): TestMismatch {
  const expected = what === "approval" ? "an approval" : (expect?.result ?? expect?.verdict ?? "a decision");
  return { what, expected, came };
}

function compare(expect: Expectation, came: CaseAnswer): readonly TestMismatch[] {
  const { decision, answered, counters, reason, isChanged } = came;
  const { verdict, rule, final, fired } = decision;
  const found: TestMismatch[] = [];
  const check = (what: string, expected: string | undefined, is: string, same = expected === is): void => {
    if (expected !== undefined && !same) found.push({ what, expected, came: is });
  };
  check("verdict", expect.result, isChanged ? answered : verdict);
  check("verdict", expect.verdict, verdict);
  check("answered", expect.answered, answered);
  check("rule", expect.rule, rule, isRule(expect.rule, rule));
  check("reason", expect.reason, reason, isReason(expect.reason, reason));
  check("final", expect.final?.toString(), String(final));
  const checkRules = (what: string, expected: readonly string[] | undefined, is: readonly string[]): void => {
    const areSame = expected?.length === is.length && is.every((id, at) => isRule(expected[at], id));
    check(what, expected && formatNames(expected), formatNames(is), areSame);
  };
  const wouldFire = decision.observed.map((observation) => observation.rule);
  checkRules("fired", expect.fired, fired);
  checkRules("observed", expect.observed, wouldFire);
  for (const [name, expected] of expect.counters) {
    const counter = counters.find((seen) => isRule(name, seen.name));
    const value = counter === undefined ? "no rule of this tool reads it" : (counter.value ?? "not known");
    check(`counter ${name}`, expected, value);
  }
  return [...found, ...compareApproval(expect.approval, came.approval)];
}

function compareApproval(expected: Expectation["approval"], came: AnswerApproval | undefined): readonly TestMismatch[] {
  if (expected === undefined) return [];
  if (expected === null || came === undefined) {
    if (expected === null && came === undefined) return [];
    const text = expected === null ? "none" : (expected.status ?? "an approval");
    return [{ what: "approval", expected: text, came: came?.status ?? "none" }];
  }
  return (["status", "new", "needs", "has", "next"] as const).flatMap((name) => {
    const [wanted, is] = [expected[name], String(came[name])];
    return wanted === undefined || String(wanted) === is
      ? []
      : [{ what: `approval.${name}`, expected: String(wanted), came: is }];
  });
}

function formatNames(names: readonly string[]): string {
  return names.length === 0 ? "none" : names.join(", ");
}

/** Is it the same rule, with or without its contract? */
export function isRule(expected: string | undefined, id: string): boolean {
  return expected === id || expected === shortName(id);
}

function isReason(expected: string | undefined, reason: string): boolean {
  return expected === undefined || (expected.startsWith("Svc:") ? expected === reason : reason.includes(expected));
}
