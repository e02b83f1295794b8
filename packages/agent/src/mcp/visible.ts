const hidden = String.raw`[\p{C}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\ufffc\p{Variation_Selector}]`;
/** Marks that put the next letter below the one before. */
const stacker = String.raw`[\u1039\u17d2\u1a60\u{10a3f}\u{11133}\u{113d0}\u{1193e}\u{11a47}\u{11a99}\u{11d45}\u{11d97}\u{11f42}]`;
/** More marks on one letter, or letters below it, would paint over the lines around it. */
const crowded = String.raw`(?<=\p{M}{4})\p{M}|(?<=(?:${stacker}\p{L}){2})${stacker}`;
const unsafe = new RegExp(`${hidden}|${crowded}`, "gu");

/** Escapes characters that a terminal obeys or a reader cannot see: a server may try to hide what it says. */
export function visible(text: string): string {
  return text.replaceAll(unsafe, (character) => `\\u{${character.codePointAt(0)?.toString(16) ?? ""}}`);
}
