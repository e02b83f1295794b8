import type { FormOption, OptionStyle } from "../../../core/src/contract/function.ts";
import type { ReadWord } from "./word.ts";
import { wordOfText } from "./word.ts";

/** An option of a command with its value. */
export interface ReadOption {
  readonly name: string;
  readonly option: FormOption;
  readonly value: ReadWord | undefined;
}

/** A command whose options and words are told apart, as one form lists them. */
export interface SplitCommand {
  readonly options: readonly ReadOption[];
  readonly words: readonly ReadWord[];
}

/** The first piece of a command that a form does not list. */
export interface FormMisfit {
  /** How many pieces before it fit. */
  readonly at: number;
  readonly problem: string;
}

/** No form comes near. */
export const notListed: FormMisfit = { at: -1, problem: "it is not listed" };

/** A word at a place where no form has it. */
export function notListedHere(word: Pick<ReadWord, "text">): string {
  return `${say(word)} is not listed here`;
}

export interface SplitRules {
  readonly style: OptionStyle;
  /** Options before the words of the form. */
  readonly first: readonly FormOption[];
  /** Options after them. All words of `run` may come first. */
  readonly options: readonly FormOption[];
  /** The words of the form after the program. */
  readonly run: readonly string[];
  /** After this number of words, everything is a word; undefined if options may follow all words. */
  readonly wordsBefore: number | undefined;
  /** Is `--` a word of the form? */
  readonly isDashWord: boolean;
}

/** Tells the options and the words of a command apart. */
export function splitCommand(written: readonly ReadWord[], rules: SplitRules): SplitCommand | FormMisfit {
  const valued = rules.options.filter(({ value, isOptional }) => value !== undefined && !isOptional);
  const args = rules.style === "bare" ? dashFirst(written, new Set(valued.flatMap(({ names }) => names))) : written;
  const [options, words]: [ReadOption[], ReadWord[]] = [[], []];
  const run = [...rules.run];
  let isEnd = false;
  for (let at = 0; at < args.length; at += 1) {
    const arg = args[at];
    if (arg === undefined) break;
    const isRest = run.length === 0 && rules.wordsBefore !== undefined && words.length >= rules.wordsBefore;
    const isAfterWord = rules.style === "posix" && run.length === 0 && words.length > 0;
    if (isEnd || isRest || isAfterWord) {
      words.push(isEnd ? { ...arg, isAfterDash: true, isText: rules.isDashWord } : arg);
      continue;
    }
    if (run.length > 0 && run[0] === arg.text) {
      run.shift();
      continue;
    }
    if (arg.text === "--" && run.length === 0 && rules.style !== "single") {
      isEnd = true;
      if (rules.isDashWord) words.push(arg);
      continue;
    }
    const listed = run.length > 0 ? rules.first : rules.options;
    const isListed = listed.some(({ names }) => names.includes(arg.text));
    if (!isListed && !/^-./.test(arg.fixed) && !/^-./.test(arg.text)) {
      if (run.length > 0) return misfit(at, notListedHere(arg));
      words.push(arg);
      continue;
    }
    if (arg.values === undefined || (arg.glob && !arg.text.includes("=")))
      return misfit(at, `${say(arg)} is known only when it runs`);
    const runs = listed.find(({ names, value }) => value?.kind === "COMMAND" && names.includes(arg.text));
    if (runs !== undefined) {
      options.push({ name: arg.text, option: runs, value: undefined });
      at = endOfCommand(args, at + 1);
      continue;
    }
    const found = readOptions(arg, args[at + 1], { style: rules.style === "words" ? "gnu" : rules.style, listed });
    if (typeof found === "string" && rules.style === "words") {
      words.push(arg);
      continue;
    }
    if (typeof found === "string") return misfit(at, found);
    options.push(...found.options);
    at += found.taken;
  }
  if (run.length > 0) return misfit(args.length, `\`${run.join(" ")}\` is missing`);
  return { options, words };
}

/** The position of the `;` or `+` that ends a command among the words of `find`. */
function endOfCommand(args: readonly ReadWord[], from: number): number {
  const end = args.findIndex(
    ({ text }, at) => at >= from && (text === ";" || (text === "+" && args[at - 1]?.text === "{}")),
  );
  return end < 0 ? args.length : end;
}

