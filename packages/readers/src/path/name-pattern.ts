/**
 * Patterns of file names, as a shell reads them: `*`, `?` and `[...]` within a segment, `\` before a plain character, and `**`
 * as a segment for any number of segments. All files that a word may name are one pattern.
 */

/** A character of a segment: one character, any of some, or any number of any. */
type PatternToken = { readonly one: string } | { readonly some: string; readonly not: boolean } | "any" | "many";

/** The pattern that matches exactly this text. */
export function escapePattern(text: string): string {
  return text.replace(/[\\*?[\]]/g, "\\$&");
}

/** A segment of a pattern, read once. */
export interface Segment {
  readonly text: string;
  readonly tokens: readonly PatternToken[];
  /** The only text that it matches. */
  readonly plain: string | undefined;
}

export function readSegment(text: string): Segment {
  const tokens = tokensOf(text);
  return { text, tokens, plain: tokens.every(isLetter) ? tokens.map(({ one }) => one).join("") : undefined };
}

/** The text, if the pattern matches one text only. */
export function plainText(pattern: string): string | undefined {
  return readSegment(pattern).plain;
}

/** The segments of a pattern. A slash ends one, also in brackets, as in a shell. */
export function segmentsOf(pattern: string): readonly string[] {
  return pattern.split("/");
}

/**
 * May a name match both segments? A `*`, `?` or `[...]` at the start of the left one matches no leading dot. If the right one
 * is a pattern too, they must share a letter, and more than the ending: `*.log` does not stand for `id_rsa*`, and `x*.json` not
 * for `client_secret*.json`.
 */
export function segmentsMeet(left: Segment, right: Segment): boolean {
  if (left.plain !== undefined && right.plain !== undefined) return left.plain === right.plain;
  const [ours, theirs] = [left.tokens, right.tokens];
  const [first] = ours;
  const [other] = theirs;
  const isDot = other !== undefined && isLetter(other) && other.one === ".";
  if (isDot && (first === undefined || !isLetter(first))) return false;
  if (differ(first, other) || differ(ours.at(-1), theirs.at(-1))) return false;
  return meet(ours, theirs, theirs.includes("many") && ours.includes("many") ? beforeEnding(theirs) : undefined);
}

/** How many tokens are before the ending. If no letter is before it, all tokens count. */
function beforeEnding(tokens: readonly PatternToken[]): number {
  const at = tokens.findLastIndex((token) => isLetter(token) && token.one === ".");
  return tokens.slice(0, Math.max(at, 0)).some(isLetter) ? at : tokens.length;
}

/** Most names already differ in the first or the last letter. */
function differ(left: PatternToken | undefined, right: PatternToken | undefined): boolean {
  return left !== undefined && right !== undefined && isLetter(left) && isLetter(right) && left.one !== right.one;
}

function isLetter(token: PatternToken): token is { readonly one: string } {
  return typeof token === "object" && "one" in token;
}

/** Does the segment say nothing about the name: `*`, `[a-z]*`, `a*`? Then its folder counts as read with everything below. */
export function isAnyName(segment: string): boolean {
  const tokens = tokensOf(segment);
  const letters = tokens.filter(isLetter);
  const most = tokens.includes("many") ? 1 : 0;
  return tokens.length > 0 && letters.length <= most && letters.every(({ one }) => one !== ".");
}

function tokensMeet(left: PatternToken, right: PatternToken): boolean {
  if (typeof left === "string" || typeof right === "string") return true;
  if ("one" in left) return accepts(right, left.one);
  if ("one" in right) return accepts(left, right.one);
  return left.not || right.not || Array.from(left.some).some((character) => accepts(right, character));
}

function accepts(token: Exclude<PatternToken, string>, character: string): boolean {
  return "one" in token ? token.one === character : token.some.includes(character) !== token.not;
}

/**
 * Is there a text that both match? Each pair of positions is visited once.
 *
 * @param counted if it is given, they must share a letter that is among so many first tokens of the right one
 */
function meet(left: readonly PatternToken[], right: readonly PatternToken[], counted?: number): boolean {
  // A position is twice its number, and one more if a letter is shared.
  let row = reachSkipping(right, new Set([counted === undefined ? 1 : 0]));
  for (const token of left) {
    const next = new Set<number>();
    if (token === "many")
      for (const isShared of [0, 1]) {
        const first = Math.min(...[...row].filter((at) => at % 2 === isShared));
        for (let at = first; at <= 2 * right.length + 1; at += 2) next.add(at);
      }
    for (const at of row) {
      const position = at >> 1;
      const other = right[position];
      if (other === undefined) continue;
      const shares = counted !== undefined && position < counted && isLetter(token) && isLetter(other);
      if (other === "many") next.add(at);
      else if (token !== "many" && tokensMeet(token, other)) next.add(shares ? (at | 1) + 2 : at + 2);
    }
    row = reachSkipping(right, next);
    if (row.size === 0) return false;
  }
  return row.has(2 * right.length + 1);
}

/** These positions, and those after a `*` that stands for nothing. */
function reachSkipping(tokens: readonly PatternToken[], from: ReadonlySet<number>): Set<number> {
  const reached = new Set(from);
  for (const at of reached) if (tokens[at >> 1] === "many") reached.add(at + 2);
  return reached;
}

