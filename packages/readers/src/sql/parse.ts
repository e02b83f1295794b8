import { EvaluationError, library } from "../../../core/src/contract/function.ts";
import { textMax } from "./bounds.ts";

/** A syntax tree as PostgreSQL's parser prints it. */
export type Tree = null | boolean | number | string | readonly Tree[] | Fields;
export interface Fields {
  readonly [name: string]: Tree;
}

/** Nested brackets, and words and operators that can nest without brackets: well below the parser's own limit. */
const bracketsMax = 64;
const operatorsMax = 1500;

const postgres = library("the SQL parser", async () => {
  const parser = await import("libpg-query");
  await parser.loadModule();
  return parser;
});
export const load: () => Promise<void> = postgres.load;

/** After an internal error the parser's results are not reliable. */
let isBroken = false;

/** @throws {EvaluationError} always. `why` is a clause. */
export function doubt(why: string): never {
  throw new EvaluationError(`the SQL text is in doubt: ${why}`);
}

const operatorRunMax = 256;
const operatorRun = new RegExp(`[-~!@#^&|\x60?+*/%<>=]{${operatorRunMax + 1}}`);

/**
 * The statements of a text. @throws {EvaluationError} if it is not PostgreSQL, or if other parsers read it differently
 */
export function parseSql(text: string): readonly Fields[] {
  const { parseSync, scanSync } = postgres.use();
  if (text.length > textMax) doubt(`it is over ${textMax} characters long`);
  checkCharacters(text);
  // From each `+` and each `/*` in such a run the scanner reads the rest of it again, which takes quadratic time.
  if (operatorRun.test(text)) doubt(`it has over ${operatorRunMax} signs of operators in a row`);
  if (/^\s*$/.test(text)) doubt("it is empty");
  checkTokens(runParser(() => scanSync(text).tokens));
  const { stmts } = runParser(() => parseSync(text)) as unknown as { readonly stmts: readonly Fields[] };
  return stmts;
}

/**
 * Runs the parser, which is C compiled to WebAssembly. It stays usable after a syntax error, but not after another
 * error.
 */
function runParser<Found>(run: () => Found): Found {
  if (isBroken) doubt("the parser failed on an earlier text; restart the gate");
  try {
    return run();
  } catch (error) {
    const { name, message } = error as Error;
    isBroken = name === "RangeError" || name === "RuntimeError";
    return doubt(isBroken ? "the parser failed" : (message.split("\n", 1)[0] ?? ""));
  }
}

/** NUL would end the text for the parser, but not for the database. @throws {EvaluationError} */
function checkCharacters(text: string): void {
  const [odd] = /(?![\t\n\r])\p{Cc}|\p{Cs}/u.exec(text) ?? [];
  if (odd !== undefined) doubt(odd.isWellFormed() ? "it has a control character" : "it has half of a character");
  if (/\r(?!\n)/.test(text)) doubt("a carriage return ends a line in some parsers only");
}

interface SqlToken {
  readonly text: string;
  readonly tokenName: string;
  readonly keywordName: string;
}

/** @throws {EvaluationError} if other parsers read it differently, or if it may exceed the parser's nesting limit */
function checkTokens(tokens: readonly SqlToken[]): void {
  let [brackets, operators] = [0, 0];
  for (const { text, tokenName, keywordName } of tokens) {
    if (tokenName === "C_COMMENT") checkComment(text);
    else if (tokenName === "SQL_COMMENT") {
      if (!/^--(?:\s|-|$)/.test(text)) doubt("`--` starts a comment in some dialects only if a space follows");
    } else if (tokenName === "SCONST") {
      if (/^['nN].*\\'/s.test(text)) doubt("a text ends elsewhere in dialects where a backslash escapes");
    } else if (text === "(" || text === "[") brackets += 1;
    else if (text === ")" || text === "]") brackets -= 1;
    else if (nests(text, tokenName, keywordName)) operators += 1;
    if (brackets > bracketsMax || operators > operatorsMax) doubt("it is nested too deeply");
  }
}

function checkComment(text: string): void {
  if (/^\/\*M?!/i.test(text)) doubt("a comment with `/*!` runs in some dialects");
  if (text.includes("/*", 2)) doubt("a comment in a comment ends elsewhere in some dialects");
}

const flat = new Set(["null", "true", "false", "default", ",", ";", "."]);

function nests(text: string, tokenName: string, keywordName: string): boolean {
  if (flat.has(text.toLowerCase()) || /CONST$|^IDENT$|^PARAM$|COMMENT$/.test(tokenName)) return false;
  return keywordName !== "UNRESERVED_KEYWORD" && keywordName !== "COL_NAME_KEYWORD";
}
