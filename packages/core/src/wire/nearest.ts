/** The known name that a mistyped one most likely means, or undefined if none is near. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  const plain = skeleton(name);
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(plain.length / 3)) + 1;
  for (const candidate of known) {
    const distance = editDistance(plain, skeleton(candidate), bestDistance - 1, mayBe);
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
  const [left, right] = [foldName(a), foldName(b)];
  if (editDistance(left, right, 0, mayBe) === 0) return true;
  return isSlip(a.toLowerCase().split(/[^\p{L}\p{N}]+/u), b.toLowerCase().split(/[^\p{L}\p{N}]+/u));
}

function foldName(name: string): string {
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
  return `${a}s` !== b && `${b}s` !== a && editDistance(a, b, 1, mayBe) === 1;
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

/** A letter of a script that imitates Latin equals any letter. */
function mayBe(one: string | undefined, other: string | undefined): boolean {
  return one === other || (one !== undefined && lookAlikeScripts.test(one));
}

/**
 * The number of characters to add, remove, replace, or swap with a neighbour (optimal string alignment); above `most` if
 * it is larger. It only computes the cells within `most` of the diagonal, and stops after a row in which none is within
 * `most`. Three rows are reused, so the cells next to a row's range are reset.
 */
export function editDistance(
  a: ArrayLike<string>,
  b: ArrayLike<string>,
  most: number,
  isSame: (one: string | undefined, other: string | undefined) => boolean = (one, other) => one === other,
): number {
  const far = most + 1;
  if (Math.abs(a.length - b.length) > most) return far;
  let before: number[] = [];
  let last = Array.from({ length: b.length + 2 }, (_, at) => Math.min(at, far));
  let next: number[] = [];
  for (let row = 1; row <= a.length; row += 1) {
    const [from, to] = [Math.max(1, row - most), Math.min(b.length, row + most)];
    next[from - 1] = from === 1 ? Math.min(row, far) : far;
    let least = next[from - 1] ?? far;
    for (let column = from; column <= to; column += 1) {
      const changed = isSame(a[row - 1], b[column - 1]) ? 0 : 1;
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      const cell = Math.min(
        (last[column] ?? far) + 1,
        (next[column - 1] ?? far) + 1,
        (last[column - 1] ?? far) + changed,
        swapped ? (before[column - 2] ?? far) + 1 : far,
      );
      next[column] = cell;
      least = Math.min(least, cell);
    }
    next[to + 1] = far;
    if (least > most) return far;
    [before, last, next] = [last, next, before];
  }
  return last[b.length] ?? far;
}
