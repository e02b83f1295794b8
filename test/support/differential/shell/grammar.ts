import type { Dice } from "../../campaign/random.ts";

/** Writes one piece of a shell text. */
export type Production = (g: Grammar) => string;

/** The productions of one kind of piece, by name. The first is the simplest one. */
export interface Kind {
  readonly productions: Readonly<Record<string, Production>>;
  /** A whole text around one piece of this kind. */
  readonly frame: (g: Grammar, piece: string) => string;
  /** How often the text gives values to variables first. */
  readonly given?: number;
}

const deepest = 5;
/** How often a piece is the simplest of its kind, because a text full of special pieces is nearly always a doubt. */
const simpleShare = 0.55;

/** Joins parts of a text. */
export function joined(...parts: readonly string[]): string {
  return parts.join("");
}

/** Texts that run, write or print something if they are code, and do nothing if they are text. */
const hostileTexts: readonly string[] = [
  ..."$(pwn) `pwn` ;pwn; |pwn &&pwn &pwn& >new >precious.txt <(pwn) >(pwn) }pwn )pwn ));pwn );pwn;( `pwn pwn x;pwn".split(
    " ",
  ),
  ...'a[$(pwn)] a[b[0]$(pwn)] a[[]$(pwn)] a["]"$(pwn)] a[`pwn`] a[${b[$(pwn)]}] a[$(pwn)]=1 x[$(pwn)]+1'.split(" "),
  ..."${x:=$(pwn)} ${x-`pwn`} $((a[$(pwn)])) $[a[$(pwn)]] PATH=11 ';pwn;' \";pwn;\" {.env,a} $KEY ${KEY} $(<.env)".split(
    " ",
  ),
  ..."\npwn\n|${ pwn; }|#\npwn|\nE\npwn\n|touch PWNED|]] ;pwn| pwn|; cat .env|; cat ../outside/secret".split("|"),
];

/** Writes one text, and remembers which productions it used. */
export class Grammar {
  readonly used: Set<string> = new Set();
  /** The parent of the working folder, for absolute paths. */
  readonly area: string;
  readonly dice: Dice;
  /** The production that this text is about. */
  readonly #focus: string;
  /** Productions that appear only as the focus. */
  readonly #rare: ReadonlySet<string>;
  #depth = 0;

  constructor(options: { dice: Dice; area: string; focus: string; rare: ReadonlySet<string> }) {
    this.dice = options.dice;
    this.area = options.area;
    this.#focus = options.focus;
    this.#rare = options.rare;
  }

  one<Value>(...values: readonly Value[]): Value {
    return this.dice.oneOf(values);
  }

  chance(share: number): boolean {
    return this.dice.roll() < share;
  }

  some(least: number, most: number, write: () => string): readonly string[] {
    return Array.from({ length: least + Math.floor(this.dice.roll() * (most - least + 1)) }, write);
  }

  /** Writes a piece of a kind. */
  piece({ productions }: Kind): string {
    const names = Object.keys(productions);
    const name = this.#choose(names);
    this.used.add(name);
    this.#depth += 1;
    const text = productions[name]?.(this) ?? "";
    this.#depth -= 1;
    return text;
  }

  #choose(names: readonly string[]): string {
    if (names.includes(this.#focus) && !this.used.has(this.#focus)) return this.#focus;
    const [simplest = ""] = names;
    if (this.#depth > deepest || this.chance(simpleShare)) return simplest;
    return this.dice.oneOf(names.filter((name) => !this.#rare.has(name)));
  }

  /** Values for the variables: a variable of the environment may contain anything, so evaluating it is a doubt. */
  given(share: number): string {
    if (!this.chance(share)) return "";
    return this.one("x=1 y=2 a=1 b=3; ", "x=1 y=2 a=1 b=3\n", "x=0 y=3 a=2 b=1; ", "none=1 x=2 a=(1 2) y=0 b=1; ");
  }

  /** Writes a word that opens no harmful file: most are names of files in the working folder. */
  name(): string {
    return this.one("a.txt", "b.txt", "src/c.txt", "a", "b", "x", "pwn", "none", "1", "=");
  }

  /** Writes a file to read: seldom one that must not be read. */
  file(): string {
    if (this.chance(0.12)) return this.secret();
    return this.one("a.txt", "b.txt", "src/c.txt", "none", "./a.txt");
  }

  secret(): string {
    const outside = "../outside/secret";
    return this.one(
      ".env",
      outside,
      `${this.area}/${outside.slice(3)}`,
      "/etc/passwd",
      ".ssh/id",
      "~/secret",
      `'a\nb/../${outside}'`,
    );
  }

  /** Writes a file to write: the two scratch files, or seldom another. */
  target(): string {
    if (this.chance(0.1)) return this.one("precious.txt", "new", "../outside/new", `${this.area}/app/new`);
    return this.one("written", "scratch.txt", "/dev/null");
  }

  hostile(): string {
    return this.chance(0.3)
      ? this.one("$(pwn)", "`pwn`", ";pwn;", "a[$(pwn)]", "a[$(=)]")
      : this.dice.oneOf(hostileTexts);
  }
}
