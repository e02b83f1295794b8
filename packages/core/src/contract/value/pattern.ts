import { RE2JS } from "re2js";
import { bad, good, type Result } from "../../wire/mod.ts";

/** A regular expression of RE2: matching takes linear time for every text. */
export interface Pattern {
  /** Undefined if pattern and text together are too large to be matched in time. */
  readonly test: (text: string) => boolean | undefined;
  /** Steps of the budget for each unit of text. */
  readonly costPerUnit: number;
}

export interface PatternProblem {
  readonly message: string;
  readonly hint: string;
}

const textMax = 2000;
/** Instructions: enough for several `{1,255}` of a class. */
const sizeMax = 1000;
/** Instructions times units of text: an eighth of a second if RE2's automaton does not fit in its cache. */
const workMax = 10_000_000;

export function compilePattern(text: string): Result<Pattern, PatternProblem> {
  const hint = "RE2 has no look-around and no back-references, so it cannot hang";
  if (text.length > textMax)
    return bad({ message: `a pattern of over ${textMax} characters`, hint: "test parts of it" });
  try {
    const compiled = RE2JS.compile(text);
    const size = compiled.programSize();
    if (size > sizeMax)
      return bad({
        message: `a pattern that is too large: its repetitions make ${size} steps, over ${sizeMax}`,
        hint: "bound the length by `maxLength` or `size()`, not by repetitions",
      });
    const test = (value: string): boolean | undefined =>
      value.length * size > workMax ? undefined : compiled.test(value);
    return good({ test, costPerUnit: Math.max(1, size >> 3) });
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^error parsing regexp: /, "") : String(error);
    return bad({ message: `not a pattern of RE2: ${why}`, hint });
  }
}
