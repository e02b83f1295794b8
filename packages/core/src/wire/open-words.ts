/** A word of a text that may differ in texts of the same form: where it starts and ends, in UTF-16 units, and its kind. */
export type OpenWord = readonly [from: number, to: number, kind: string];

/** The text with kinds in the place of the words that may differ: `git commit -m TEXT`. */
export function formText(text: string, words: readonly OpenWord[]): string {
  return closedParts(text, words)
    .flatMap((part, at) => [part, words[at]?.[2] ?? ""])
    .join("");
}

/** What stands before, between and behind the words that may differ. */
export function closedParts(text: string, words: readonly OpenWord[]): readonly string[] {
  const ends = [0, ...words.map(([, to]) => to)];
  return ends.map((end, at) => text.slice(end, words[at]?.[0]));
}

/** What a grant by form binds beside the command line, for people. */
export const restWords = "all other members of the input, and all facts";

/** What each width of a grant by form means, for people. */
export const widthWords: Readonly<Record<string, string>> = {
  same: "exactly this command line",
  texts: "also with other texts, numbers and names",
  files: "also with other files that it reads, below the folder",
};
