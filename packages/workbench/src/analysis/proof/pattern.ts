import { characterMax, literal, type Term } from "./term.ts";

/**
 * An RE2 pattern as a regular expression of the solver. `whole`: it must match the whole text; else any part of it.
 *
 * @returns undefined if the pattern uses a feature that is not translated: its matches are then unknown
 */
export function patternTerm(pattern: string): Term | undefined {
  try {
    const reader = new PatternReader(pattern);
    const term = reader.alternatives("outside");
    return reader.isDone ? term : undefined;
  } catch (error) {
    if (error instanceof UnsupportedPattern) return undefined;
    throw error;
  }
}

class UnsupportedPattern extends Error {}

type CharacterRange = readonly [from: number, to: number];

const digits: readonly CharacterRange[] = [[0x30, 0x39]];
const letters: readonly CharacterRange[] = [
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
];
const spaces: readonly CharacterRange[] = [
  [0x09, 0x0a],
  [0x0c, 0x0d],
  [0x20, 0x20],
];
const newLine: readonly CharacterRange[] = [[0x0a, 0x0a]];
const named: Readonly<Record<string, readonly CharacterRange[]>> = {
  d: digits,
  D: others(digits),
  w: letters,
  W: others(letters),
  s: spaces,
  S: others(spaces),
};
const controls: Readonly<Record<string, number>> = { n: 0x0a, t: 0x09, r: 0x0d, f: 0x0c, v: 0x0b };

class PatternReader {
  readonly #characters: readonly string[];
  #at = 0;

  constructor(pattern: string) {
    this.#characters = Array.from(pattern);
  }

  get isDone(): boolean {
    return this.#at === this.#characters.length;
  }

