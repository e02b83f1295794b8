/** A member of a call: its path from `input` or `platform`, such as `input.customer.email`. */
export type MemberName = `input.${string}` | `platform.${string}`;

/** How a member's name is written, as part of a pattern. */
export const memberPattern = "(?:input|platform)(?:\\.[A-Za-z_][A-Za-z0-9_]*)+";

/** No contract lists longer names. */
export const memberCharactersMax = 128;

const memberName = new RegExp(`^${memberPattern}$`);

export function isMemberName(name: string): name is MemberName {
  return memberName.test(name);
}

/** A piece of a text, in UTF-16 units; `to` is exclusive. */
interface MemberSpan {
  readonly from: number;
  readonly to: number;
}

/**
 * Finds members of an object in its text without parsing the text: one pass, in linear time, at any depth. Names are
 * compared after decoding, so `"na\u006de"` is `name`. A path does not lead into an array.
 *
 * @param text a JSON object without white space outside strings that was read strictly before, as `parseCheckRequest`
 *   returns it; nothing is found in another text, such as `null`
 * @param paths for each member the names that lead to it, at least one: `["customer", "email"]`
 * @returns for each path, in order, the span of the member's value in the text; undefined if there is no such member,
 *   or if a name before the last leads to something that is not an object
 */
export function findMembers(text: string, paths: readonly (readonly string[])[]): readonly (MemberSpan | undefined)[] {
  const found: (MemberSpan | undefined)[] = paths.map(() => undefined);
  if (paths.length > 0 && text.charCodeAt(0) === OPEN) lookInside({ text, found }, 0, makePathTree(paths));
  return found;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const LIST = 0x5b;
const BACKSLASH = 0x5c;
const LIST_END = 0x5d;
const OPEN = 0x7b;
const CLOSE = 0x7d;

/** The paths to find below a member: the indexes of the paths that end at it, and the paths that go on inside it. */
interface PathTree {
  readonly ends: number[];
  readonly inside: Map<string, PathTree>;
}

function makePathTree(paths: readonly (readonly string[])[]): PathTree {
  const root: PathTree = { ends: [], inside: new Map() };
  for (const [index, path] of paths.entries()) {
    let at = root;
    for (const name of path) {
      const next = at.inside.get(name) ?? { ends: [], inside: new Map() };
      at.inside.set(name, next);
      at = next;
    }
    at.ends.push(index);
  }
  return root;
}

interface MemberSearch {
  readonly text: string;
  readonly found: (MemberSpan | undefined)[];
}

/** Searches the object that starts at `start`, as deep as paths lead; returns its end. */
function lookInside(search: MemberSearch, start: number, { inside }: PathTree): number {
  const { text, found } = search;
  let at = start + 1;
  while (at < text.length && text.charCodeAt(at) !== CLOSE) {
    const from = stringEnd(text, at) + 1;
    const member = inside.get(unquoteMemberName(text.slice(at, from - 1)));
    const goesIn = member !== undefined && member.inside.size > 0 && text.charCodeAt(from) === OPEN;
    const to = goesIn ? lookInside(search, from, member) : valueEnd(text, from);
    for (const index of member?.ends ?? []) found[index] = { from, to };
    at = text.charCodeAt(to) === COMMA ? to + 1 : to;
  }
  return at + 1;
}

function unquoteMemberName(quoted: string): string {
  return quoted.includes("\\") ? (JSON.parse(quoted) as string) : quoted.slice(1, -1);
}

/** The end of the value that starts at `from`. It only counts brackets. */
function valueEnd(text: string, from: number): number {
  let at = from;
  let open = 0;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (open === 0 && (code === COMMA || code === CLOSE)) return at;
    if (code === QUOTE) at = stringEnd(text, at);
    else {
      if (code === OPEN || code === LIST) open += 1;
      else if (code === CLOSE || code === LIST_END) open -= 1;
      at += 1;
    }
  }
  return at;
}

/** The end of the string whose quote is at `from`. */
function stringEnd(text: string, from: number): number {
  let at = from + 1;
  while (at < text.length && text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1;
  return at + 1;
}
