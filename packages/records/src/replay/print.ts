import { addDecimals, visible } from "../../../core/src/wire/mod.ts";
import type { Difference } from "./decide-again.ts";
import {
  otherGroups,
  type VerdictChange,
  type ChangeExample,
  type ReceiptTotals,
  type VerdictChanges,
} from "./verdict-changes.ts";

/** Rows that could not be decided again, and why. */
export interface SkippedRows {
  readonly receipts: number;
  readonly reasons: ReadonlyMap<string, { readonly receipts: number; readonly first: number }>;
}

export interface Disagreement {
  readonly seq: number;
  readonly difference: Difference;
}

export interface AgreementFound {
  readonly agreed: number;
  readonly disagreements: number;
  /** The first of these rows. */
  readonly shown: readonly Disagreement[];
  readonly skipped: SkippedRows;
}

export function agreementText({ agreed, disagreements, shown, skipped }: AgreementFound): string {
  const head =
    disagreements === 0
      ? `${plural(agreed)} decided again: verdict, rule, reason, trace and counters of each are as recorded`
      : `${plural(agreed + disagreements)} decided again: ${disagreements} differ from what was recorded`;
  const rows = shown.map(
    ({ seq, difference: { what, was, is } }) =>
      `  receipt ${seq}: another ${what}\n    recorded  ${visible(was)}\n    again     ${visible(is)}`,
  );
  const more = disagreements > shown.length ? [`  and ${disagreements - shown.length} more`] : [];
  return [head, ...rows, ...more, ...skippedText(skipped)].join("\n");
}

export interface ComparisonFound {
  readonly contract: string;
  readonly counts: VerdictChanges;
  readonly field: string | undefined;
  readonly skipped: SkippedRows;
}

export function comparisonText({ contract, counts, field, skipped }: ComparisonFound): string {
  const { decided, changed } = counts;
  const changing =
    changed === 0 ? "no verdict changes" : `${changed} verdict${changed === 1 ? " changes" : "s change"}`;
  const title = `${plural(decided)} decided as if ${contract} had been in force: ${changing}`;
  if (changed === 0) return [title, ...skippedText(skipped)].join("\n");
  const head = ["receipts", ...(field === undefined ? [] : [`sum of ${field}`])];
  const share = (group: ReceiptTotals): readonly string[] => [
    String(group.receipts),
    ...(field === undefined ? [] : [group.sum]),
  ];
  const figures = { head, share };
  const examples = [...counts.examples.values()].flat();
  const changes = sortGroups(counts.changes).map(([, change]) => [change.was, change.wouldBe, ...share(change)]);
  return [
    title,
    "",
    ...columns([["was", "would be", ...head], ...changes]),
    ...(field === undefined ? [] : [`  ${moneyText([...counts.changes.values()], field)}`]),
    ...groupsText("by rule", counts.byRule, figures),
    ...groupsText("by tool", counts.byTool, figures),
    ...groupsText("by session", counts.bySession, figures),
    ...(examples.length === 0 ? [] : ["", "examples", ...examples.map(exampleText)]),
    ...skippedText(skipped),
  ].join("\n");
}

/** The sum for each new verdict: each change is in one of the three sums. */
function moneyText(changes: readonly VerdictChange[], field: string): string {
  const sum = (verdict: VerdictChange["wouldBe"]): string =>
    changes.filter(({ wouldBe }) => wouldBe === verdict).reduce((total, change) => addDecimals(total, change.sum), "0");
  return (
    `${field} newly allowed: ${sum("ALLOW")}; newly sent to a person: ${sum("ESCALATE")}; ` +
    `newly stopped: ${sum("BLOCK")}`
  );
}

const groupsShown = 10;

function groupsText(
  title: string,
  groups: ReadonlyMap<string, ReceiptTotals>,
  figures: { readonly head: readonly string[]; readonly share: (group: ReceiptTotals) => readonly string[] },
): readonly string[] {
  const all = sortGroups(groups);
  const rows = all.slice(0, groupsShown).map(([name, group]) => [visible(name), ...figures.share(group)]);
  const more = all.length > groupsShown ? [`  and ${all.length - groupsShown} more (--json has all)`] : [];
  return ["", ...columns([[title, ...figures.head], ...rows]), ...more];
}

/** The largest groups first, the combined rest last. */
export function sortGroups<Group extends ReceiptTotals>(
  groups: ReadonlyMap<string, Group>,
): readonly (readonly [string, Group])[] {
  return [...groups].toSorted(
    ([a, x], [b, y]) =>
      Number(a === otherGroups) - Number(b === otherGroups) || y.receipts - x.receipts || (a < b ? -1 : 1),
  );
}

function exampleText({ seq, tool, session, was, wouldBe }: ChangeExample): string {
  return [
    `  receipt ${seq}: ${visible(tool)}${session === null ? "" : `, session ${visible(session)}`}`,
    `    was       ${was.verdict}  ${visible(was.rule)}: ${visible(was.reason)}`,
    `    would be  ${wouldBe.verdict}  ${wouldBe.rule}: ${wouldBe.reason}`,
  ].join("\n");
}

export function skippedText({ receipts, reasons }: SkippedRows): readonly string[] {
  if (receipts === 0) return [];
  return [
    "",
    `${plural(receipts)} cannot be decided again:`,
    ...[...reasons].map(([why, { receipts: count, first }]) => `  ${count}, starting with receipt ${first}: ${why}`),
  ];
}

/** Words are aligned left, numbers right. */
export function columns(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, at) => Math.max(...rows.map((row) => (row[at] ?? "").length)));
  const isFigure = (at: number): boolean => rows.some((row) => /^-?[0-9]/.test(row[at] ?? ""));
  return rows.map((row) =>
    `  ${row.map((cell, at) => (isFigure(at) ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0))).join("  ")}`.trimEnd(),
  );
}

export function plural(receipts: number): string {
  return `${receipts.toLocaleString("en-US")} receipt${receipts === 1 ? "" : "s"}`;
}
