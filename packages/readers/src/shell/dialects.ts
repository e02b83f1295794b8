import type { ArithmeticCommand, Assignment, Command, HereDoc, Redirect, SyntaxNode } from "unbash";
import { quote } from "../../../core/src/wire/mod.ts";
import { doubt } from "./doubt.ts";
import { isDocument } from "./shapes.ts";

// bash and dash run the same text differently in these cases. `/bin/sh` is dash on many systems.

/**
 * `ls &> file rm`: dash runs `ls` in the background, and then `rm`.
 *
 * @returns whether dash runs the command in the background
 * @throws {EvaluationError} if dash would run another command
 */
export function checkBackground(node: Command): boolean {
  const at = node.suffix.findIndex((part) => part.type === "Redirect" && part.operator.startsWith("&>"));
  const before = node.prefix.some((part) => part.type === "Redirect" && part.operator.startsWith("&>"));
  const isFollowed = at >= 0 && node.suffix.slice(at).some(({ type }) => type === "Word" || type === "Assignment");
  if (isFollowed || (before && node.name !== undefined)) doubt("dash runs the words after `&>` as another command");
  return before || at >= 0;
}

/** In dash `((` starts two subshells. @throws {EvaluationError} if dash would run a program or write a file */
export function checkArithmeticCommand({ body }: ArithmeticCommand): void {
  const isStep = /^\s*(?:[A-Za-z_]\w*(?:\+\+|--)|(?:\+\+|--)[A-Za-z_]\w*)\s*$/.test(body);
  const isAssignment = /^\s*[A-Za-z_]\w*[-+*%]?=(?:[\w+*%-]|\$\([^()]*\)|\$\w)*\s*$/.test(body);
  if (!isStep && !isAssignment) doubt(`dash reads ${quote(`((${body}))`)} as commands`);
}

/** In dash `a[0]=x` and `a+=x` are commands. @throws {EvaluationError} if dash would run such a program by its path */
export function checkAssignment({ append, index, value, text }: Assignment): void {
  if (append !== true && index === undefined) return;
  if (value.type === "ArrayValue") return;
  if (text.includes("/") || /["'$\x60]/.test(text.replace(/^([^[]*)\[[^\]]*\]/, "$1")))
    doubt(`dash reads ${quote(text)} as a command`);
}

/** dash does not know `$'...'`: there the word starts with `$`. @throws {EvaluationError} if that names another file */
export function checkRedirectTarget({ target }: Redirect): void {
  if (target?.parts?.some(isDollarQuoted) === true) doubt(`${quote(target.text)} names another file in dash`);
}

/** @throws {EvaluationError} if dash reads the program's path differently */
export function checkProgramWord({ name }: Command): void {
  if (name?.text.includes("/") === true && name.parts?.some(isDollarQuoted) === true)
    doubt(`${quote(name.text)} names another program in dash`);
}

function isDollarQuoted({ type }: SyntaxNode): boolean {
  return type === "AnsiCQuoted" || type === "LocaleString";
}

/**
 * A here-document starts after the line that names it. Shells disagree on its start if quotes or substitutions continue
 * past that line. They disagree on its end if a backslash joins lines.
 *
 * @param place the text, the same text with blanks instead of here-documents, and the position where the script ends
 * @throws {EvaluationError}
 */
export function checkHereDoc(
  node: HereDoc,
  { text, source, end }: { text: string; source: string; end: number },
): void {
  const { body, closing, delimiter } = node;
  if (closing === undefined || closing.end > end) return doubt("a here-document is not closed");
  const between = source.slice(node.end, body.pos);
  if (!/^[^\n]*\n(?: *\n)*$/.test(between)) doubt("a here-document does not start on the next line");
  const lines = [body.text, body.text.replaceAll("\\\n", "")].flatMap((each) => each.split("\n"));
  const isEnd = (line: string): boolean => line.replace(/^\t+/, "") === delimiter?.value;
  if ((delimiter?.quoted !== true && lines.some(isEnd)) || !isEnd(text.slice(closing.pos, closing.end)))
    doubt("a backslash joins lines, so a here-document may end at another line in another shell");
  if (delimiter?.quoted !== true && body.parts === undefined && !isDocument(body.text))
    doubt("a here-document contains text that the gate does not know");
  for (const part of body.parts ?? [])
    if (part.type !== "Literal" && part.text.includes("\n"))
      doubt("a substitution in a here-document spans several lines");
}
