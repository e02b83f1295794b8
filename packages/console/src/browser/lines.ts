import { diffLines as comparedLines } from "diff";

/** A line of a text diff. */
export interface DiffLine {
  readonly kind: "same" | "added" | "removed";
  readonly text: string;
  /** The number of the line in the newer text; of a removed line in the older one. */
  readonly number: number;
}

const compareMs = 1000;

/** Compares two texts line by line. Texts that differ too much are shown as wholly replaced. */
export function diffLines(before: string, now: string): readonly DiffLine[] {
  const parts = comparedLines(before, now, { timeout: compareMs }) ?? [
    { value: before, added: false, removed: true },
    { value: now, added: true, removed: false },
  ];
  let [old, young] = [0, 0];
  return parts.flatMap(({ value, added, removed }) =>
    value
      .replace(/\n$/, "")
      .split("\n")
      .map((text): DiffLine => {
        if (!added) old += 1;
        if (!removed) young += 1;
        return { kind: added ? "added" : removed ? "removed" : "same", text, number: removed ? old : young };
      }),
  );
}
