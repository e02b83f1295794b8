import type { Sort, Term } from "./term.ts";

/** A term longer than this gets a name where it is used more than once. */
const inlineMax = 120;

/** What is declared and asserted of one question, as text for the solver. */
export class Script {
  readonly #lines: string[] = [];
  readonly #named = new Map<Term, Term>();
  readonly #made = new Map<string, Term>();
  readonly #constants: Term[] = [];
  #names = 0;

  /** The constants that a model gives values to. */
  get constants(): readonly Term[] {
    return this.#constants;
  }

  /** A name that no other has. */
  name(): string {
    this.#names += 1;
    return `p${this.#names}`;
  }

  constant(sort: Sort): Term {
    const name = `c${this.#constants.length}`;
    this.#constants.push(name);
    this.#lines.push(`(declare-const ${name} ${sort})`);
    return name;
  }

  assert(term: Term): void {
    if (term !== "true") this.#lines.push(`(assert ${term})`);
  }

  /** The same term, by a name where it is long: what is shared is written once. */
  shared(sort: Sort, term: Term): Term {
    if (term.length <= inlineMax) return term;
    const known = this.#named.get(term);
    if (known !== undefined) return known;
    const name = `t${this.#named.size}`;
    this.#named.set(term, name);
    this.#lines.push(`(define-fun ${name} () ${sort} ${term})`);
    return name;
  }

  /** Makes a term once, with what is asserted of it. */
  once(key: string, make: () => Term): Term {
    const known = this.#made.get(key) ?? make();
    this.#made.set(key, known);
    return known;
  }

  /** Is the number a whole one? Then it is that of an integer constant, which the solver reasons with far sooner. */
  isWhole(number: Term): Term {
    this.wholeOf(number);
    return `(is_int ${number})`;
  }

  /** An integer that the number is equal to where it is whole. */
  wholeOf(number: Term): Term {
    return this.once(`whole ${number}`, () => {
      const whole = this.constant("Int");
      this.assert(`(=> (is_int ${number}) (= ${number} (to_real ${whole})))`);
      return whole;
    });
  }

  /**
   * Does the text match? Said as "matches this, or matches what this does not": several patterns of one text are then
   * decided at once, where a denied one beside others is not decided at all.
   */
  matches(text: Term, pattern: Term): Term {
    return this.once(`${text} matches ${pattern}`, () => {
      const holds = this.constant("Bool");
      this.assert(`(ite ${holds} (str.in_re ${text} ${pattern}) (str.in_re ${text} (re.comp ${pattern})))`);
      return holds;
    });
  }

  text(): string {
    return this.#lines.join("\n");
  }
}
