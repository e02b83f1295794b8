import { locationRow, textAt } from "../../../gate/src/cli/source-location.ts";
import type { CaseAnswer } from "./case-gate.ts";
import { outcomes, type Coverage } from "./coverage.ts";
import { percent } from "./print.ts";
import type { TestStep } from "./document.ts";
import type { TestRound } from "./round.ts";
import type { CaseResult, Failure } from "./run.ts";

/**
 * The output of `svc-gate test --json`: see docs/guides/testing.md.
 *
 * @param without contracts without a test
 */
export function roundJson({ files, subjects }: TestRound, ok: boolean, without: readonly string[]): object {
  const results = files.flatMap((file) => file.results);
  return {
    ok,
    cases: results.length,
    failed: results.filter(({ failure }) => failure !== undefined).length,
    files: files.map(({ file, subject, results: cases }) => ({
      file: file.source.name,
      subject,
      cases: cases.map(caseJson),
    })),
    coverage: [...subjects].map(([subject, { coverage }]) => ({ subject, ...coverageJson(coverage) })),
    untested: without,
  };
}

function caseJson({ case: testCase, failure, ms }: CaseResult): object {
  const { name, span, steps } = testCase;
  const count = (wanted: TestStep["kind"]): number => steps.filter(({ kind }) => kind === wanted).length;
  return {
    case: name,
    ok: failure === undefined,
    ...locationRow(span),
    calls: count("call"),
    decisions: count("decision"),
    outcomes: count("outcome"),
    ms: Math.round(ms * 1000) / 1000,
    failure: failure === undefined ? null : failureJson(failure),
  };
}

function failureJson({ step, number, mismatches, answered }: Failure): object {
  return {
    call: number,
    ...locationRow(step.expect?.span ?? step.span),
    at: new Date(step.at).toISOString(),
    ...stepJson(step),
    mismatches,
    came: answered === undefined ? null : cameJson(answered),
  };
}

function stepJson(step: TestStep): object {
  if (step.kind === "call") return { key: step.key, body: step.body };
  if (step.kind === "outcome") return { outcome: step.status, of: step.call, key: step.key ?? null };
  return { decision: step.act, by: step.by, approval: step.approval };
}

function cameJson({ decision, answered, reason, counters, approval }: CaseAnswer): object {
  const { verdict, rule, final, fired, observed, errors } = decision;
  const { id: _id, ...told } = approval ?? { id: null };
  return {
    verdict,
    answered,
    rule,
    reason,
    final,
    fired,
    observed,
    errors: Object.fromEntries(errors),
    counters: Object.fromEntries(counters.map(({ name, value }) => [name, value ?? null])),
    approval: approval === undefined ? null : told,
  };
}

function coverageJson(coverage: Coverage): object {
  const { seen, all } = outcomes(coverage);
  return {
    percent: percent(coverage),
    seen,
    all,
    conditions: coverage.targets.map(({ id, tools, isWhole, span, trues, falses }) => ({
      rule: id,
      tools: [...tools],
      whole: isWhole,
      text: textAt(span),
      ...locationRow(span),
      true: trues,
      false: falses,
    })),
    tools: [...coverage.tools.values()].map(({ tool, calls, otherwise }) => ({
      tool,
      calls,
      otherwise: Object.fromEntries(otherwise),
    })),
  };
}
