import { bad, good, type Result } from "../wire/mod.ts";
import { compilePattern, type PatternProblem } from "./pattern.ts";
import { EvaluationError, type Exact } from "./rational.ts";
import { parseDuration, parseTimestamp } from "./time.ts";
import { boolean, size as sizeType, string, type Type } from "./type.ts";
import { Duration, Timestamp, type Value } from "./value.ts";

/**
 * A function that conditions may call. Bodies are pure and total: they return a value or throw `EvaluationError`,
 * which blocks. To add one: one entry here; its examples run as tests, and the table in spec/contract.md is made of it.
 */
export interface ContractFunction {
  readonly name: string;
  /** Called on its first parameter (`text.startsWith(prefix)`), or by itself (`duration("10m")`). */
  readonly style: "method" | "function";
  readonly parameters: readonly Type["kind"][];
  readonly result: Type;
  readonly doc: string;
  /** Expressions and what they come to, as `show` prints it. */
  readonly examples: readonly (readonly [expression: string, shown: string])[];
  readonly run: (args: readonly Value[]) => Value;
  /** Steps that a call takes off the budget, where they are more than the arguments' length. */
  readonly cost?: (args: readonly Value[]) => number;
  /**
   * A parser, brought in when a contract in force calls it. Until then a call is an error, so BLOCK. A decision parses
   * the same texts once, however many rules ask.
   */
  readonly load?: () => Promise<void>;
  /** For a function whose last argument must be a literal: makes the body for it once, when the contract is compiled. */
  readonly bind?: (literal: string) => Result<Pick<ContractFunction, "run" | "cost">, PatternProblem>;
}

export const functions: readonly ContractFunction[] = [
  {
    name: "size",
    style: "method",
    parameters: ["string"],
    result: sizeType,
    doc: "How many characters (Unicode code points) a text has.",
    examples: [['size("naïve")', "5"]],
    run: ([text]) => Array.from(text as string).length,
  },
  {
    name: "size",
    style: "method",
    parameters: ["list"],
    result: sizeType,
    doc: "How many items a list has.",
    examples: [["size([1, 2, 3])", "3"]],
    run: ([list]) => (list as readonly Value[]).length,
  },
  {
    name: "size",
    style: "method",
    parameters: ["record"],
    result: sizeType,
    doc: "How many members an object has.",
    examples: [['{"a": 1}.size()', "1"]],
    run: ([map]) => (map as ReadonlyMap<string, Value>).size,
  },
  {
    name: "startsWith",
    style: "method",
    parameters: ["string", "string"],
    result: boolean,
    doc: "Does the text begin with the other?",
    examples: [['"/secrets/key".startsWith("/secrets/")', "true"]],
    run: ([text, prefix]) => (text as string).startsWith(prefix as string),
  },
  {
    name: "endsWith",
    style: "method",
    parameters: ["string", "string"],
    result: boolean,
    doc: "Does the text end with the other?",
    examples: [['"report.pdf".endsWith(".pdf")', "true"]],
    run: ([text, suffix]) => (text as string).endsWith(suffix as string),
  },
  {
    name: "contains",
    style: "method",
    parameters: ["string", "string"],
    result: boolean,
    doc: "Does the text hold the other anywhere?",
    examples: [['"rm -rf /".contains("-rf")', "true"]],
    run: ([text, part]) => (text as string).includes(part as string),
  },
  {
    name: "lowerAscii",
    style: "method",
    parameters: ["string"],
    result: string,
    doc: "The text with A to Z in lower case; every other character stays.",
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
  {
    name: "duration",
    style: "function",
    parameters: ["string"],
    result: { kind: "duration" },
    doc: "A length of time: a sequence of numbers with units `h`, `m`, `s`, `ms`, `us`, `ns`.",
    examples: [['duration("1h30m")', "5400s"]],
    run: ([text]) => new Duration(parseDuration(text as string)),
  },
  {
    name: "timestamp",
    style: "function",
    parameters: ["string"],
    result: { kind: "timestamp" },
    doc: "The moment that an RFC 3339 text names.",
    examples: [['timestamp("1970-01-01T00:01:00Z") == timestamp(60)', "true"]],
    run: ([text]) => new Timestamp(parseTimestamp(text as string)),
  },
  {
    name: "timestamp",
    style: "function",
    parameters: ["number"],
    result: { kind: "timestamp" },
    doc: "The moment so many seconds after 1970-01-01T00:00:00Z.",
    examples: [['timestamp(90) - timestamp(60) == duration("30s")', "true"]],
    run: ([seconds]) => new Timestamp(seconds as Exact),
  },
];

/** The message and hint for a function of CEL that the contract language leaves out. */
export const leftOut: ReadonlyMap<string, string> = new Map([
  ["int", "there is one numeric type, and it is exact: remove `int(...)`"],
  ["uint", "there is one numeric type, and it is exact: remove `uint(...)`"],
  ["double", "there is one numeric type, and it is exact: remove `double(...)`"],
  ["string", "compare values of their own type; a reason prints any value with `{...}`"],
  ["bool", "conditions are booleans already; compare texts with `==`"],
  ["bytes", "JSON has text only"],
  ["dyn", "types come from the schemas: give the member a `type`"],
  ["type", "types come from the schemas: give the member a `type`"],
  ["orValue", "write `.?member.orValue(default)`"],
  ["value", "write `.?member.orValue(default)`"],
  ["or", "write `.?member.orValue(default)`"],
  ["optMap", "write `.?member.orValue(default)`"],
  ["optFlatMap", "write `.?member.orValue(default)`"],
  ["existsOne", "write `exists_one`, with one name for the item"],
  ["transformList", "write `map`, with one name for the item"],
  ...named("transformMap transformMapEntry", "send what is compared as a list, or name each member"),
  ...named(
    "charAt format indexOf join lastIndexOf quote replace reverse split substring trim upperAscii",
    "a text is tested as it was sent: `startsWith`, `endsWith`, `contains`, `matches`, `lowerAscii`, `size`",
  ),
  ...named(
    "distinct flatten range slice sort sortBy first last",
    "test lists with `exists`, `all`, `filter`, `map`, `size`",
  ),
  ...named(
    "getDate getDayOfMonth getDayOfWeek getDayOfYear getFullYear getHours getMilliseconds getMinutes getMonth getSeconds",
    "compare moments with `timestamp(...)` and lengths of time with `duration(...)`",
  ),
]);

function named(names: string, hint: string): readonly (readonly [string, string])[] {
  return names.split(" ").map((name) => [name, hint]);
}

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
