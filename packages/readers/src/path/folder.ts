import {
  crossesMeet,
  isAnyName,
  isCrossing,
  isSourcePattern,
  plainText,
  segmentsMeet,
  segmentsOf,
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

/**
 * May the path name a file of the list, or one below a folder of it? A name without a slash at its start counts in every
 * folder. A name after `!` is an exception for a path that is certain, but not below a folder of the list. A `*` after the last
 * letter of a name stands for no ending of code: `id_rsa*` is not `*.ts`. Letters are compared without case, as some disks do.
 */
export function mayName(path: string, names: readonly string[]): boolean {
  const segments = segmentsOf(path.toLowerCase());
  const isCertain = plainText(path) !== undefined;
  const lower = names.map((name) => name.toLowerCase());
  const isExcepted = (name: string): boolean => namesSegment(segments, segmentsOf(name), segments.length - 1);
  // An exception is about a file, and its folder may have a name of the list.
  if (isCertain && lower.some((name) => name.startsWith("!") && isExcepted(name.slice(1))))
    return segments.length > 1 && mayName(segmentsOf(path).slice(0, -1).join("/"), names);
  const isNamed = isCrossing(path)
    ? (name: string) => crossesMeet(path.toLowerCase(), name)
    : (name: string) => namesSegment(segments, segmentsOf(name));
  return lower.some((name) => !name.startsWith("!") && isNamed(name));
}

/**
 * Does the last segment of the name meet a segment of the path, and those before it the segments before? `**` in the path
 * stands for folders that nobody named, so it may be the first segments of the name, but not the last. Neither may `*`.
 */
function namesSegment(path: readonly string[], name: readonly string[], from = 0): boolean {
  const isRooted = name[0] === "" || name[0] === "~";
  const before = (at: number, left: number): boolean => {
    if (left < 0) return !isRooted || at < 0;
    const segment = path[at];
    if (segment === undefined) return false;
    if (segment === "**") return before(at - 1, left) || before(at, left - 1);
    return segmentsMeet(segment, namesFor(segment, name[left] ?? "")) && before(at - 1, left - 1);
  };
  const isSaid = (segment: string, at: number): boolean =>
    segment !== "**" && !(isAnyName(segment) && (name.length === 1 || at === path.length - 1));
  return path.some((segment, at) => at >= from && isSaid(segment, at) && before(at, name.length - 1));
}

function namesFor(segment: string, name: string): string {
  return /\w\*$/.test(name) && isSourcePattern(segment) && plainText(segment) === undefined ? name.slice(0, -1) : name;
}

/** Is each file of the pattern certainly in the folder, or the folder itself? `.` is the folder in which the text starts. */
export function isWithin(path: string, folder: string): boolean {
  const outer = segmentsOf(folder.replace(/(?<=.)\/$/, "")).filter((segment) => segment !== ".");
  const inner = segmentsOf(path).filter((segment) => segment !== ".");
  if (folder === "/" ? !path.startsWith("/") : !outer.every((segment, at) => plainText(inner[at] ?? "") === segment))
    return false;
  if (outer.length === 0 && /^(?:\/|~|\*\*(?:\/|$))/.test(path)) return false;
  return !inner.slice(outer.length).some((segment) => segment !== "**" && mayGoUp(segment));
}

/** A pattern such as `.*` may match `..` in some shells. */
export function mayGoUp(segment: string): boolean {
  return segmentsMeet(segment, "..");
}
