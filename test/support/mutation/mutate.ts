/**
 * Defects for controls, planted in a program's parse tree. Formatting, comments, types and the function's file do not
 * matter. A pattern must match exactly once, so that a control cannot become stale unnoticed.
 */
import { readFileSync } from "node:fs";
import { noteMutated } from "../controls/control.ts";
import { isExpression, matchesIn, namedNodes, node, parse, patternOf, walk, type Match, type Node } from "./tree.ts";

interface Target {
  /** A function, method, class or variable with all names around it: `HeadPin.#write`, `limits`. */
  readonly within: string;
  /** The end of the module's path without `.ts`, such as `tree/head`; needed only if two modules have the name. */
  readonly module?: string;
}

/** One change of a program. */
export type Mutation = Target &
  (
    | {
        /**
         * An expression, or statements with their semicolons. `$name` stands for any expression or statement, and
         * `$$name` for the rest of a list.
         */
        readonly find: string;
        /** The replacement: `$name` and `$$name` are the matched parts, `$found` is the whole match. */
        readonly put: string;
      }
    | {
        /** A replaced part of one text in quotes or backticks, such as an SQL statement. */
        readonly text: string;
        readonly put: string;
      }
    /** Another initial value of a variable. */
    | { readonly value: string }
    /** Statements to add before or after all others of a function. */
    | { readonly first: string }
    | { readonly last: string }
  );

/** Every match of a pattern in a program, each changed in a copy. */
export interface Sweep {
  readonly find: string;
  readonly put: string;
}

/** A changed program, and the source text of the changed part. */
export interface Swept {
  readonly found: string;
  readonly text: string;
}

type Language = "js" | "ts";

/** Returns a JavaScript or TypeScript program with all the mutations. */
export function mutatedFile(file: string, mutations: readonly Mutation[]): string {
  noteMutated(file);
  return mutatedText(readFileSync(file, "utf8"), mutations, /\.m?ts$/.test(file) ? "ts" : "js");
}

/** @throws if a mutation finds no match or several, or the result does not parse */
export function mutatedText(source: string, mutations: readonly Mutation[], lang: Language = "ts"): string {
  return mutations.reduce((text, mutation) => {
    const changed = changedText(text, mutation, lang);
    if (changed === text) throw faultOf(mutation, "it changes nothing");
    return parses(changed, mutation, lang);
  }, source);
}

/** Returns copies of the program, each with one match of the pattern changed. */
export function sweptFile(file: string, { find, put }: Sweep): readonly Swept[] {
  noteMutated(file);
  const text = readFileSync(file, "utf8");
  const lang = file.endsWith(".ts") ? "ts" : "js";
  const pattern = patternOf(find, lang);
  return matchesIn(parse(text, lang), pattern, text).map((match) => ({
    found: text.slice(match.start, match.end),
    text: replaced(text, match, put, pattern.isExpression && isExpression(put, lang)),
  }));
}

/** Returns whether a program has something of that name. */
export function hasName(text: string, within: string): boolean {
  return (namedNodes(parse(text, "ts")).get(within)?.length ?? 0) > 0;
}

export function faultOf(mutation: Mutation, problem: string): Error {
  return new Error(`the mutation ${JSON.stringify(mutation)} cannot be made: ${problem}`);
}

function changedText(text: string, mutation: Mutation, lang: Language): string {
  const { within } = mutation;
  const named = namedNodes(parse(text, lang)).get(within) ?? [];
  const [target] = named;
  if (target === undefined || named.length > 1)
    throw faultOf(mutation, `${within} is there ${named.length} times, not once`);
  if ("find" in mutation) {
    const pattern = patternOf(mutation.find, lang);
    const match = theOne(matchesIn(target, pattern, text), mutation);
    return replaced(text, match, mutation.put, pattern.isExpression && isExpression(mutation.put, lang));
  }
  if ("text" in mutation)
    return replaced(text, theOne(matchesOfText(target, mutation.text, text), mutation), mutation.put, false);
  if ("value" in mutation) {
    const value = node(target["init"]) ?? node(target["value"]);
    if (value === undefined) throw faultOf(mutation, `${within} has no initial value`);
    return spliced(text, value.start, value.end, mutation.value);
  }
  const body = bodyOf(target);
  if (body === undefined) throw faultOf(mutation, `${within} is not a function with a body`);
  return "first" in mutation
    ? spliced(text, body.start + 1, body.start + 1, ` ${mutation.first} `)
    : spliced(text, body.end - 1, body.end - 1, ` ${mutation.last} `);
}

/** Returns the body of a function, a method, or a variable that is a function. */
function bodyOf(target: Node): Node | undefined {
  const made = node(target["value"]) ?? node(target["init"]) ?? target;
  const body = node(made["body"]);
  return body?.type === "BlockStatement" ? body : undefined;
}

function matchesOfText(within: Node, wanted: string, text: string): readonly Match[] {
  const found: Match[] = [];
  walk(within, ({ type, value, start, end }) => {
    if (type !== "TemplateElement" && (type !== "Literal" || typeof value !== "string")) return;
    for (
      let at = text.indexOf(wanted, start);
      at !== -1 && at + wanted.length <= end;
      at = text.indexOf(wanted, at + 1)
    )
      found.push({ start: at, end: at + wanted.length, holes: new Map() });
  });
  return found;
}

function theOne(matches: readonly Match[], mutation: Mutation): Match {
  const [match] = matches;
  if (match === undefined || matches.length > 1)
    throw faultOf(mutation, `${mutation.within} has ${matches.length} such places, not one`);
  return match;
}

function replaced(text: string, { start, end, holes }: Match, put: string, isOperand: boolean): string {
  const all = new Map([...holes, ["$found", text.slice(start, end)]]);
  const filled = put.replaceAll(/\$\$?[a-z]\w*/g, (name) => all.get(name) ?? name);
  return spliced(text, start, end, isOperand ? `(${filled})` : filled);
}

function spliced(text: string, start: number, end: number, put: string): string {
  return text.slice(0, start) + put + text.slice(end);
}

function parses(text: string, mutation: Mutation, lang: Language): string {
  try {
    parse(text, lang);
    return text;
  } catch (error) {
    throw faultOf(mutation, `the program does not parse with it (${(error as Error).message})`);
  }
}
