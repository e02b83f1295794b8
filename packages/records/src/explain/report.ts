import { show } from "../../../core/src/contract/mod.ts";
import { visible, type ExplainedJson, type ExplainedPart } from "../../../core/src/wire/mod.ts";
import { locationRow, textAt } from "../../../gate/src/cli/source-location.ts";
import type { TimedCall, Evaluation } from "../evaluate.ts";
import type { CounterExplained } from "./counted.ts";
import type { Explanation, PartExplained } from "./explanation.ts";
import { keyText, shownKey } from "./key.ts";
import { printRule } from "./print.ts";

/** A call with everything that led to its verdict. */
export interface CallExplanation {
  readonly call: TimedCall;
  readonly evaluation: Evaluation;
  readonly explanation: Explanation;
  readonly counters: readonly CounterExplained[];
  /** For a receipt: its number and contract, and whether the result is the same today. */
  readonly recorded: { readonly seq: number; readonly contract: string; readonly agrees: boolean } | undefined;
}

export function explainedText({ call, evaluation, explanation, counters, recorded }: CallExplanation): string {
  const { decision, answered, prepared } = evaluation;
  const { request } = prepared;
  const who = [
    request.alias === undefined ? request.toolName : `${request.toolName} (sent as ${visible(request.alias)})`,
    request.sessionId === null ? "no session" : `session ${request.sessionId}`,
    `key ${call.key}`,
    new Date(call.at).toISOString(),
  ].join(", ");
  return [
    `${decision.verdict}  ${decision.rule}: ${decision.reason.replace(/^Svc: /, "")}`,
    `  ${who}`,
    ...(answered === decision.verdict ? [] : [`  answered ${answered}, in mode ${call.mode}`]),
    ...(recorded === undefined
      ? []
      : [
          `  receipt ${recorded.seq}, under ${recorded.contract}`,
          ...(recorded.agrees
            ? []
            : ["  and this is NOT the result on the receipt: `svc-gate replay` shows the difference"]),
        ]),
    ...countersText(counters),
    ...explanation.rules.flatMap((rule) => ["", ...printRule(rule)]),
  ].join("\n");
}

function countersText(counters: readonly CounterExplained[]): readonly string[] {
  if (counters.length === 0) return [];
  const width = Math.max(...counters.map(({ name }) => name.length));
  return ["", "counters, before the call", ...counters.flatMap((counter) => counterText(counter, width))];
}

function counterText({ name, value, lookup, counted }: CounterExplained, width: number): readonly string[] {
  const under = lookup === undefined ? "" : `  of ${keyText(lookup.key)}${windowText(lookup.after)}`;
  const last = (counted?.last ?? []).map(({ seq, amount }) => `receipt ${seq} (${amount})`).join(", ");
  const more =
    counted === undefined || counted.receipts <= counted.last.length
      ? ""
      : `, and ${counted.receipts - counted.last.length} before`;
  return [
    `  ${name.padEnd(width)}  ${value ?? "not read"}${under}`,
    ...(last === "" ? [] : [`  ${" ".repeat(width)}  from ${last}${more}`]),
  ];
}

function windowText(after: number): string {
  return after < 0 ? "" : `, since ${new Date(after + 1).toISOString()}`;
}

/**
 * The explanation for programs: `{verdict, answered, mode, rule, reason, final, errors, observed, counters, rules, mismatch,
 * recorded}`. A condition is `{text, place, came, times, parts}`; `came` has its first values, each `{value}` or
 * `{error}`.
 */
export function explainedJson({
  call,
  evaluation,
  explanation,
  counters,
  recorded,
}: CallExplanation): ExplainedJson & Readonly<Record<string, unknown>> {
  const { verdict, rule, reason, final, fired, errors, observed } = evaluation.decision;
  return {
    verdict,
    answered: evaluation.answered,
    mode: call.mode,
    rule,
    reason,
    final,
    fired,
    errors: Object.fromEntries(errors),
    observed,
    counters: counters.map(({ name, value, lookup, counted }) => ({
      name,
      value: value ?? null,
      key: lookup === undefined ? null : shownKey(lookup.key),
      after: lookup?.after ?? null,
      counted: counted ?? null,
    })),
    rules: explanation.rules.map(({ condition, ...of }) => ({ ...of, condition: condition && partJson(condition) })),
    mismatch: explanation.mismatch,
    recorded: recorded ?? null,
  };
}

function partJson({ span, first, times, parts }: PartExplained): ExplainedPart {
  return {
    text: textAt(span),
    place: locationRow(span),
    came: first.map((came) => ("value" in came ? { value: show(came.value) } : came)),
    times,
    parts: parts.map(partJson),
  };
}
