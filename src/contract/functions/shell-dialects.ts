import type { ArithmeticCommand, Assignment, Command, HereDoc, Redirect, SyntaxNode } from "unbash";
import { quote } from "../../wire/mod.ts";
import { doubt } from "./shell-doubt.ts";
import { isDocument } from "./shell-shapes.ts";

// bash and dash run the same text differently in these places. `/bin/sh` is dash on many systems.

/**
 * `ls &> file rm`: dash runs `ls` in the background, and then `rm`.
 *
 * @returns does dash run the command in the background?
 * @throws {EvaluationError} where dash would run another command
 */
export function checkBackground(node: Command): boolean {
  const at = node.suffix.findIndex((part) => part.type === "Redirect" && part.operator.startsWith("&>"));
  const before = node.prefix.some((part) => part.type === "Redirect" && part.operator.startsWith("&>"));
  const isFollowed = at >= 0 && node.suffix.slice(at).some(({ type }) => type === "Word" || type === "Assignment");
  if (isFollowed || (before && node.name !== undefined)) doubt("dash runs the words behind `&>` as another command");
  return before || at >= 0;
}

/** In dash `((` begins two subshells. @throws {EvaluationError} where dash would run a program or write a file */
export function checkArithmeticCommand({ body }: ArithmeticCommand): void {
  const isStep = /^\s*(?:[A-Za-z_]\w*(?:\+\+|--)|(?:\+\+|--)[A-Za-z_]\w*)\s*$/.test(body);
  const isAssignment = /^\s*[A-Za-z_]\w*[-+*%]?=(?:[\w+*%-]|\$\([^()]*\)|\$\w+)*\s*$/.test(body);
  if (!isStep && !isAssignment) doubt(`${quote(`((${body}))`)} reads as commands in dash`);
}

/** In dash `a[0]=x` and `a+=x` are commands. @throws {EvaluationError} where dash would look for such a program by a path */
export function checkAssignment({ append, index, value, text }: Assignment): void {
  if (append !== true && index === undefined) return;
  if (value.type === "ArrayValue") return;
  if (text.includes("/") || /["'$\x60]/.test(text.replace(/\[[^\]]*\]/, "")))
    doubt(`${quote(text)} is a command in dash`);
}

/** dash knows no `$'...'`: the word then begins with `$`. @throws {EvaluationError} where that is another file */
export function checkRedirectTarget({ target }: Redirect): void {
  if (target?.parts?.some(isDollarQuoted) === true) doubt(`${quote(target.text)} is another file in dash`);
}

/** @throws {EvaluationError} on a program whose path is another one in dash */
export function checkProgramWord({ name }: Command): void {
  if (name?.text.includes("/") === true && name.parts?.some(isDollarQuoted) === true)
    doubt(`${quote(name.text)} is another program in dash`);
}

function isDollarQuoted({ type }: SyntaxNode): boolean {
  return type === "AnsiCQuoted" || type === "LocaleString";
}

/**
 * A here-document begins behind the line that names it. Shells disagree where quotes or substitutions go on over that line's
 * end, and on its end where a backslash joins lines.
 *
 * @param place the text, the same with blanks in place of here-documents, and where the script in it ends
 * @throws {EvaluationError}
 */
export function checkHereDoc(
  node: HereDoc,
  { text, source, end }: { text: string; source: string; end: number },
): void {
  const { body, closing, delimiter } = node;
  if (closing === undefined || closing.end > end) return doubt("a here-document is not closed");
  const between = source.slice(node.end, body.pos);
  if (!/^[^\n]*\n(?: *\n)*$/.test(between)) doubt("a here-document does not begin on the next line");
  const lines = [body.text, body.text.replaceAll("\\\n", "")].flatMap((each) => each.split("\n"));
  const isEnd = (line: string): boolean => line.replace(/^\t+/, "") === delimiter?.value;
  if ((delimiter?.quoted !== true && lines.some(isEnd)) || !isEnd(text.slice(closing.pos, closing.end)))
    doubt("a here-document may end at a line that a backslash joins");
  if (delimiter?.quoted !== true && body.parts === undefined && !isDocument(body.text))
    doubt("a here-document holds what is not known here");
  for (const part of body.parts ?? [])
    if (part.type !== "Literal" && part.text.includes("\n")) doubt("a substitution in a here-document goes over lines");
}
