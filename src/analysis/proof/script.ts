import type { Sort, Term } from "./term.ts";

/** A term longer than this gets a name where it is used more than once. */
const inlineMax = 120;

/** What is declared and asserted of one question, as text for the solver. */
export class Script {
  readonly #lines: string[] = [];
  readonly #named = new Map<Term, Term>();
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

  text(): string {
    return this.#lines.join("\n");
  }
}
