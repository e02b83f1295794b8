/**
 * The path of a member, such as `input.opts.fast`. A name that is not a word is in quotes, as in `input."x-to"`, so that
 * no two members share a path.
 */
export function memberBelow(path: string, name: string): string {
  return `${path}.${/^\w+$/.test(name) ? name : JSON.stringify(name)}`;
}

const quoted = String.raw`"(?:[^"\\]|\\.)*"`;
/** One step: a name, or a name in quotes, also as an expression has it: `["x-to"]`. */
const step = String.raw`\.(?:${quoted}|[^.[\]"]+)|\[${quoted}\]`;
const pathPattern = new RegExp(`^(\\w+)((?:${step})*)$`);
const stepPattern = new RegExp(step, "g");

/**
 * The names of a path, with its root first.
 *
 * @returns undefined if the text is not a path
 */
export function pathNames(text: string): readonly [root: string, ...names: string[]] | undefined {
  const [, root, steps = ""] = pathPattern.exec(text) ?? [];
  if (root === undefined) return undefined;
  try {
    return [root, ...(steps.match(stepPattern) ?? []).map(nameIn)];
  } catch {
    return undefined; // the text in quotes is not a JSON string
  }
}

function nameIn(written: string): string {
  const name = written.startsWith("[") ? written.slice(1, -1) : written.slice(1);
  return name.startsWith('"') ? (JSON.parse(name) as string) : name;
}

/** The path in the spelling of `memberBelow`; undefined if the text is not a path. */
export function readPath(text: string): string | undefined {
  const [root, ...names] = pathNames(text) ?? [];
  return root === undefined ? undefined : names.reduce(memberBelow, root);
}

/** Do both name the same member, or a member and an object that contains it? */
export function overlaps(one: string, other: string): boolean {
  return isPartOf(one, other) || isPartOf(other, one);
}

/** Is it the member, or a member of it? */
export function isPartOf(path: string, member: string): boolean {
  return path === member || path.startsWith(`${member}.`);
}

/** Is it one of these members, or a member of one of them? */
export function isAmong(path: string, members: readonly string[]): boolean {
  return members.some((member) => isPartOf(path, member));
}
