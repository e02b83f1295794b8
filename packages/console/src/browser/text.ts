import { h, type ComponentChildren, type JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { hiddenPattern, marksPattern, visible } from "../../../core/src/wire/mod.ts";
import { el } from "./elements.ts";

/** A part of a text: plain, a mark instead of characters that a reader cannot see, or letters that run to the left. */
interface Piece {
  readonly text: string;
  readonly kind: "leftward" | "mark" | "plain";
  /** For a mark: what it replaces. */
  readonly about?: string;
  /** The blanks that it replaces. */
  readonly blanks?: string;
}

/** Characters that print as nothing but take room, such as a braille pattern without dots and a note without a head. */
const blanksPattern = String.raw`[\p{Zs}\u2800\u{13441}\u{13442}\u{1d159}]{8,}`;
/** A character of the blocks that Unicode keeps for scripts from right to left, with its marks. */
const leftwardLetter = String.raw`(?!\p{M})[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]`;
const leftwardPattern = String.raw`(?!${hiddenPattern})${leftwardLetter}(?:\p{M}{1,4}(?!\p{M}))?`;
const letter = /\p{L}/u;
const leftward = new RegExp(leftwardPattern, "u");
const special = new RegExp(
  `(?<hidden>(?:${hiddenPattern})+)|(?<blanks>${blanksPattern})|(?<marks>${marksPattern})|` +
    `(?:${leftwardPattern})+(?: (?:${leftwardPattern})+)*`,
  "gu",
);
const named: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };
/** A longer run of hidden characters is shown as its length. */
const escapesMax = 8;

/** Only a word that is as long as this may be broken in two. */
const longWord = /(?:\S|[\u00a0\u2007\u202f]){25}/;

/** A text with more characters or more elements opens on request. An agent chooses both. */
const wholeMax = { characters: 4096, elements: 64 } as const;
/** The characters of a closed text that a person sees, if they make few elements. A call often hides its worst part at the end. */
const closed = { start: 512, end: 256, elements: 32 } as const;
/** The most pieces that open at once. A piece has a character at least. */
const piecesOfStep = 4096;

/**
 * Shows a foreign text so that nothing in it is hidden, moved or pushed out of sight. A run of characters
 * that a reader cannot see, of eight or more blanks, or of more than four marks on one letter is one mark. Letters that
 * run to the left are a part of their own, so the text around them keeps its order. A long text opens on request.
 */
export function Text({ of }: { readonly of: string }): JSX.Element {
  const pieces = firstPieces(of);
  return isLong(pieces) ? h(LongText, { of }) : renderPieces(pieces);
}

/** Shows a text of several lines that the gate wrote, or that a person gave to it. Its blanks and line ends are kept. */
export function SourceText({ of }: { readonly of: string }): JSX.Element {
  const lines = of.split("\n").map((line) => renderPieces(piecesOf(line).map(withBlanks)));
  return el.span(lines.flatMap((line) => [line, "\n"]));
}

/** Does a person see the whole text without opening it? */
export function isShownWhole(text: string): boolean {
  return !isLong(firstPieces(text));
}

/** How many elements a page makes for a text that nobody has opened. */
export function elementsOf(text: string): number {
  const pieces = firstPieces(text);
  if (!isLong(pieces)) return elementsIn(pieces);
  const { start, end } = endsOf(text);
  return elementsIn(piecesOf(text.slice(0, start))) + elementsIn(piecesOf(text.slice(-end)));
}

/** Does a text have letters that run from right to left? */
export function runsLeftward(text: string): boolean {
  return leftward.test(text);
}

/** As many pieces as tell whether a text is long: at most three make an element. */
function firstPieces(text: string): readonly Piece[] {
  return piecesOf(text, 3 * (wholeMax.elements + 1));
}

function isLong(pieces: readonly Piece[]): boolean {
  const characters = pieces.reduce((sum, { text }) => sum + text.length, 0);
  return characters > wholeMax.characters || elementsIn(pieces) > wholeMax.elements;
}

function elementsIn(pieces: readonly Piece[]): number {
  return pieces.filter(({ kind }) => kind !== "plain").length;
}

/** How many characters a person sees of both ends of a closed text. */
function endsOf(text: string): { readonly start: number; readonly end: number } {
  let { start, end }: { start: number; end: number } = closed;
  const isFull = (part: string, elements: number): boolean => elementsIn(piecesOf(part)) > elements;
  while (isFull(text.slice(0, start), closed.elements)) start = Math.floor(start / 2);
  while (isFull(text.slice(-end), closed.elements / 2)) end = Math.floor(end / 2);
  return { start, end };
}

