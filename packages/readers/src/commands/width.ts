import { nameOfForm, type Form, type Kind, type WordShape } from "../../../core/src/contract/function.ts";
import type { TextSpan } from "../shell/words.ts";
import { textsOf, type ReadWord } from "./word.ts";

/** One command of a text, and what its forms say about its words. */
export interface CommandFit {
  /** All forms that it fits. */
  readonly forms: readonly Form[];
  readonly args: readonly ReadWord[];
  /** The words with a position in the form that decides; undefined if no form lists them all. */
  readonly placed: readonly (readonly [word: ReadWord, shape: WordShape])[] | undefined;
  /** Does it run another one of these commands, which is among its words? */
  readonly isRunner: boolean;
}

/** How far later texts may differ from one text. */
export interface CommandWidth {
  /** `same`: not at all. `texts`: in texts, numbers and names. `files`: also in files of the folder. */
  readonly name: "same" | "texts" | "files";
  /** The text with kinds instead of the words that may differ: `git commit -m TEXT`. */
  readonly shown: string;
  /** Two texts are of the same form if their keys are equal. */
  readonly key: string;
}

/** Changes with the meaning of kinds and widths. */
const version = 1;

const textKinds: ReadonlySet<Kind> = new Set(["TEXT", "PATTERN", "NUMBER", "PORT", "NAME", "PACKAGE", "TASK", "REF"]);
const fileKinds: ReadonlySet<Kind> = new Set(["FILE", "LEAF", "LOCAL", "PATH", "PATHSPEC"]);

/** A part of the text that may differ. */
interface OpenPart extends TextSpan {
  readonly kind: Kind;
}

/**
 * The widths of a text, the narrowest first; none if a command destroys something. Everything outside of the words that may
 * differ is compared as it is written, so no pipe, redirection, assignment, wrapper or option can change. With a command that
 * no form lists word by word nothing may differ, because it may run what it gets. With one that contacts another machine only
 * names may.
 */
export function widthsOf(text: string, commands: readonly CommandFit[]): readonly CommandWidth[] {
  const forms = commands.map((command) => command.forms);
  const does = new Set(forms.flat().flatMap((form) => [...form.does]));
  if (does.has("destroys")) return [];
  const names = forms.map((each) => each.map(nameOfForm));
  const isListed = commands.every(({ placed }) => placed !== undefined);
  const open = (isListed ? openParts(text, commands) : []).filter(({ kind }) => kind === "NAME" || !does.has("sends"));
  const parts = { same: [], texts: open.filter(({ kind }) => textKinds.has(kind)), files: open };
  const widths = Object.entries(parts).map(([name, own]) => {
    const pieces = piecesOf(text, own);
    const shown = pieces.map((piece) => (typeof piece === "string" ? piece : piece.kind)).join("");
    return { name: name as CommandWidth["name"], shown, key: JSON.stringify([version, pieces, names]) };
  });
  return widths.filter(({ key }, at) => key !== widths[at - 1]?.key);
}

function piecesOf(text: string, parts: readonly OpenPart[]): readonly (string | Pick<OpenPart, "kind">)[] {
  const ends = [0, ...parts.map(({ to }) => to)];
  const before = parts.flatMap(({ kind, from }, at) => [text.slice(ends[at], from), { kind }]);
  return [...before, text.slice(ends.at(-1))];
}

/** The words that may differ, in order. Each command that has a word must agree, but for one that runs the others. */
function openParts(text: string, commands: readonly CommandFit[]): readonly OpenPart[] {
  const closed = new Set<number>();
  const open = new Map<number, OpenPart>();
  for (const { args, placed, isRunner } of commands) {
    const own = new Map<number, OpenPart>();
    for (const [word, shape] of placed ?? []) {
      const part = partOf(text, word, shape);
      if (word.span !== undefined && part !== undefined) own.set(word.span.from, part);
    }
    for (const { span } of args) {
      if (span === undefined) continue;
      const part = own.get(span.from);
      if (part === undefined && (!isRunner || placed === undefined)) closed.add(span.from);
      const known = open.get(span.from);
      if (part !== undefined && known !== undefined && known.kind !== part.kind) closed.add(span.from);
      if (part !== undefined) open.set(span.from, part);
    }
  }
  return [...open]
    .filter(([start]) => !closed.has(start))
    .map(([, part]) => part)
    .toSorted((one, other) => one.from - other.from);
}

/** The part of the text that a word is, if it is certain and of a kind that may differ. */
function partOf(whole: string, word: ReadWord, { kind, role, texts: listed }: WordShape): OpenPart | undefined {
  const { span, text, before = "", glob } = word;
  if (span === undefined || kind === undefined || glob || listed.includes(text)) return undefined;
  const texts = textsOf(word);
  const isHome = /(?:^|[=:])~/.test(text);
  const isCertain = texts?.length === 1 && texts[0] === text && !isHome && whole.startsWith(before, span.from);
  const isOpen = fileKinds.has(kind)
    ? role !== "enters" && plainPath.test(text)
    : textKinds.has(kind) && !text.startsWith(".");
  return isCertain && isOpen ? { kind, from: span.from + before.length, to: span.to } : undefined;
}

/** A path below the folder in which the command runs, without hidden names. */
const plainPath = /^(?:\.\/)?\w[\w.@+=-]*(?:\/\w[\w.@+=-]*)*$/;
