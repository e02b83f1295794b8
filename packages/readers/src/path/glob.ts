import {
  boolean,
  compilePattern,
  type ContractFunction,
  EvaluationError,
  library,
  type Pattern,
  type PatternProblem,
} from "../../../core/src/contract/function.ts";
import { bad, good, type Result } from "../../../core/src/wire/mod.ts";
import { toNfc, costOfPath, oneAnswer, readPath } from "./path.ts";

const picomatch = library("picomatch", async () => (await import("picomatch")).default);

const patternMax = 256;

/** Patterns of paths. */
export const globFunctions: readonly ContractFunction[] = [
  {
    name: "glob",
    style: "method",
    parameters: ["string", "string"],
    result: boolean,
    doc:
      "Does the whole path match the pattern? `*` and `?` stay within a segment and match names that start with a dot, `**` is any " +
      "number of segments, `{a,b}` one of two. The same doubts as for `path` are errors. The pattern is a literal.",
    examples: [
      ['"src/a/b.ts".glob("src/**/*.ts")', "true"],
      ['"/srv/.env".glob("**/.env*")', "true"],
    ],
    load: picomatch.load,
    run: () => {
      throw new EvaluationError("a pattern that was not compiled");
    },
    bind: bindGlob,
  },
];

function bindGlob(glob: string): Result<Pick<ContractFunction, "run" | "cost">, PatternProblem> {
  const problem = problemOf(glob);
  if (problem !== undefined) return bad(problem);
  const asWritten = lazyPattern(glob);
  const asComposed = toNfc(glob) === glob ? asWritten : lazyPattern(toNfc(glob));
  return good({
    // A text that is not composed is matched twice.
    cost: ([text]) => costOfPath([text as string]) + (text as string).length * 2 * asWritten().costPerUnit,
    run: ([text]) => {
      const path = text as string;
      const { absolute } = readPath(path);
      // picomatch lets `*` match the empty text before the first slash, but a rule on `*/a` does not mean `/a`.
      if (absolute && !glob.startsWith("/") && !glob.startsWith("**")) return false;
      const found = matchesAll(asWritten(), path);
      if (toNfc(path) === path && asComposed === asWritten) return found;
      return oneAnswer(found, matchesAll(asComposed(), toNfc(path)));
    },
  });
}

function lazyPattern(glob: string): () => Pattern {
  let compiled: Pattern | undefined;
  return () => (compiled ??= compileGlob(glob));
}

function matchesAll(pattern: Pattern, path: string): boolean {
  const found = pattern.test(path);
  if (found === undefined) throw new EvaluationError("a path that is too long for its pattern");
  return found;
}

/**
 * Runs picomatch's expression in an engine that is linear in the text, because picomatch's own engine can hang. Its
 * look-aheads are removed: they are for texts with empty and dot segments, which `readPath` refuses. The end of the
 * text as an alternative to `**` + `/` is removed too, because a look-ahead forbids it if more must follow.
 */
function compileGlob(glob: string): Pattern {
  const options = { dot: true, fastpaths: false, nonegate: true, noextglob: true, nobracket: true, posixSlashes: true };
  const { source } = picomatch.use().makeRe(glob, options);
  const compiled = compilePattern(rewritten.reduce((text, [from, to]) => text.replaceAll(from, to), source));
  if (!compiled.ok) throw new EvaluationError(`the pattern "${glob}": ${compiled.problem.message}`);
  return compiled.value;
}

const rewritten: readonly (readonly [from: string, to: string])[] = [
  [String.raw`(?!\.{1,2}(?:\/|$))`, ""],
  [String.raw`(?!(?:^|\/)\.{1,2}(?:\/|$))`, ""],
  [String.raw`(?!\.{0,1}(?:\/|$))`, ""],
  ["(?=.)", ""],
  [String.raw`|\/|$)`, String.raw`|\/)`],
];

/** Every form outside the part of picomatch's language that all programs read alike. */
const faults: readonly (readonly [RegExp, string, string])[] = [
  [/^$|[^/]\/$|\/\/|(?:^|\/)\.{1,2}(?:\/|$)/, "it has an empty, `.` or `..` segment", "no path matches it"],
  [
    /[^\p{L}\p{M}\p{N} ._@+=#&;~,*?{}/-]/u,
    "it has a character other than letters, digits and ` ._@+=#&;~-`",
    "use `*`, `?`, `**` and `{a,b}`",
  ],
  [/\*\*[^/]|[^/]\*\*/, "`**` is not a separate segment", "write `**` as a whole segment, such as `src/**/*.ts`"],
  [/\{[^}]*(?:\{|$)|(?:^|\})[^{]*\}/, "its braces are not paired, or are nested", "write alternatives as `{a,b}`"],
  [/\{[^},]*\}|\{[^}]*\.\.[^}]*\}/, "its braces have no alternatives", "write alternatives as `{a,b}`"],
  [/\{[^}]*(?:\/|\*\*)[^}]*\}/, "its braces contain a `/`", "write two patterns with `||`"],
  [/(?:^|\})[^{]*,/, "it has a comma outside braces", "write alternatives as `{a,b}`"],
];

function problemOf(glob: string): PatternProblem | undefined {
  if (glob.length > patternMax)
    return { message: `a pattern of over ${patternMax} characters`, hint: "test parts of it" };
  const found = faults.find(([pattern]) => pattern.test(glob));
  return found === undefined ? undefined : { message: `not a pattern for paths: ${found[1]}`, hint: found[2] };
}
