import { h, type JSX } from "preact";
import { visible } from "../wire/mod.ts";

interface Piece {
  readonly text: string;
  /** What it is, if a reader could not see it. */
  readonly hidden?: string;
}

const named: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };
/** Any characters that print as nothing but take room: the braille pattern without dots is one too. */
const blanks = /[\p{Zs}\u2800]{8,}/u;
/** A run of blanks, or one character with its surrogate pair. */
const units = /[\p{Zs}\u2800]{8,}|[^]/gu;

/**
 * Shows a foreign text whole. Characters that a reader cannot see are shown as marked escapes, and a run of eight or more
 * blanks as its count, so that nothing can be hidden, reordered or pushed out of sight.
 */
export function Text({ of }: { readonly of: string }): JSX.Element {
  if (visible(of) === of && !blanks.test(of)) return h("bdi", { class: "text" }, of);
  return h(
    "bdi",
    { class: "text" },
    piecesOf(of).map(({ text, hidden }) =>
      hidden === undefined ? text : h("mark", { class: "hidden", title: hidden }, text),
    ),
  );
}

function piecesOf(text: string): readonly Piece[] {
  const pieces: Piece[] = [];
  let plain = "";
  for (const [unit] of text.matchAll(units)) {
    const shown = shownUnit(unit);
    if (shown === undefined) {
      plain += unit;
      continue;
    }
    if (plain !== "") pieces.push({ text: plain });
    plain = unit === "\n" ? "\n" : "";
    pieces.push(shown);
  }
  return plain === "" ? pieces : [...pieces, { text: plain }];
}

/** Undefined for what a reader can see. */
function shownUnit(unit: string): Piece | undefined {
  if (unit.length >= 8) return { text: `«${unit.length} blanks»`, hidden: `${unit.length} blanks in a row` };
  if (visible(unit) === unit) return undefined;
  const code = (unit.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
  return { text: named[unit] ?? visible(unit), hidden: `a character that cannot be seen: U+${code}` };
}

/** The reason of a verdict, without the name of the gate before it. */
export function reasonText(reason: string | null): string {
  return reason === null ? "the reason was erased" : reason.replace(/^Svc: /, "");
}
