import { show, type Value } from "../../../core/src/contract/mod.ts";
import { Timestamp } from "../../../core/src/contract/ir.ts";
import { clip, locationText, textAt } from "../../../gate/src/cli/source-location.ts";
import type { PartExplained, RuleExplained } from "./explanation.ts";

/** One requirement or rule: its result and its verdict, and below them its condition with the values. */
export function printRule({ id, kind, came, speaks, condition }: RuleExplained): readonly string[] {
  const location = condition === null ? "" : `  ${locationText(condition.span)}`;
  const head = `${id}  ${kind === "otherwise" ? otherwiseText(came) : came}${location}`;
  const would = kind === "observing" ? "observes only; its verdict would be " : "";
  const said =
    speaks === null ? [] : [`  ${would}${speaks.verdict}${speaks.reason === "" ? "" : `: ${speaks.reason}`}`];
  return [head, ...said, ...(condition === null || came === "not evaluated" ? [] : printCondition(condition))];
}

function otherwiseText(came: RuleExplained["came"]): string {
  return came === "true" ? "no rule applies" : came === "false" ? "a rule applies" : came;
}

const textMax = 72;

function printCondition(condition: PartExplained): readonly string[] {
  const rows = formatPartRows(condition, 1);
  const width = Math.max(...rows.map(([text]) => Array.from(text).length));
  return rows.map(([text, value]) => `${text}${" ".repeat(width - Array.from(text).length)}  ${value}`);
}

function formatPartRows(part: PartExplained, depth: number): readonly (readonly [text: string, value: string])[] {
  const text = `${"  ".repeat(depth)}${clip(textAt(part.span), textMax - 2 * depth)}`;
  return [[text, valueText(part)], ...part.parts.flatMap((inner) => formatPartRows(inner, depth + 1))];
}

function valueText({ first, times }: PartExplained): string {
  if (times === 0) return "not evaluated";
  const shown = first.map((came) => ("value" in came ? shownValue(came.value) : `error: ${came.error}`)).join(", ");
  return times > first.length ? `${shown}, … (${times} times)` : shown;
}

const objectMax = 120;

/** As in a reason, but with the members of an object, and the date of a time. */
function shownValue(value: Value): string {
  if (value instanceof Map) {
    const members = [...value].map(([name, member]) => `${name}: ${show(member)}`);
    return `{${clip(members.join(", "), objectMax)}}`;
  }
  if (!(value instanceof Timestamp)) return show(value);
  const date = new Date(Number(show(value)) * 1000);
  return Number.isNaN(date.getTime()) ? show(value) : `${show(value)} (${date.toISOString().replace(".000Z", "Z")})`;
}
