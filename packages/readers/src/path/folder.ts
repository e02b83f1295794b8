import {
  crossesMeet,
  isAnyName,
  isCrossing,
  isSourcePattern,
  plainText,
  readSegment,
  segmentsMeet,
  segmentsOf,
  type Segment,
} from "./name-pattern.ts";

/** A folder that the gate does not know. Relative names in it are compared by every suffix. */
export const unknownFolder = "**";

/**
 * The path of a word in a folder, as a pattern without `.` and `..`. A path starts with `/`, with `~` for the home folder, or
 * with `**` if its folder is unknown; any other path is relative to the folder in which the text starts.
 *
 * @param word a pattern; `~` and `~/...` are the home folder
 */
export function joinPath(folder: string, word: string): string {
  const isWhole = word.startsWith("/") || word === "~" || word.startsWith("~/");
  const base = isWhole ? [] : segmentsOf(folder).filter((segment) => segment !== "." && segment !== "");
  const isRooted = word.startsWith("/") || (!isWhole && folder.startsWith("/"));
  const path = [...base];
  for (const segment of segmentsOf(word)) {
    if (segment === "" || segment === ".") continue;
    if (segment === "..") goUp(path, isRooted);
    else path.push(segment);
  }
  return (isRooted ? "/" : "") + (path.length === 0 && !isRooted ? "." : path.join("/"));
}

function goUp(path: string[], isRooted: boolean): void {
  const last = path.at(-1);
  if (last === undefined ? isRooted : last === "**") return;
  if (last === undefined || last === ".." || last === "~") path.push("..");
  else path.pop();
}

/** Names of files and folders, read once. */
export interface NameList {
  readonly names: readonly KnownName[];
  readonly exceptions: readonly KnownName[];
}

interface KnownName {
  readonly segments: readonly NameSegment[];
  /** The name in any folder, as one pattern. */
  readonly anywhere: Segment;
  readonly isRooted: boolean;
}

interface NameSegment extends Segment {
  /** The segment for patterns of code: a `*` after its last letter stands for no ending of code, so `id_rsa*` is not `*.ts`. */
  readonly forCode: Segment;
}

/** Reads names. One after `!` is an exception. Letters are compared without case, as some disks do. */
export function readNames(names: readonly string[]): NameList {
  const lower = names.map((name) => name.toLowerCase());
  return {
    names: lower.filter((name) => !name.startsWith("!")).map(readName),
    exceptions: lower.filter((name) => name.startsWith("!")).map((name) => readName(name.slice(1))),
  };
}

function readName(name: string): KnownName {
  const segments = segmentsOf(name).map((text) => {
    const segment = readSegment(text);
    return { ...segment, forCode: /\w\*$/.test(text) ? readSegment(text.slice(0, -1)) : segment };
  });
  const anywhere = readSegment(/^[/~]/.test(name) ? name : `*/${name}`);
  return { segments, anywhere, isRooted: /^(?:\/|~(?:\/|$))/.test(name) };
}

/**
 * May the path name a file of the list, or one below a folder of it? A name without a slash at its start counts in every
 * folder. An exception counts for a path that is certain, but not below a folder of the list.
 */
export function mayName(path: string, list: NameList): boolean {
  const lower = path.toLowerCase();
  const segments = segmentsOf(lower).map(readPathSegment);
  const isExcepted = list.exceptions.some((name) => namesSegment(segments, name, segments.length - 1));
  // An exception is about a file, and its folder may have a name of the list.
  if (isExcepted && plainText(path) !== undefined)
    return segments.length > 1 && mayName(segmentsOf(path).slice(0, -1).join("/"), list);
  if (!isCrossing(path)) return list.names.some((name) => namesSegment(segments, name));
  const whole = readSegment(lower);
  return list.names.some(({ anywhere }) => crossesMeet(whole, anywhere));
}

interface PathSegment extends Segment {
  readonly isAny: boolean;
  readonly isCode: boolean;
}

function readPathSegment(text: string): PathSegment {
  const segment = readSegment(text);
  const isPattern = segment.plain === undefined;
  return { ...segment, isAny: isAnyName(text), isCode: isPattern && isSourcePattern(text) };
}

/**
 * Does the last segment of the name meet a segment of the path, and those before it the segments before? `**` in the path
 * stands for folders that nobody named, so it may be the first segments of the name, but not the last. Neither may `*`.
 */
function namesSegment(path: readonly PathSegment[], { segments: name, isRooted }: KnownName, from = 0): boolean {
  const before = (at: number, left: number): boolean => {
    if (left < 0) return !isRooted || at < 0;
    const [segment, other] = [path[at], name[left]];
    if (segment === undefined || other === undefined) return false;
    if (segment.text === "**") return before(at - 1, left) || before(at, left - 1);
    return segmentsMeet(segment, segment.isCode ? other.forCode : other) && before(at - 1, left - 1);
  };
  const isSaid = ({ text, isAny }: PathSegment, at: number): boolean =>
    text !== "**" && !(isAny && (name.length === 1 || at === path.length - 1));
  return path.some((segment, at) => at >= from && isSaid(segment, at) && before(at, name.length - 1));
}

/** Is each file of the pattern certainly in the folder, or the folder itself? `.` is the folder in which the text starts. */
export function isWithinFolder(path: string, folder: string): boolean {
  const outer = segmentsOf(folder.replace(/(?<=.)\/$/, "")).filter((segment) => segment !== ".");
  const inner = segmentsOf(path).filter((segment) => segment !== ".");
  if (folder === "/" ? !path.startsWith("/") : !outer.every((segment, at) => plainText(inner[at] ?? "") === segment))
    return false;
  if (outer.length === 0 && /^(?:\/|~|\*\*(?:\/|$))/.test(path)) return false;
  return !inner.slice(outer.length).some((segment) => segment !== "**" && mayGoUp(segment));
}

const parent = readSegment("..");

/** A pattern such as `.*` may match `..` in some shells. */
export function mayGoUp(segment: string): boolean {
  return segmentsMeet(readSegment(segment), parent);
}
