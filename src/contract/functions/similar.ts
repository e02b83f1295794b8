import { EvaluationError } from "../rational.ts";
import { boolean } from "../type.ts";
import type { Value } from "../value.ts";
import type { ContractFunction } from "./function.ts";
import { skeleton } from "./look-alikes.ts";

const lengthMax = 256;

/** What is nearly, but not, what is listed. */
export const similarFunctions: readonly ContractFunction[] = [
  {
    name: "similar",
    style: "function",
    parameters: ["string", "list"],
    result: boolean,
    doc:
      "Is the text none of the listed ones, but like one: by look-alike letters, case, invisible characters, or by one slip of " +
      "the pen (two from eight characters on, none below four)? For names; numbers are alike too easily.",
    examples: [
      ['similar("paypa1.com", ["paypal.com"])', "true"],
      ['similar("paypal.com", ["paypal.com"])', "false"],
    ],
    cost: ([text, list]) => costOfSimilar(text as string, list as readonly Value[]),
    run: ([text, list]) => isSimilar(text as string, list as readonly Value[]),
  },
];

function isSimilar(text: string, list: readonly Value[]): boolean {
  if (text.length > lengthMax) throw new EvaluationError(`a text of over ${lengthMax} characters, too long to compare`);
  if (list.includes(text)) return false;
  const seen = Array.from(skeleton(text));
  return list.some((item) => {
    if (typeof item !== "string") throw new EvaluationError("a list that holds something other than texts");
    return item.length <= lengthMax * 2 && isNear(seen, Array.from(skeleton(item)));
  });
}

/** A step is about a third of a microsecond: folding takes as long for each two units, comparing for each sixteen. */
function costOfSimilar(text: string, list: readonly Value[]): number {
  const own = Math.min(text.length, lengthMax);
  return list.reduce<number>((steps, item) => {
    const units = typeof item === "string" ? Math.min(item.length, lengthMax * 2) : 0;
    return steps + 2 + (units >> 1) + (Math.abs(own - units) < 16 ? own >> 2 : 0);
  }, own);
}

function isNear(a: readonly string[], b: readonly string[]): boolean {
  const shorter = Math.min(a.length, b.length);
  const most = shorter < 4 ? 0 : shorter < 8 ? 1 : 2;
  return Math.abs(a.length - b.length) <= most && distance(a, b, most) <= most;
}

/**
 * How many characters must be put in, taken out, replaced, or swapped with their neighbour (optimal string alignment);
 * `most + 1` where it is more. Only the cells within `most` of the diagonal are worked out.
 */
function distance(a: readonly string[], b: readonly string[], most: number): number {
  const far = most + 1;
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, at) => Math.min(at, far));
  for (let row = 1; row <= a.length; row += 1) {
    const next = Array.from({ length: b.length + 1 }, () => far);
    if (row <= most) next[0] = row;
    for (let column = Math.max(1, row - most); column <= Math.min(b.length, row + most); column += 1) {
      const changed = a[row - 1] === b[column - 1] ? 0 : 1;
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      next[column] = Math.min(
        far,
        (last[column] ?? far) + 1,
        (next[column - 1] ?? far) + 1,
        (last[column - 1] ?? far) + changed,
        swapped ? (before[column - 2] ?? far) + 1 : far,
      );
    }
    [before, last] = [last, next];
  }
  return last[b.length] ?? far;
}
