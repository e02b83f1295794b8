/** The known name that a mistyped one most likely means, or undefined when none is near. */
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

/** Folded for comparison only: case, compatibility forms, separators, marks and invisible characters are dropped. */
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
 * Letters to add, drop, replace, or change places with a neighbour (optimal string alignment), given up at `limit`;
 * a letter of a script that imitates Latin stands for any letter.
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
