/** A line of a text diff. */
export interface DiffLine {
  readonly kind: "same" | "added" | "removed";
  readonly text: string;
  /** The number of the line in the newer text; of a removed line in the older one. */
  readonly number: number;
}

const cellsMax = 4_000_000;

/** Compares two texts line by line: a longest common subsequence, between the lines that both ends share. */
export function diffLines(before: string, now: string): readonly DiffLine[] {
  const [old, young] = [before.split("\n"), now.split("\n")];
  let start = 0;
  while (start < old.length && start < young.length && old[start] === young[start]) start += 1;
  let end = 0;
  while (end < old.length - start && end < young.length - start && old.at(-1 - end) === young.at(-1 - end)) end += 1;
  const [a, b] = [old.slice(start, old.length - end), young.slice(start, young.length - end)];
  const same = (from: number, to: number): DiffLine[] =>
    young.slice(from, to).map((text, at) => ({ kind: "same", text, number: from + at + 1 }));
  const middle = a.length * b.length > cellsMax ? replaced(a, b, start) : compared(a, b, start);
  return [...same(0, start), ...middle, ...same(young.length - end, young.length)];
}

function replaced(a: readonly string[], b: readonly string[], start: number): DiffLine[] {
  return [...a.map((text, at) => removed(text, start + at)), ...b.map((text, at) => added(text, start + at))];
}

function compared(a: readonly string[], b: readonly string[], start: number): DiffLine[] {
  const width = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * width);
  const length = (i: number, j: number): number => lengths[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i -= 1)
    for (let j = b.length - 1; j >= 0; j -= 1)
      lengths[i * width + j] = a[i] === b[j] ? length(i + 1, j + 1) + 1 : Math.max(length(i + 1, j), length(i, j + 1));
  const found: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      found.push({ kind: "same", text: b[j] ?? "", number: start + j + 1 });
      i += 1;
      j += 1;
    } else if (j >= b.length || (i < a.length && length(i + 1, j) >= length(i, j + 1))) {
      found.push(removed(a[i] ?? "", start + i));
      i += 1;
    } else {
      found.push(added(b[j] ?? "", start + j));
      j += 1;
    }
  }
  return found;
}

function removed(text: string, at: number): DiffLine {
  return { kind: "removed", text, number: at + 1 };
}

function added(text: string, at: number): DiffLine {
  return { kind: "added", text, number: at + 1 };
}