function renderPieces(pieces: readonly Piece[]): JSX.Element {
  const hasLongWord = longWord.test(pieces.map(({ text }) => text).join(""));
  return el.bdi({ class: hasLongWord ? "text long" : "text", dir: "ltr" }, pieces.map(renderPiece));
}

function renderPiece({ text, kind, about }: Piece): ComponentChildren {
  if (kind === "plain") return text;
  return kind === "mark" ? el.mark({ class: "hidden", title: about }, text) : el.bdi({ dir: "rtl" }, text);
}

/** The start and the end of a text, and a button that opens what is between them. */
function LongText({ of }: { readonly of: string }): JSX.Element {
  const { start, end } = useMemo(() => endsOf(of), [of]);
  const [opened, setOpened] = useState(start);
  const from = boundary(of, opened);
  const to = boundary(of, Math.max(from, of.length - end));
  const left = to - from;
  const hasManyPieces = piecesOf(of, piecesOfStep + 1).length > piecesOfStep;
  const step = hasManyPieces ? piecesOfStep : of.length;
  return el.span(
    renderPieces(piecesOf(of.slice(0, from))),
    el.button(
      { type: "button", class: "small", onClick: () => setOpened(left > 0 ? opened + step : start) },
      left > 0 ? `Show ${left.toLocaleString("en-US")} more characters` : "Show less",
    ),
    to < of.length && renderPieces(piecesOf(of.slice(to))),
  );
}

/** Moves a position in a text behind the character that it divides. */
function boundary(text: string, at: number): number {
  return at < text.length && (text.codePointAt(at - 1) ?? 0) > 0xffff ? at + 1 : Math.min(at, text.length);
}

/** The pieces of a text; the first ones if it has more than a number of them. */
function piecesOf(text: string, max = Infinity): readonly Piece[] {
  const pieces: Piece[] = [];
  let end = 0;
  for (const { 0: run, index, groups = {} } of text.matchAll(special)) {
    if (index > end) pieces.push({ text: text.slice(end, index), kind: "plain" });
    end = index + run.length;
    if (groups["hidden"] !== undefined) pieces.push(...hiddenPieces(run));
    else if (groups["blanks"] !== undefined) pieces.push({ ...countMark(run, "blanks"), blanks: run });
    else if (groups["marks"] !== undefined)
      pieces.push(countMark(run, `${letter.test(run) ? "stacked letters" : "combining marks"}: ${pointsIn(run)}`));
    else pieces.push({ text: run, kind: "leftward" });
    if (pieces.length >= max) return pieces;
  }
  return end === text.length ? pieces : [...pieces, { text: text.slice(end), kind: "plain" }];
}

/** A line ends where it ended in the text, so characters behind the last line end have a mark of their own. */
function hiddenPieces(run: string): readonly Piece[] {
  const lines = run.slice(0, run.lastIndexOf("\n") + 1);
  const rest = run.slice(lines.length);
  return [
    ...(lines === "" ? [] : [hiddenMark(lines), { text: "\n", kind: "plain" } as const]),
    ...(rest === "" ? [] : [hiddenMark(rest)]),
  ];
}

/** Shows blanks as they are. */
function withBlanks(piece: Piece): Piece {
  return piece.blanks === undefined ? piece : { text: piece.blanks, kind: "plain" };
}

function hiddenMark(run: string): Piece {
  const characters = Array.from(run);
  const points = pointsIn(run);
  if (characters.length > escapesMax) return countMark(run, `hidden characters: ${points}`);
  const text = characters.map((each) => named[each] ?? visible(each)).join("");
  return { text, kind: "mark", about: `not visible: ${points}` };
}

function countMark(run: string, what: string): Piece {
  const text = `«${Array.from(run).length} ${what}»`;
  return { text, kind: "mark", about: text };
}

/** Such as `U+200B, U+202E and others`. */
function pointsIn(run: string): string {
  const points = [...new Set(run)].map((each) =>
    (each.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0"),
  );
  const first = points.slice(0, 3).map((point) => `U+${point}`);
  return first.join(", ") + (points.length > first.length ? " and others" : "");
}

/** The reason of a verdict, without the name of the gate before it. */
export function reasonText(reason: string | null): string {
  return reason === null ? "the reason was erased" : reason.replace(/^Svc: /, "");
}
