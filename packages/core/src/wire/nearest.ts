/** The known name that a mistyped one most likely means, or undefined if none is near. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  const plain = skeleton(name);
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(plain.length / 3)) + 1;
  for (const candidate of known) {
    const distance = editDistance(plain, skeleton(candidate), bestDistance);
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** The hint for an unknown name: the name that it most likely means, between two marks. If none is near, the other hint. */
export function didYouMean<Other extends string | undefined>(
  name: string,
  known: Iterable<string>,
  other: Other,
  mark = "`",
): string | Other {
  const near = nearest(name, known);
  return near === undefined ? other : `did you mean ${mark}${near}${mark}?`;
}

/**
 * Can a reader confuse two names? They may differ in case, in separators, in letters of other scripts that imitate
 * Latin ones, in 0 and o, or in 1 and l. Or one letter of a long word is replaced, missing, or swapped with its
 * neighbour. For a name and itself: does it mix letters of two such scripts?
 */
export function looksLike(a: string, b: string): boolean {
  if (a === b) return lookAlikeScripts.test(a) && /[A-Za-z]/.test(a);
  const [left, right] = [folded(a), folded(b)];
  if (editDistance(left, right, 1) === 0) return true;
  return isSlip(a.toLowerCase().split(/[^\p{L}\p{N}]+/u), b.toLowerCase().split(/[^\p{L}\p{N}]+/u));
}

function folded(name: string): string {
  return skeleton(name).replaceAll("0", "o").replace(/[1|]/g, "l");
}

/** Shorter words differ by one letter on purpose: get and set. */
const longWord = 5;

/** Do two names differ in one long word, by one slip that is neither a plural nor a number? */
function isSlip(left: readonly string[], right: readonly string[]): boolean {
  if (left.length !== right.length) return false;
  const [only, more] = left.flatMap((word, at) => (word === right[at] ? [] : [[word, right[at] ?? ""] as const]));
  if (only === undefined || more !== undefined) return false;
  const [a, b] = only;
  if (Math.min(a.length, b.length) < longWord || /\d/.test(a + b)) return false;
  return `${a}s` !== b && `${b}s` !== a && editDistance(a, b, 2) === 1;
}

/** For comparison only: removes case, compatibility forms, separators, marks and invisible characters. */
function skeleton(name: string): string {
  return name
    .slice(0, 256)
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[\p{M}\p{C}\p{Z}_-]/gu, "");
}

const lookAlikeScripts =
  /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}\p{Script=Coptic}]/u;

/**
 * The number of letters to add, remove, replace, or swap with a neighbour (optimal string alignment), at most `limit`.
 * A letter of a script that imitates Latin equals any letter.
 */
function editDistance(left: string, right: string, limit: number): number {
  if (Math.abs(left.length - right.length) >= limit) return limit;
  let above = Array.from({ length: right.length + 1 }, (_, index) => index);
  let higher = above;
  for (let row = 1; row <= left.length; row += 1) {
    const current = [row];
    const imitates = lookAlikeScripts.test(left.charAt(row - 1));
    for (let column = 1; column <= right.length; column += 1) {
      const same = imitates || left[row - 1] === right[column - 1];
      const swap = (above[column - 1] ?? 0) + (same ? 0 : 1);
      const crossed =
        row > 1 && column > 1 && left[row - 1] === right[column - 2] && left[row - 2] === right[column - 1];
      const places = crossed ? (higher[column - 2] ?? 0) + 1 : limit;
      current.push(Math.min(swap, places, (above[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    if (Math.min(...current, ...above) >= limit) return limit;
    [higher, above] = [above, current];
  }
  return above[right.length] ?? limit;
}
