import type { CommandEffect, Form } from "../../../core/src/contract/function.ts";
import { openMatches, type CommandWords } from "./match.ts";
import type { ProgramForms } from "./program.ts";
import type { CommandFit, TextOfCommands } from "./width.ts";
import { textsOf } from "./word.ts";

/**
 * May the person approve it whose agent asks? Not if a command may destroy something, runs code from the text, or contacts a
 * machine that no form names: a form must list each word, and no word may be an address or lead out of the folder.
 */
export function isPersonal({ text, reading }: TextOfCommands, commands: readonly CommandFit[]): boolean {
  const { beside, emptied, functions, redirects, scripts, unread, variables, withCode } = reading;
  const isPlain = [beside, functions, unread, variables].every(({ size }) => size === 0);
  const isListed = isPlain && redirects.length === 0 && commands.every(({ match }) => match !== undefined);
  const may = (forms: readonly Form[], effect: CommandEffect): boolean => forms.some(({ does }) => does.has(effect));
  const isOwn = ({ args, forms, isHidden, match }: CommandFit): boolean => {
    if (may(forms, "destroys") || isHidden) return false;
    if (may(forms, "sends")) return isPlain && match !== undefined && contactsNobodyElse(match);
    return match !== undefined || (isPlain && !args.some((arg) => address.test(arg.text)));
  };
  const isCode = scripts.length + withCode.size > 0 || commands.some(({ name }) => name === "source" || name === ".");
  return !isCode && emptied.size === 0 && commands.every(isOwn) && (isListed || !address.test(text));
}

/** True if no word can be an address. The sentence after an option such as `--title` is not. */
function contactsNobodyElse({ form, placed }: NonNullable<CommandFit["match"]>): boolean {
  return placed.every(([word, shape]) => {
    const texts = textsOf(word) ?? [];
    const isSentence = shape.kind === "TEXT" && form.options.some(({ value }) => value === shape);
    const pattern = shape.kind === "PACKAGE" ? plainPackage : plainWord;
    return texts.length > 0 && texts.every((each) => pattern.test(each) || (isSentence && /\s/.test(each)));
  });
}

/** Not an address such as `user@host:x`, `https://h`, `h.example/x`, `../x` or `/x`. */
const plainWord = /^(?!\/|~|\.\.?(?:\/|$)|[\w-]+(?:\.[\w-]+)+\/)[^:@]*$/;

/** `left-pad` or `@types/node`: `name/name` may be any repository of GitHub. */
const plainPackage = /^(?:@[\w.-]+\/)?[\w.-]+$/;

/** `https://h`, `user@h:x`, `h.example:x`, `--host h`, `/dev/tcp/h/80` */
const address =
  /\w:\/\/|@[^\s/:@]+:|(?:^|[\s=@"'])[\w-]+(?:\.[\w-]+)+:(?!:)|--(?:host|registry|index-url|proxy|server|endpoint)|\/dev\/(?:tcp|udp)\//i;

/** A command without a form is read for what it may hide if it has so few words. */
const hiddenMax = 24;

/**
 * May a command that no form lists do what a stricter form describes, behind an option or a program that no form lists?
 * `kubectl -s x delete`, `faketime x rm -r src`
 */
export function mayHide(
  programs: ReadonlyMap<string, ProgramForms>,
  own: ProgramForms | undefined,
  { args, place }: CommandWords,
): boolean {
  if (args.length > hiddenMax) return true;
  const texts = args.map(({ text }) => text);
  const isNamed = ({ run }: Form): boolean => run.length > 1 && isWithinOrder(run.slice(1), texts);
  if (own?.strict.some((form) => isLoss(form) && isNamed(form)) === true) return true;
  return texts.some((text, at) => {
    const [name = "", ...words] = text.trim().split(/\s+/);
    const wrapped = programs.get(name);
    if (wrapped === undefined) return false;
    // A text with blanks may be code, which is not read here.
    if (words.length > 0) return wrapped.strict.some(isLoss);
    const rest = { args: args.slice(at + 1), place };
    return rest.args.length > 0 && openMatches(wrapped, rest).some(({ form }) => isLoss(form));
  });
}

function isLoss({ does, verdict }: Form): boolean {
  return does.has("sends") || does.has("destroys") || verdict === "BLOCK";
}

/** Are all words among the others, in their order? */
function isWithinOrder(words: readonly string[], others: readonly string[]): boolean {
  let next = 0;
  for (const other of others) if (other === words[next]) next += 1;
  return next === words.length;
}