/** Endings of code and of what compilers write: nobody calls a secret `.env.ts`. */
const sources = new Set(
  (
    "ts tsx mts cts js jsx mjs cjs vue svelte py pyi go rs java kt scala rb php c h cc cpp hpp cs swift m css scss less html md " +
    "mdx rst sql proto graphql pyc pyo class o"
  ).split(" "),
);

/** Does the pattern only match names of code, such as `*.ts`? */
export function isSourcePattern(pattern: string): boolean {
  const [, ending = ""] = /^[^[\]{}/\\]*\.(\w+)$/.exec(pattern) ?? [];
  return sources.has(ending);
}

/** A glob of git, or of a search tool, whose `*` also matches slashes and leading dots; but nobody calls a secret `.env.ts`. */
export function patternOfGlob(glob: string): string {
  if (!/[*?[\\]/.test(glob)) return escapePattern(glob);
  const [, folder = "", last = ""] = /^((?:[^*?[\\]*\/)?(?:\*\*\/)?)([^/]*)$/.exec(glob) ?? [];
  const start = folder.replace(/\*\*\/$/, "");
  if (/^\*+$/.test(last)) return escapePattern(start === "" ? "." : start.slice(0, -1));
  if (last !== "" && isSourcePattern(last)) return `${escapePattern(start)}**/${last}`;
  return glob.replace(/\\[^]|\*+|\?|\[[^\]]*\]?/g, "**");
}

/** The globs for which braces stand: `*.{ts,tsx}` is two. Undefined if there are too many. */
export function expandBraces(glob: string): readonly string[] | undefined {
  let open = [glob];
  const done: string[] = [];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [from, to] = innerBraces(next) ?? [];
    if (from === undefined) done.push(next);
    else {
      const [before, after] = [next.slice(0, from), next.slice((to ?? 0) + 1)];
      const parts = next.slice(from + 1, to).split(",");
      if (open.length + done.length + parts.length > bracesMax) return undefined;
      open = [...open, ...parts.map((part) => before + part + after)];
    }
  }
  return done;
}

/** The positions of the first braces with a comma and without braces between them. */
function innerBraces(glob: string): readonly [from: number, to: number] | undefined {
  let from = -1;
  for (let at = 0; at < glob.length; at += 1) {
    const character = glob.charAt(at);
    if (character === "{") from = at;
    else if (character === "}" && from >= 0) {
      if (glob.slice(from, at).includes(",")) return [from, at];
      from = -1;
    }
  }
  return undefined;
}

const bracesMax = 64;

/** Is it the ending of code: `ts`? */
export function isSourceEnding(ending: string): boolean {
  return sources.has(ending);
}

/** Does `*` cross slashes in the pattern? git's own patterns are written with `**` inside a segment. */
export function isCrossing(pattern: string): boolean {
  return segmentsOf(pattern).some((segment) => segment !== "**" && segment.includes("**"));
}

/** May a path of such a pattern be the other one? */
export function crossesMeet(pattern: Segment, path: Segment): boolean {
  return meet(pattern.tokens, path.tokens);
}

/** The tokens of a segment. A bracket that is not closed is a plain character. */
function tokensOf(segment: string): readonly PatternToken[] {
  const ends = segment.includes("[") ? lastEnds(segment) : noEnds;
  const tokens: PatternToken[] = [];
  for (let at = 0; at < segment.length; at += 1) {
    const character = segment.charAt(at);
    if (character === "\\" && at + 1 < segment.length) tokens.push({ one: segment.charAt((at += 1)) });
    else if (character === "*") tokens.push("many");
    else if (character === "?") tokens.push("any");
    else if (character === "[") {
      const end = endOfBracket(segment, at, ends);
      if (end === undefined) tokens.push({ one: character });
      else {
        tokens.push(readBracket(segment.slice(at + 1, end)));
        at = end;
      }
    } else tokens.push({ one: character });
  }
  return tokens;
}

const noEnds: ReadonlyMap<string, number> = new Map();

/** The last ends of brackets and of classes in a segment, so that nobody looks for one twice. */
function lastEnds(segment: string): ReadonlyMap<string, number> {
  return new Map(["", ":", ".", "="].map((kind) => [kind, segment.lastIndexOf(`${kind}]`)]));
}

/** The position of the `]` that ends a bracket: not the first member, not escaped, not in a class such as `[:alpha:]`. */
function endOfBracket(segment: string, from: number, ends: ReadonlyMap<string, number>): number | undefined {
  if ((ends.get("") ?? -1) <= from) return undefined;
  let at = /[!^]/.test(segment.charAt(from + 1)) ? from + 2 : from + 1;
  for (const first = at; at < segment.length; at += 1) {
    const sign = segment.charAt(at);
    const kind = segment.charAt(at + 1);
    if (sign === "]" && at > first) return at;
    if (sign === "[" && (ends.get(kind) ?? -1) > at + 1) at = segment.indexOf(`${kind}]`, at + 2) + 1;
    else if (sign === "\\") at += 1;
  }
  return undefined;
}

/** A range or a class depends on the locale, and dash takes a `^` as a member: all characters count. */
function readBracket(members: string): PatternToken {
  const isNegated = members.startsWith("!");
  const plain = (isNegated ? members.slice(1) : members).replace(/\\([^])/g, "$1");
  const isAny = members.startsWith("^") || /[^]-[^]|\[[:.=]/.test(members);
  return isAny ? "any" : { some: plain, not: isNegated };
}