/** `tar cfz a b` is `tar -c -f a -z b`: the letters take the next words in order. */
export function dashFirst(args: readonly ReadWord[], takeNext: ReadonlySet<string>): readonly ReadWord[] {
  const [first, ...rest] = args;
  if (first === undefined || !/^[A-Za-z]+$/.test(first.text)) return args;
  const words: ReadWord[] = [];
  for (const letter of first.text) {
    const name = `-${letter}`;
    words.push(wordOfText(name));
    const value = takeNext.has(name) ? rest.shift() : undefined;
    if (value !== undefined) words.push(value);
  }
  return [...words, ...rest];
}

function misfit(at: number, problem: string): FormMisfit {
  return { at, problem };
}

/** A word in a sentence. No word ends its own quotation. */
export function say({ text }: Pick<ReadWord, "text">): string {
  const shown = text.length > 60 ? `${text.slice(0, 60)}...` : text;
  return `\`${shown.replaceAll("`", "'")}\``;
}

interface FoundOptions {
  readonly options: readonly ReadOption[];
  /** How many of the next words are values. */
  readonly taken: number;
}

interface ListedOptions {
  readonly style: OptionStyle;
  readonly listed: readonly FormOption[];
}

/** Reads the options in one word; a text names the one that is not listed. */
function readOptions(
  arg: ReadWord,
  next: ReadWord | undefined,
  { style, listed }: ListedOptions,
): FoundOptions | string {
  const { text } = arg;
  const find = (name: string): FormOption | undefined => listed.find(({ names }) => names.includes(name));
  const whole = find(text);
  if (whole !== undefined && (whole.value === undefined || whole.isOptional))
    return { options: [{ name: text, option: whole, value: undefined }], taken: 0 };
  if (whole !== undefined) {
    return withNext([], { name: text, option: whole }, next);
  }
  if (/^-\d+$/.test(text) && find("-NUMBER") !== undefined)
    return { options: [{ name: text, option: find("-NUMBER") ?? nothing, value: undefined }], taken: 0 };
  const equals = text.indexOf("=");
  const isLong = text.startsWith("--") || style === "single";
  if (isLong) {
    const name = equals < 0 ? text : text.slice(0, equals);
    const option = find(name) ?? (style === "single" && /^--[^-]/.test(name) ? find(name.slice(1)) : undefined);
    if (equals >= 0 && option !== undefined && option.value === undefined)
      return `the option ${say({ text: name })} is listed without a value`;
    if (equals < 0 || option?.value === undefined) return `the option ${say({ text: name })} is not listed`;
    return { options: [{ name, option, value: attachedValue(arg, equals + 1) }], taken: 0 };
  }
  return readBundle(arg, next, find);
}

const nothing: FormOption = { names: [], value: undefined, isOptional: false };

/** `-rf` is `-r` and `-f`; `-n5` and `-n 5` are alike. */
function readBundle(
  arg: ReadWord,
  next: ReadWord | undefined,
  find: (name: string) => FormOption | undefined,
): FoundOptions | string {
  const options: ReadOption[] = [];
  for (let at = 1; at < arg.text.length; at += 1) {
    const name = `-${arg.text.charAt(at)}`;
    const option = find(name);
    if (option === undefined) return `the option \`${name}\` is not listed`;
    const isLast = at === arg.text.length - 1;
    if (option.value === undefined || (isLast && option.isOptional)) options.push({ name, option, value: undefined });
    // GNU programs take `=x`, and Python's take `x`.
    else if (arg.text.charAt(at + 1) === "=") return `the value of \`${name}\` is read in two ways`;
    else if (!isLast) return { options: [...options, { name, option, value: attachedValue(arg, at + 1) }], taken: 0 };
    else return withNext(options, { name, option }, next);
  }
  return { options, taken: 0 };
}

/** An option whose value is the next word. Some programs read an option there a second time, as an option. */
function withNext(
  before: readonly ReadOption[],
  { name, option }: Pick<ReadOption, "name" | "option">,
  next: ReadWord | undefined,
): FoundOptions | string {
  if (next === undefined) return `the option \`${name}\` has no value`;
  if (/^--?[A-Za-z]/.test(next.text)) return `the value ${say(next)} of \`${name}\` looks like an option`;
  return { options: [...before, { name, option, value: next }], taken: 1 };
}

/** The part of a word from a position; the values of the word start with the same plain letters. */
function attachedValue(arg: ReadWord, from: number): ReadWord {
  const text = arg.text.slice(from);
  const before = arg.text.slice(0, from);
  const isPlain = arg.values?.every((value) => value.startsWith(before)) === true;
  if (!isPlain) return { ...wordOfText(text), values: undefined };
  return { ...arg, text, before, fixed: text, values: arg.values.map((value) => value.slice(from)), isMany: false };
}
