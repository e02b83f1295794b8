import {
  approvalKeys,
  approvalStatuses,
  expectKeys,
  nextSteps,
  type Expectation,
  type ExpectedApproval,
} from "./document.ts";
import type { Sheet } from "./sheet.ts";

/** The expectation of a call: a verdict, or members of the answer. */
export function expectationOf(sheet: Sheet): Expectation | undefined {
  const node = sheet.node("expect");
  if (node === undefined) return undefined;
  if (node.kind === "scalar") return { span: node.span, result: sheet.verdict("expect"), counters: new Map() };
  const inner = sheet.inner("expect", "`expect`")?.checkKeys(expectKeys);
  if (inner === undefined) return undefined;
  if (inner.map.entries.size === 0) sheet.report.add("missing", node.span, "`expect` is empty");
  return {
    span: node.span,
    verdict: inner.verdict("verdict"),
    answered: inner.verdict("answered"),
    rule: inner.text("rule"),
    reason: inner.text("reason"),
    final: inner.flag("final"),
    fired: rulesOf(inner, "fired"),
    observed: rulesOf(inner, "observed"),
    counters: inner.decimals("counters"),
    approval: approvalOf(inner),
  };
}

/** A status, null for an answer without approval, or members of the answer's `approval`. */
function approvalOf(sheet: Sheet): ExpectedApproval | null | undefined {
  const node = sheet.node("approval");
  if (node === undefined) return undefined;
  if (node.kind === "scalar") return node.value === null ? null : statusOf(sheet, "approval");
  const inner = sheet.inner("approval", "`approval`")?.checkKeys(approvalKeys);
  if (inner === undefined) return undefined;
  if (inner.map.entries.size === 0) sheet.report.add("missing", node.span, "`approval` is empty");
  return {
    ...statusOf(inner, "status"),
    new: inner.flag("new"),
    needs: inner.decimal("needs"),
    has: inner.decimal("has"),
    next: inner.oneOf("next", "next step", nextSteps),
  };
}

function statusOf(sheet: Sheet, name: string): ExpectedApproval {
  return { status: sheet.oneOf(name, "status of an approval", approvalStatuses) };
}

function rulesOf(sheet: Sheet, name: string): readonly string[] | undefined {
  return sheet.has(name) ? sheet.texts(name).map(({ text }) => text) : undefined;
}
