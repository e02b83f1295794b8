import { limits } from "./limits.ts";

// Controls, formats (zero-width, bidirectional, tags), line and paragraph separators, unassigned and private
// characters, and the fillers that print as nothing: characters that could hide or reorder text before a reader's eyes.
const hidden =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180e\u3164\uffa0"\\]|\p{Variation_Selector}/gu;
const notAscii = /[^\x20-\x7e]|["\\]/gu;

/** A text for a reviewer: in double quotes, hidden characters escaped, at most 64 characters, then `…`. */
export function quote(text: string): string {
  return quoted(text, hidden);
}

/** A foreign text for a line of a terminal: complete, with hidden characters and line ends escaped. */
export function visible(text: string): string {
  return text.replace(hidden, (character) => (character === '"' || character === "\\" ? character : escape(character)));
}

/** Like `quote`, but every character beyond ASCII is escaped, so that a look-alike letter is visible. */
export function quoteAscii(text: string): string {
  return quoted(text, notAscii);
}

function quoted(text: string, unsafe: RegExp): string {
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
