import { parseNumber } from "../../../wire/mod.ts";
import { compare, isExact, type Exact } from "../../value/rational.ts";
import { boolean } from "../../value/type.ts";
import type { ContractFunction } from "../../core/function.ts";

/**
 * Does a text name a value, as a whole? A part of a longer name is not a mention, and neither is a doubtful case.
 * Nothing is normalised, and only A to Z have two cases.
 */
export const mentionFunctions: readonly ContractFunction[] = [
  {
    name: "mentions",
    style: "function",
    parameters: ["string", "string"],
    result: boolean,
    doc: "Does the text mention the other one, whole and not as a part of a longer word, number, address or path? A to Z in either case.",
    examples: [
      ['mentions("Refund GB29, please.", "gb29")', "true"],
      ['mentions("Mail ann@example.com.evil.org", "ann@example.com")', "false"],
    ],
    // A long name is compared again at each position of the text where it may start.
    cost: ([text, name]) => (text as string).length * (1 + ((name as string).length >> 6)),
    run: ([text, name]) => mentionsName(text as string, name as string),
  },
  {
    name: "mentions",
    style: "function",
    parameters: ["string", "number"],
    result: boolean,
    doc: "Does the text mention the amount, in digits (`1,200.50`)? Not as a part of a percentage, a date, a time or a longer number.",
    examples: [
      ['mentions("the rent is $1,200 now", 1200)', "true"],
      ['mentions("it rose by 10% on 2024-05-10", 10)', "false"],
    ],
    run: ([text, amount]) => mentionsAmount(text as string, amount as Exact),
  },
];

const letter = /[\p{L}\p{N}_]/u;
/** Characters between words. Zero-width and other format characters do not separate words. */
const gap = /^[\p{Zs}\t\n\r\p{Sc}()[\]{}<>"'`‘’“”„«»;=#|*]$/u;
const digit = /^[0-9]$/;

function mentionsName(text: string, name: string): boolean {
  if (!letter.test(name)) return false;
  const [sought, searched] = [lowerAscii(name), lowerAscii(text)];
  for (let at = searched.indexOf(sought); at >= 0; at = searched.indexOf(sought, at + 1)) {
    if (startsWordAt(text, at) && endsAt(text, at + sought.length)) return true;
  }
  return false;
}

const amounts = /(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?/g;

function mentionsAmount(text: string, amount: Exact): boolean {
  for (const { 0: found, index } of text.matchAll(amounts)) {
    const end = index + found.length;
    if (!startsWordAt(text, index) || !endsAt(text, end) || isDoubtful(text, index, end)) continue;
    const value = parseNumber(found.replaceAll(",", ""));
    if (isExact(value) && compare(value, amount) === 0) return true;
  }
  return false;
}

/**
 * Digits that a reader may read as another number: `1.200` (a fraction, or more than a thousand?) and adjacent groups
 * of three digits (`2 200`, `2'200`).
 */
function isDoubtful(text: string, from: number, to: number): boolean {
  if (/^[1-9][0-9]{0,2}\.[0-9]{3}$/.test(text.slice(from, to))) return true;
  const before = text.slice(Math.max(0, from - 5), from);
  const after = text.slice(to, to + 5);
  const group = /^[0-9]{3}(?![0-9])/;
  const leads = /^[0-9]{1,3}$/.test(text.slice(from, to)) || /[ '’\p{Zs}][0-9]{3}$/u.test(before);
  if (leads && /^['’\p{Zs}]/u.test(after) && group.test(after.slice(1))) return true;
  return /(?:^|[^0-9])[0-9]{1,3}['’\p{Zs}]$/u.test(before) && group.test(text.slice(from, from + 4));
}

/** Does a name that starts here start a word? */
function startsWordAt(text: string, at: number): boolean {
  const before = characterBefore(text, at);
  if (before === "" || gap.test(before)) return true;
  if (before !== "," && before !== ":") return false;
  return !(digit.test(characterBefore(text, at - 1)) && digit.test(characterAt(text, at)));
}

/** Does a name that ends here end a word? A full stop ends it if a gap follows, but not if a longer name continues. */
function endsAt(text: string, at: number): boolean {
  const after = characterAt(text, at);
  if (after === "" || gap.test(after)) return true;
  if (after === ",") return !(digit.test(characterAt(text, at + 1)) && digit.test(characterBefore(text, at)));
  if (!/[.:!?]/.test(after)) return false;
  let beyond = at + 1;
  while (/[.:!?,]/.test(characterAt(text, beyond))) beyond += 1;
  const next = characterAt(text, beyond);
  return next === "" || gap.test(next);
}

function characterAt(text: string, at: number): string {
  return Array.from(text.slice(at, at + 2))[0] ?? "";
}

function characterBefore(text: string, at: number): string {
  return Array.from(text.slice(Math.max(0, at - 2), at)).at(-1) ?? "";
}

function lowerAscii(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
