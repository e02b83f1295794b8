import type { CommandEffect, CommandWidth, Form, Kind, ProgramShape } from "../../../core/src/contract/function.ts";
import { closedParts, type OpenWord } from "../../../core/src/wire/mod.ts";
import type { TextSpan } from "../shell/words.ts";
import type { ShellReading } from "../shell/run.ts";
import { joinPath } from "../path/folder.ts";
import type { FormMatch } from "./match.ts";
import { textsOf, type ReadWord } from "./word.ts";

/** One command of a text, and what its forms say about it. */
export interface CommandFit {
  readonly name: string;
  /** All forms that it fits. */
  readonly forms: readonly Form[];
  /** How its program reads options, if the table says so. */
  readonly shape: ProgramShape | undefined;
  readonly args: readonly ReadWord[];
  /** How the form that decides lists each word; undefined if no form does. */
  readonly match: Pick<FormMatch, "folders" | "form" | "placed"> | undefined;
  /** No form lists it, but may it do what a stricter form describes, behind an option or a program that no form lists? */
  readonly isHidden: boolean;
  /** Does it run another one of these commands, which is among its words? */
  readonly isRunner: boolean;
}

/** A text, what was read from it, and the folder in which it starts. */
export interface TextOfCommands {
  readonly text: string;
  readonly reading: ShellReading;
  readonly start: string;
}

/** Changes with the meaning of kinds and widths. */
const formVersion = 1;

const textKinds: ReadonlySet<Kind> = new Set(["TEXT", "PATTERN", "NUMBER", "PORT", "NAME", "PACKAGE", "TASK"]);
/** A commit may have the name of a file. */
const readKinds: ReadonlySet<Kind> = new Set(["FILE", "LEAF", "LOCAL", "PATH", "PATHSPEC", "REF"]);

/** A part of the text that may differ. */
interface OpenPart extends TextSpan {
  readonly kind: Kind;
}

/**
 * The widths of a text, the narrowest first; none if a command destroys something. Everything outside of the words that may
 * differ is compared as it is written, so no pipe, redirection, assignment, wrapper or option can change.
 */
export function widthsOf(whole: TextOfCommands, commands: readonly CommandFit[]): readonly CommandWidth[] {
  const { text } = whole;
  const forms = commands.map((command) => command.forms);
  const does = new Set(forms.flat().flatMap((form) => [...form.does]));
  if (does.has("destroys") || whole.reading.emptied.size > 0) return [];
  const decided = commands.map((each) =>
    [...each.forms, ...(each.shape === undefined ? [] : [each.shape])].map(meaningOf),
  );
  const parts = mayDiffer(whole, commands, does) ? openParts(whole, commands) : [];
  const open = parts.filter(({ kind }) => kind === "NAME" || !does.has("sends"));
  const kept = { same: [], texts: open.filter(({ kind }) => textKinds.has(kind)), files: open };
  const widths = Object.entries(kept).map(([name, own]) => {
    const words = own.map(({ from, to, kind }): OpenWord => [from, to, kind]);
    const pieces = [closedParts(text, words), words.map(([, , kind]) => kind)];
    return { name: name as CommandWidth["name"], open: words, key: JSON.stringify([formVersion, pieces, decided]) };
  });
  return widths.filter(({ key }, at) => key !== widths[at - 1]?.key);
}

/**
 * May anything differ? Not if a form does not list each word of a command, and not where words become what a file, a variable or
 * another program gets: only programs that read may follow a pipe.
 */
function mayDiffer(
  { text, reading }: TextOfCommands,
  commands: readonly CommandFit[],
  does: ReadonlySet<CommandEffect>,
): boolean {
  const { background, beside, functions, redirects, scripts, unread, variables } = reading;
  const isListed = commands.every(({ match }) => match !== undefined);
  const isPiped = text.replaceAll("||", "").includes("|");
  const isKept = redirects.length + scripts.length === 0 && !background;
  const isPlain = [beside, functions, unread, variables].every(({ size }) => size === 0);
  return isListed && isKept && isPlain && (!isPiped || onlyReads(does));
}

function onlyReads(does: ReadonlySet<CommandEffect>): boolean {
  return [...does].every((effect) => effect === "reads");
}

const meanings = new WeakMap<Form | ProgramShape, string>();

/** All that decides about a form or a program, as a text. A form that changed is another one. */
function meaningOf(of: Form | ProgramShape): string {
  const without = { span: undefined, reason: undefined, examples: undefined, counterexamples: undefined };
  const own = "does" in of ? { ...of, ...without, does: [...of.does] } : of;
  const known = meanings.get(of) ?? JSON.stringify(own);
  meanings.set(of, known);
  return known;
}

/** The words that may differ, in order. Each command that has a word must agree, but for one that runs the others. */
function openParts(whole: TextOfCommands, commands: readonly CommandFit[]): readonly OpenPart[] {
  const closed = new Set<number>();
  const open = new Map<number, OpenPart>();
  for (const command of commands) {
    const own = partsOf(whole, command);
    for (const { span } of command.args) {
      if (span === undefined) continue;
      const [part, known] = [own.get(span.from), open.get(span.from)];
      if (part === undefined ? !command.isRunner : known !== undefined && known.kind !== part.kind)
        closed.add(span.from);
      if (part !== undefined) open.set(span.from, part);
    }
  }
  const found = [...open].flatMap(([start, part]) => (closed.has(start) ? [] : [part]));
  return found.toSorted((one, other) => one.from - other.from);
}

/** The words of one command that may differ, by the starts of their words. */
function partsOf({ text, start }: TextOfCommands, { match, forms }: CommandFit): ReadonlyMap<number, OpenPart> {
  const { folders = [], placed = [] } = match ?? {};
  const isBelow = (path: string): boolean =>
    folders.every((folder) => {
      const joined = joinPath(folder, path);
      return plainPath.test(start !== "." && joined.startsWith(`${start}/`) ? joined.slice(start.length + 1) : joined);
    });
  const isReader = forms.every(({ does }) => onlyReads(does));
  const found = new Map<number, OpenPart>();
  // In another folder the same words mean other things.
  if (!isBelow("file")) return found;
  for (const [word, { kind, role = "reads", texts }] of placed) {
    const { span, before = "" } = word;
    if (span === undefined || kind === undefined || texts.includes(word.text) || !isCertain(text, word)) continue;
    const isPlain = kind === "REF" ? !/(?:^|\/)\./.test(word.text) : isBelow(word.text);
    const isReadFile = isReader && isPlain && (role === "reads" || role === "lists");
    const isOpen = readKinds.has(kind) ? isReadFile : textKinds.has(kind) && !word.text.startsWith(".");
    if (isOpen) found.set(span.from, { kind, from: span.from + before.length, to: span.to });
  }
  return found;
}

/** Is it a word whose text stands at its place, and that no shell changes? */
function isCertain(whole: string, word: ReadWord): boolean {
  const { span, text, before = "", glob } = word;
  const texts = textsOf(word);
  const isHome = /(?:^|[=:])~/.test(text);
  const isThere = span !== undefined && whole.startsWith(before, span.from);
  return isThere && !glob && !isHome && texts?.length === 1 && texts[0] === text;
}

/** A path below the folder in which the text starts, without hidden names. */
const plainPath = /^(?:\.\/)?\w[\w.@+-]*(?:\/\w[\w.@+-]*)*$/;
