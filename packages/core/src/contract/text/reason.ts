import type { Report } from "./diagnostic.ts";
import type { ExpressionText } from "./lexer.ts";
import { parseExpression } from "./parser.ts";
import type { Syntax } from "./syntax.ts";
import type { YamlScalar } from "./yaml.ts";

/** A reason as it was written: text with expressions in braces; `{{` and `}}` are literal braces. */
export type ReasonSyntax = readonly (string | Syntax)[];

export function parseReason(scalar: YamlScalar, report: Report): ReasonSyntax {
  const { text, span } = scalar;
  if (text.trim() === "") report.add("reason", span, "a reason is one sentence for a person, but this one is empty");
  reportCut(scalar, report);
  if (/[\r\n]/.test(text.trim())) report.add("reason", span, "a reason is one sentence on one line");
  const parts: (string | Syntax)[] = [];
  let at = 0;
  while (at < text.length) {
    if (text.startsWith("{{", at) || text.startsWith("}}", at)) {
      parts.push(text.charAt(at));
      at += 2;
    } else if (text[at] === "{") {
      const end = closingBrace(text, at);
      parts.push(parseExpression(slice(scalar, at + 1, end), report));
      if (end === text.length)
        report.add("reason", span, "a `{` in the reason is not closed", "write `{{` for a brace");
      at = end + 1;
    } else if (text[at] === "}") {
      report.add("reason", span, "a `}` in the reason closes nothing", "write `}}` for a brace");
      at += 1;
    } else {
      const next = text.slice(at).search(/[{}]/);
      parts.push(text.slice(at, next === -1 ? undefined : at + next));
      at = next === -1 ? text.length : at + next;
    }
  }
  return parts;
}

/** `reason: the order #{input.order} is paid` is only `the order`: YAML reads the rest, from ` #`, as a comment. */
function reportCut({ text, span: { file, from, to } }: YamlScalar, report: Report): void {
  const [behind = ""] = /^[ \t]+#.*/.exec(file.text.slice(to, to + lineMax)) ?? [];
  if (/["'|>]/.test(file.text.charAt(from)) || !/#\S|\{/.test(behind)) return;
  const whole = `${text}${behind}`.trimEnd().replaceAll("'", "''");
  report.add(
    "yaml",
    { file, from, to: to + behind.trimEnd().length },
    "YAML reads ` #` and everything after it as a comment",
    `put the reason in quotes: \`reason: '${whole}'\`; if it is a comment, start it with \`# \` on a separate line`,
  );
}

/** The characters of a line that are examined. */
const lineMax = 10_000;

/** The brace that closes the one at `from`. Skips nested braces and quoted text. */
function closingBrace(text: string, from: number): number {
  let depth = 0;
  let mark: string | undefined;
  for (let at = from; at < text.length; at += 1) {
    const unit = text.charAt(at);
    if (mark !== undefined) {
      if (unit === "\\") at += 1;
      else if (unit === mark) mark = undefined;
    } else if (unit === '"' || unit === "'") mark = unit;
    else if (unit === "{") depth += 1;
    else if (unit === "}") {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  return text.length;
}

function slice(scalar: YamlScalar, from: number, to: number): ExpressionText {
  return { file: scalar.span.file, text: scalar.text.slice(from, to), offsets: scalar.offsets.slice(from, to + 1) };
}
