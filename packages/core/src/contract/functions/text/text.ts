import { bad, good, type Result } from "../../../wire/mod.ts";
import { compilePattern, type PatternProblem } from "../../value/pattern.ts";
import { EvaluationError } from "../../value/rational.ts";
import { boolean, string } from "../../value/type.ts";
import type { ContractFunction } from "../../core/function.ts";

export const textFunctions: readonly ContractFunction[] = [
  {
    name: "startsWith",
    style: "method",
    parameters: ["string", "string"],
    result: boolean,
    doc: "Does the text start with the other one?",
    examples: [['"/secrets/key".startsWith("/secrets/")', "true"]],
    run: ([text, prefix]) => (text as string).startsWith(prefix as string),
  },
  {
    name: "endsWith",
    style: "method",
    parameters: ["string", "string"],
    result: boolean,
    doc: "Does the text end with the other one?",
    examples: [['"report.pdf".endsWith(".pdf")', "true"]],
    run: ([text, suffix]) => (text as string).endsWith(suffix as string),
  },
  {
    name: "contains",
    style: "method",
    parameters: ["string", "string"],
    result: boolean,
    doc: "Does the text contain the other one?",
    examples: [['"rm -rf /".contains("-rf")', "true"]],
    run: ([text, part]) => (text as string).includes(part as string),
  },
  {
    name: "lowerAscii",
    style: "method",
    parameters: ["string"],
    result: string,
    doc: "The text with A to Z in lower case; every other character is unchanged.",
    examples: [['"TacoCÆt".lowerAscii()', '"tacocÆt"']],
    run: ([text]) => (text as string).replace(/[A-Z]+/g, (letters) => letters.toLowerCase()),
  },
  {
    name: "matches",
    style: "method",
    parameters: ["string", "string"],
    result: boolean,
    doc: "Does the whole text match the pattern (RE2 syntax, linear time)? The pattern is a literal `^(?:...)$`.",
    examples: [['"AB-12".matches("^(?:[A-Z]{2}-[0-9]+)$")', "true"]],
    run: () => {
      throw new EvaluationError("a pattern that was not compiled");
    },
    bind: bindPattern,
  },
];

function bindPattern(pattern: string): Result<Pick<ContractFunction, "run" | "cost">, PatternProblem> {
  if (!isWhole(pattern)) {
    const hint = `write "^(?:${pattern.replace(/^\^|\$$/g, "")})$" for the whole text, or use \`contains\``;
    return bad({ message: "the pattern must be for the whole text: `^(?:...)$`", hint });
  }
  const compiled = compilePattern(pattern);
  if (!compiled.ok) return compiled;
  const { test, costPerUnit } = compiled.value;
  return good({
    cost: ([text]) => (text as string).length * costPerUnit,
    run: ([text]) => {
      const found = test(text as string);
      if (found === undefined) throw new EvaluationError("a text that is too long for its pattern");
      return found;
    },
  });
}

/** Is the pattern one group, anchored on both sides? `^(?:a)|(?:b)$` is not. */
function isWhole(pattern: string): boolean {
  if (!pattern.startsWith("^(?:") || !pattern.endsWith(")$")) return false;
  let depth = 0;
  let inClass = false;
  for (let at = 1; at < pattern.length - 1; at += 1) {
    const unit = pattern[at];
    if (unit === "\\") {
      if (pattern[at + 1] === "Q") return false;
      at += 1;
    } else if (inClass) inClass = unit !== "]" || pattern[at - 1] === "[" || pattern.slice(at - 2, at) === "[^";
    else if (unit === "[") inClass = true;
    else if (unit === "(") depth += 1;
    else if (unit === ")") depth -= 1;
    if (depth === 0) return at === pattern.length - 2;
  }
  return false;
}
