import { limits } from "./limits.ts";

/**
 * Controls, formats (zero-width, bidirectional, tags), line and paragraph separators, unassigned and private characters,
 * and the fillers that print as nothing: characters that could hide or reorder text before a reader's eyes.
 */
export const hiddenPattern: string =
  String.raw`[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]|\p{Variation_Selector}|` +
  String.raw`[\u034f\u115f\u1160\u17b4\u17b5\u180e\u3164\uffa0\ufffc]`;
/** Marks that put the next letter below the one before (Unicode, `Indic_Syllabic_Category=Invisible_Stacker`). */
const stackers = String.raw`[\u1039\u17d2\u1a60\u{10a3f}\u{11133}\u{113d0}\u{1193e}\u{11a47}\u{11a99}\u{11d45}\u{11d97}\u{11f42}]`;
/** More marks on one letter, or letters below it, than any language writes: they would paint over the lines around it. */
export const marksPattern: string = String.raw`(?:\p{M}{5,}|(?:${stackers}\p{L}){3,})`;

const hidden = new RegExp(hiddenPattern, "gu");
const unquotable = new RegExp(`${hiddenPattern}|["\\\\]`, "gu");
const crowded = new RegExp(marksPattern, "gu");
const notAscii = /[^\x20-\x7e]|["\\]/gu;

/** A text for a reviewer: in double quotes, hidden characters escaped, at most 64 characters, then `…`. */
export function quote(text: string): string {
  return quoteText(text, unquotable);
}

/** A foreign text for a line of a terminal: complete, with hidden characters, line ends and crowded marks escaped. */
export function visible(text: string): string {
  return text.replace(hidden, escape).replace(crowded, (run) => Array.from(run, escape).join(""));
}

/** Like `quote`, but every character beyond ASCII is escaped, so that a look-alike letter is visible. */
export function quoteAscii(text: string): string {
  return quoteText(text, notAscii);
}

function quoteText(text: string, unsafe: RegExp): string {
  const max = limits.quotedCharactersMax;
  // A character has at most two UTF-16 units: this cuts a long text before it is split.
  const characters = Array.from(text.slice(0, 2 * (max + 1)));
  const cut = characters.length > max;
  const shown = (cut ? characters.slice(0, max) : characters).join("");
  return `"${shown.replace(unsafe, escape)}${cut ? "…" : ""}"`;
}

function escape(character: string): string {
  if (character === '"' || character === "\\") return `\\${character}`;
  const code = character.codePointAt(0) ?? 0;
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, "0")}`;
}