  #peek(): string | undefined {
    return this.#characters[this.#at];
  }

  #next(): string {
    const character = this.#characters[this.#at];
    if (character === undefined) throw new UnsupportedPattern();
    this.#at += 1;
    return character;
  }

  #skip(wanted: string): boolean {
    if (this.#peek() !== wanted) return false;
    this.#at += 1;
    return true;
  }

  /** `outside`: not in a group, so `^` and `$` are at the ends of each alternative. */
  alternatives(symbol: "outside" | "inside"): Term {
    const found = [this.#sequence(symbol)];
    while (this.#skip("|")) found.push(this.#sequence(symbol));
    return found.length === 1 ? (found[0] ?? "") : `(re.union ${found.join(" ")})`;
  }

  #sequence(symbol: "outside" | "inside"): Term {
    const open = symbol === "outside";
    const parts: Term[] = [];
    if (open && !this.#skip("^")) parts.push("re.all");
    let closed = false;
    for (let next = this.#peek(); next !== undefined && next !== "|" && next !== ")"; next = this.#peek()) {
      if (closed) throw new UnsupportedPattern();
      if (open && this.#skip("$")) closed = true;
      else parts.push(this.#readRepetition());
    }
    if (open && !closed) parts.push("re.all");
    if (parts.length === 0) return '(str.to_re "")';
    return parts.length === 1 ? (parts[0] ?? "") : `(re.++ ${parts.join(" ")})`;
  }

  #readRepetition(): Term {
    let term = this.#single();
    for (;;) {
      const times = this.#times();
      if (times === undefined) return term;
      const [least, most] = times;
      this.#skip("?");
      if (most !== undefined) term = `((_ re.loop ${least} ${most}) ${term})`;
      else if (least === 0) term = `(re.* ${term})`;
      else term = least === 1 ? `(re.+ ${term})` : `(re.++ ((_ re.loop ${least} ${least}) ${term}) (re.* ${term}))`;
    }
  }

  #times(): readonly [least: number, most: number | undefined] | undefined {
    if (this.#skip("*")) return [0, undefined];
    if (this.#skip("+")) return [1, undefined];
    if (this.#skip("?")) return [0, 1];
    if (this.#peek() !== "{") return undefined;
    const written = /^\{([0-9]{1,4})(,([0-9]{1,4})?)?\}/.exec(this.#characters.slice(this.#at).join(""));
    if (written === null) throw new UnsupportedPattern();
    this.#at += written[0].length;
    const least = Number(written[1]);
    if (written[2] === undefined) return [least, least];
    return [least, written[3] === undefined ? undefined : Number(written[3])];
  }

  #single(): Term {
    const character = this.#next();
    switch (character) {
      case "(":
        return this.#group();
      case "[":
        return this.#class();
      case ".":
        return rangesTerm(others(newLine));
      case "\\":
        return rangesTerm(this.#readEscape());
      case "^":
      case "$":
      case "*":
      case "+":
      case "?":
      case "{":
        throw new UnsupportedPattern();
      default:
        return characterTerm(character);
    }
  }

  #group(): Term {
    if (this.#skip("?") && !this.#skip(":")) throw new UnsupportedPattern();
    const term = this.alternatives("inside");
    if (!this.#skip(")")) throw new UnsupportedPattern();
    return term;
  }

  #readEscape(): readonly CharacterRange[] {
    const character = this.#next();
    const known = named[character];
    if (known !== undefined) return known;
    const control = controls[character];
    if (control !== undefined) return [[control, control]];
    if (/[A-Za-z0-9]/.test(character)) throw new UnsupportedPattern();
    const code = character.codePointAt(0) ?? 0;
    return [[code, code]];
  }

  #class(): Term {
    const isNegative = this.#skip("^");
    const ranges: CharacterRange[] = [];
    for (let isFirst = true; isFirst || this.#peek() !== "]"; isFirst = false) {
      const found = this.#classItem();
      const [low] = found;
      if (this.#peek() !== "-" || this.#characters[this.#at + 1] === "]" || found.length > 1) {
        ranges.push(...found);
        continue;
      }
      this.#next();
      const [high] = this.#classItem();
      if (low === undefined || high === undefined || high[1] < low[0]) throw new UnsupportedPattern();
      ranges.push([low[0], high[1]]);
    }
    this.#next();
    return rangesTerm(isNegative ? others(ranges) : ranges);
  }

  #classItem(): readonly CharacterRange[] {
    const character = this.#next();
    if (character === "\\") return this.#readEscape();
    if (character === "[" && this.#peek() === ":") throw new UnsupportedPattern();
    const code = character.codePointAt(0) ?? 0;
    return [[code, code]];
  }
}

/** Every character that is in none of the ranges. */
function others(ranges: readonly CharacterRange[]): readonly CharacterRange[] {
  const found: CharacterRange[] = [];
  let from = 0;
  for (const [low, high] of ranges.toSorted((a, b) => a[0] - b[0])) {
    if (low > from) found.push([from, low - 1]);
    from = Math.max(from, high + 1);
  }
  if (from <= characterMax) found.push([from, characterMax]);
  return found;
}

function rangesTerm(ranges: readonly CharacterRange[]): Term {
  const terms = ranges
    .filter(([from]) => from <= characterMax)
    .map(([from, to]) => `(re.range ${codeTerm(from)} ${codeTerm(Math.min(to, characterMax))})`);
  if (terms.length === 0) return "re.none";
  return terms.length === 1 ? (terms[0] ?? "") : `(re.union ${terms.join(" ")})`;
}

function codeTerm(code: number): Term {
  return literal(String.fromCodePoint(code)) ?? '""';
}

function characterTerm(character: string): Term {
  const text = literal(character);
  if (text === undefined) throw new UnsupportedPattern();
  return `(str.to_re ${text})`;
}

/** The same texts, with A to Z in either case. */
export function eitherCase(text: string): Term | undefined {
  const parts = Array.from(text, (character) => {
    const written = literal(character);
    // The result of lowerAscii has no capital letters.
    if (written === undefined || /[A-Z]/.test(character)) return undefined;
    const upper = /[a-z]/.test(character) ? character.toUpperCase() : undefined;
    return upper === undefined ? `(str.to_re ${written})` : `(re.union (str.to_re ${written}) (str.to_re "${upper}"))`;
  });
  if (parts.includes(undefined)) return undefined;
  if (parts.length === 0) return '(str.to_re "")';
  return parts.length === 1 ? parts[0] : `(re.++ ${parts.join(" ")})`;
}
