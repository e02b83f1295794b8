/** The most pairs of lines to compare. Longer texts are shown as wholly replaced. */
const pairsMax = 4_000_000;

/**
 * Shows which lines differ, with three lines around each change. Settings are short, so the longest common subsequence is
 * quick enough.
 *
 * @returns lines that start with a blank, `-` or `+`
 */
export function lineDifference(before: string, after: string): string {
  const marked = markedLines(splitLines(before), splitLines(after));
  const isNear = (at: number): boolean =>
    marked.slice(Math.max(0, at - 3), at + 4).some((line) => !line.startsWith(" "));
  return marked.flatMap((line, at) => (isNear(at) ? [line] : isNear(at - 1) ? ["  ..."] : [])).join("\n");
}

function splitLines(text: string): readonly string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}

function markedLines(before: readonly string[], after: readonly string[]): readonly string[] {
  if (before.length * after.length > pairsMax)
    return [...before.map((line) => `- ${line}`), ...after.map((line) => `+ ${line}`)];
  const common = commonLengths(before, after);
  const length = (one: number, other: number): number => common[one]?.[other] ?? 0;
  const lines: string[] = [];
  let [one, other] = [0, 0];
  while (one < before.length || other < after.length) {
    if (one < before.length && before[one] === after[other]) {
      lines.push(`  ${before[one]}`);
      one += 1;
      other += 1;
    } else if (other === after.length || (one < before.length && length(one + 1, other) >= length(one, other + 1))) {
      lines.push(`- ${before[one]}`);
      one += 1;
    } else {
      lines.push(`+ ${after[other]}`);
      other += 1;
    }
  }
  return lines;
}

/** For each pair of line numbers, the length of the longest common subsequence of the rest of both texts. */
function commonLengths(before: readonly string[], after: readonly string[]): readonly (readonly number[])[] {
  const rows: number[][] = [];
  for (let one = before.length; one >= 0; one -= 1) {
    const row: number[] = [];
    for (let other = after.length; other >= 0; other -= 1) {
      if (one === before.length || other === after.length) row[other] = 0;
      else if (before[one] === after[other]) row[other] = 1 + (rows[one + 1]?.[other + 1] ?? 0);
      else row[other] = Math.max(rows[one + 1]?.[other] ?? 0, row[other + 1] ?? 0);
    }
    rows[one] = row;
  }
  return rows;
}
