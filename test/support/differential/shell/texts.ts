import { Dice } from "../../campaign/random.ts";
import { Grammar, type Kind } from "./grammar.ts";
import { command, condition } from "./grammar-commands.ts";
import { evaluation } from "./grammar-evaluation.ts";
import { list } from "./grammar-lists.ts";
import { hereDocument, redirect } from "./grammar-redirects.ts";
import { arithmetic, word } from "./grammar-words.ts";

const kinds: readonly Kind[] = [word, arithmetic, redirect, hereDocument, condition, command, evaluation, list];

/** Productions that the reader refuses by design, each with the reason. No text of these is ever harmless. */
export const alwaysDoubt: Readonly<Record<string, string>> = {
  "word: $'' with control characters": "shells disagree on what follows `\\c`",
  "word: $'' with a null character": "bash ends the word there, and dash knows no `$''`",
  "word: $'' with \\x{": "bash decodes `\\x{2e}` in a way of its own",
  "word: $'' with \\'": "dash ends the quotes at `\\'`",
  "word: backslashes in backticks": "shells take a level of backslashes out first",
  "arithmetic: quotes": "quotes hide no substitution in arithmetic",
  "word: $[ ]": "dash takes it for letters, and `>` in it for a redirection",
  "word: ${x@P}": "it runs the substitutions in a value",
  "here-document: quoted in part": "the end of the document is not one plain word",
  "here-document: expansion as its end": "the end of the document is not one plain word",
  "here-document: $'E'": "dash ends the document at `$E`, and bash at `E`",
  'here-document: $"E"': "dash ends the document at `$E`, and bash at `E`",
  "[[ ]]: -v text": "bash runs a substitution in the index",
  "[[ ]]: =~ with |": "dash takes `|` for a pipeline, and `(` for a syntax error",
  "[[ ]]: <": "dash takes `<` for a redirection",
  "[[ ]]: >": "dash takes `>` for a redirection, and empties the file",
  "[[ ]]: &&": "dash runs the words behind `&&` as a command",
  "[[ ]]: ||": "dash runs the words behind `||` as a command",
  "[[ ]]: parentheses": "dash takes `(` for a syntax error or a function",
  "[[ ]]: newline": "dash runs the next line as a command",
  "redirect: {name}<file": "dash takes `{name}` for a word",
  "redirect: {name}>&-": "dash takes `{name}` for a word",
  "command: name with braces": "the name of the command is known only at run time",
  "command: printf %n": "it sets a variable",
  "command: declare -n": "it gives a variable a second name",
  "command: (( > ))": "dash takes `>` for a redirection, and empties the file",
  "evaluation: an index in a compound assignment": "bash runs a substitution in the index",
  "list: for { }": "dash does not know this loop",
};

const rare = new Set(Object.keys(alwaysDoubt));

/** The names of all productions. */
export const productions: readonly string[] = kinds.flatMap((kind) => Object.keys(kind.productions));

export interface ShellText {
  readonly text: string;
  /** The productions that wrote it. */
  readonly used: ReadonlySet<string>;
  /** Whether characters were changed afterwards. */
  readonly isMutated: boolean;
}

/** The share of texts that are changed after they were written, because most holes are found this way. */
const mutatedShare = 0.5;

/** Writes a text with at least one piece of the production. `area` is the parent of the working folder. */
export function writeText(options: { seed: number; area: string; focus: string }): ShellText {
  const dice = new Dice(options.seed);
  const g = new Grammar({ dice, area: options.area, focus: options.focus, rare });
  const kind = kinds.find(({ productions: own }) => Object.hasOwn(own, options.focus)) ?? list;
  const text = g.given(kind.given ?? 0.2) + kind.frame(g, g.piece(kind));
  const isMutated = g.chance(mutatedShare);
  return { text: isMutated ? mutated(dice, text) : text, used: g.used, isMutated };
}

const inserts: readonly string[] = [
  ...Array.from("'\"\\$`(){}[]<>|&;#!~*?=,.-:@+^%/ \n\t01ax"),
  ..."$( ${ $' $\" (( )) [[ ]] << <<- <<< >( <( \\\n && || ;; >& &> |& {, ,} $[ $(( `` '' \"\" # $'\\ .. ;pwn |pwn >new".split(
    " ",
  ),
];

/** Returns the text with one to three small changes. */
function mutated(dice: Dice, text: string): string {
  let result = Array.from(text);
  const position = (): number => Math.floor(dice.roll() * (result.length + 1));
  for (let left = 1 + Math.floor(dice.roll() * 3); left > 0; left -= 1) {
    const at = position();
    const piece = result.slice(at, at + 1 + Math.floor(dice.roll() * 4));
    const kind = dice.oneOf(["insert", "insert", "insert", "delete", "duplicate", "swap", "replace", "move"] as const);
    if (kind === "insert") result.splice(at, 0, ...Array.from(dice.oneOf(inserts)));
    else if (kind === "delete") result.splice(at, 1);
    else if (kind === "duplicate") result.splice(at, 0, ...piece);
    else if (kind === "swap") result.splice(at, 2, ...result.slice(at, at + 2).toReversed());
    else if (kind === "replace") result.splice(at, 1, ...Array.from(dice.oneOf(inserts)));
    else result = moved(result, { from: at, to: position(), piece });
  }
  return result.join("");
}

function moved(text: readonly string[], move: { from: number; to: number; piece: readonly string[] }): string[] {
  const rest = text.toSpliced(move.from, move.piece.length);
  return rest.toSpliced(Math.min(move.to, rest.length), 0, ...move.piece);
}
