import type { Dice } from "../../campaign/random.ts";

const token = /'(?:[^']|'')*'|"[^"]*"|\$\w*\$|--[^\n]*\n|\/\*.*?\*\/|\w+|::|[^\s\w]|\s+/gs;

const harmful = [
  ".pg_read_file",
  ".nextval",
  ".lo_unlink",
  ".pg_sleep",
  "evil.",
  "yours.",
  "operator(evil.@@)",
  "operator(evil.<)",
  "#~#",
  "@#@",
  "::checked",
  "::evil.checked",
  "::span",
  "evil.date",
  "hidden",
  "secret",
  "from secret",
  "nextval('s')",
  "for update",
];
const plain = [
  "(",
  ")",
  ",",
  ".",
  "::",
  "[1]",
  "*",
  ";",
  "::text",
  "select",
  "from",
  "as",
  "not",
  "null",
  "lateral",
  "only",
  "/* */",
  "'a'",
  "1",
  "any",
  "all",
  "using <",
  "over ()",
  "with ordinality",
  'collate "C"',
  "analyze",
  "into",
  "public.",
  "pg_catalog.",
  "orders",
  "id",
];

/**
 * One of the planted functions after a dot, and not called with brackets. The reader takes it for a column, which is a
 * documented limit.
 */
const plantedAfterDot =
  /\.(?:\s|\/\*.*?\*\/|--[^\n]*\n)*"?(?:hidden|several|spread|gather|coalesce|greatest|nullif|trim|grouping)\b"?(?!\s*\()/is;

/** Changes some tokens of a statement. Most results are still valid SQL, or nearly valid. */
export function mutate(text: string, dice: Dice, names: readonly string[]): string {
  const changed = mutateTokens(text, dice, names);
  return plantedAfterDot.test(changed) ? mutate(text, dice, names) : changed;
}

function mutateTokens(text: string, dice: Dice, names: readonly string[]): string {
  const tokens = text.match(token) ?? [];
  const count = 1 + Math.floor(dice.roll() * 2);
  for (let change = 0; change < count; change += 1) mutateOnce(tokens, dice, names);
  return tokens.join("");
}

function mutateOnce(tokens: string[], dice: Dice, names: readonly string[]): void {
  const at = Math.floor(dice.roll() * tokens.length);
  const other = Math.floor(dice.roll() * tokens.length);
  const found = tokens[at] ?? "";
  switch (
    dice.weighted({ quote: 4, word: 4, case: 3, space: 3, remove: 2, swap: 1, copy: 2, plain: 3, harmful: 4, name: 2 })
  ) {
    case "quote":
      if (/^[a-z_]\w*$/.test(found)) tokens[at] = `"${found}"`;
      break;
    case "word": {
      // One name of the statement replaces another.
      const words = tokens.filter((each) => /^[a-z_]\w+$/.test(each));
      if (/^[a-z_]\w+$/.test(found)) tokens[at] = dice.oneOf(words);
      break;
    }
    case "case":
      if (/^\w+$/.test(found)) tokens[at] = found.toUpperCase();
      break;
    case "space":
      tokens.splice(at, 0, dice.oneOf(["\n", " ", "/* x */", "\t"]));
      break;
    case "remove":
      tokens.splice(at, 1);
      break;
    case "swap":
      [tokens[at], tokens[other]] = [tokens[other] ?? "", found];
      break;
    case "copy":
      tokens.splice(other, 0, ...tokens.slice(at, at + 3));
      break;
    case "plain":
      tokens.splice(at, 0, ` ${dice.oneOf(plain)} `);
      break;
    case "harmful":
      tokens.splice(at, 0, dice.oneOf(harmful), " ");
      break;
    case "name":
      tokens.splice(at, 0, `.${dice.oneOf(names)}`);
      break;
  }
}
