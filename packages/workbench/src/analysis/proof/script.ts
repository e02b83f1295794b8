import type { Sort, Term } from "./term.ts";

/** A longer term gets a name if it is used more than once. */
const inlineMax = 120;

/** The declarations and assertions of one question, as text for the solver. */
export class Script {
  readonly #lines: string[] = [];
  readonly #named = new Map<Term, Term>();
  /** Terms that are made once, with their assertions. */
  readonly #made = new Map<string, Term>();
  /** The constants that get values in a model. */
  readonly constants: Term[] = [];
  #names = 0;

  /** A unique name. */
  name(): string {
    this.#names += 1;
    return `p${this.#names}`;
  }

  constant(sort: Sort): Term {
    const name = `c${this.constants.length}`;
    this.constants.push(name);
    this.#lines.push(`(declare-const ${name} ${sort})`);
    return name;
  }

  assert(term: Term): void {
    if (term !== "true") this.#lines.push(`(assert ${term})`);
  }

  /** The same term, replaced by a name if it is long: a shared term is written once. */
  shareTerm(sort: Sort, term: Term): Term {
    if (term.length <= inlineMax) return term;
    return this.#named.getOrInsertComputed(term, () => {
      const name = `t${this.#named.size}`;
      this.#lines.push(`(define-fun ${name} () ${sort} ${term})`);
      return name;
    });
  }

  /** Is the number whole? Then it equals an integer constant, with which the solver reasons much faster. */
  isWhole(number: Term): Term {
    this.wholeOf(number);
    return `(is_int ${number})`;
  }

  /** An integer that equals the number if it is whole. */
  wholeOf(number: Term): Term {
    return this.#made.getOrInsertComputed(`whole ${number}`, () => {
      const whole = this.constant("Int");
      this.assert(`(=> (is_int ${number}) (= ${number} (to_real ${whole})))`);
      return whole;
    });
  }

  /**
   * Does the text match? Written as "matches this, or matches the complement": the solver then decides several patterns
   * of one text together. Otherwise it cannot decide a negated pattern next to others.
   */
  matches(text: Term, pattern: Term): Term {
    return this.#made.getOrInsertComputed(`${text} matches ${pattern}`, () => {
      const isTrue = this.constant("Bool");
      this.assert(`(ite ${isTrue} (str.in_re ${text} ${pattern}) (str.in_re ${text} (re.comp ${pattern})))`);
      return isTrue;
    });
  }

  text(): string {
    return this.#lines.join("\n");
  }
}
