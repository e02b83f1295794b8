import type { Script } from "./script.ts";
import { and, equal, implies, not, or, type Sort, type Term } from "./term.ts";

/** The kind of the JSON value at a symbol. */
export const tags = { null: 0, boolean: 1, number: 2, text: 3, list: 4, object: 5 } as const;
export type Tag = keyof typeof tags;

/**
 * The representation of lists. `few`: all of their items, at most `itemsMax`; an example found this way is real. `any`:
 * lists of any length, with one item for each statement about "some item"; a difference excluded this way is excluded
 * for every length.
 */
export type ListView = "few" | "any";

export const itemsMax = 4;

/** The data that all symbols of one question share. */
export interface Sight {
  readonly script: Script;
  readonly view: ListView;
  /** The maximum number of schemas for one symbol: one for each contract on either side. */
  schemas: number;
}

interface Everywhere {
  readonly isTrue: Term;
  readonly of: (item: SymbolicValue) => Term;
}

/** A symbol for any JSON value that a question is about. Its parts are declared when they are first read. */
export class SymbolicValue {
  /** Unique for each symbol of one question. */
  readonly id: string;
  readonly #sight: Sight;
  readonly #script: Script;
  readonly #lengths = new Map<number, number>();
  /** The declared parts: names of parts, with their constants. */
  readonly parts: Map<string, Term> = new Map();
  readonly members: Map<string, SymbolicMember> = new Map();
  /** The known items: all of them, or some. */
  readonly items: SymbolicValue[] = [];
  /** For `any`: the items that have their own index. */
  readonly numbered: Map<number, SymbolicValue> = new Map();
  readonly #everywhere: Everywhere[] = [];
  readonly #done: number[] = [];
  readonly #greetings: ((item: SymbolicValue) => void)[] = [];

  constructor(sight: Sight) {
    this.id = sight.script.name();
    this.#sight = sight;
    this.#script = sight.script;
  }

  /** A list that every schema keeps short is represented with all its items. */
  get view(): ListView {
    return this.#sight.view === "few" || this.#isShort ? "few" : "any";
  }

  get #isShort(): boolean {
    const lengths = [...this.#lengths.values()];
    return lengths.length > 0 && lengths.length === this.#sight.schemas && lengths.every((most) => most <= itemsMax);
  }

  /** Must be called before anything is read: records the maximum length of a list in the schema with that number. */
  takesItems(schema: number, most: number): void {
    this.#lengths.set(schema, Math.max(this.#lengths.get(schema) ?? 0, most));
  }

  #part(name: string, sort: Sort, limit: (term: Term) => Term = () => "true"): Term {
    return this.parts.getOrInsertComputed(name, () => {
      const term = this.#script.constant(sort);
      this.#script.assert(limit(term));
      return term;
    });
  }

  /** Does the question read a list, here or inside, whose length no schema limits? */
  get readsLong(): boolean {
    if (this.parts.has("length") && !this.#isShort) return true;
    const inside = [...[...this.members.values()].map(({ symbol }) => symbol), ...this.items];
    return inside.some((symbol) => symbol.readsLong);
  }

  get tag(): Term {
    return this.#part("tag", "Int", (tag) => `(and (<= 0 ${tag}) (<= ${tag} 5))`);
  }

  is(tag: Tag): Term {
    return equal(this.tag, String(tags[tag]));
  }

  get boolean(): Term {
    return this.#part("boolean", "Bool");
  }

  get number(): Term {
    return this.#part("number", "Real");
  }

  get isWhole(): Term {
    return this.#script.isWhole(this.number);
  }

  matches(pattern: Term): Term {
    return this.#script.matches(this.text, pattern);
  }

  isMultipleOf(step: Term): Term {
    return this.#script.isWhole(`(/ ${this.number} ${step})`);
  }

  get text(): Term {
    return this.#part("text", "String");
  }

  get length(): Term {
    return this.#part("length", "Int", (length) =>
      this.view === "few" ? `(and (<= 0 ${length}) (<= ${length} ${itemsMax}))` : `(<= 0 ${length})`,
    );
  }

  /** Are there members that no contract names? */
  get others(): Term {
    return this.#part("others", "Bool");
  }

  member(name: string): SymbolicMember {
    return this.members.getOrInsertComputed(name, () => {
      return { present: this.#script.constant("Bool"), symbol: new SymbolicValue(this.#sight) };
    });
  }

  /** For `few`: every possible item, with the condition that it exists. */
  allItems(): readonly (readonly [isThere: Term, item: SymbolicValue])[] {
    while (this.items.length < itemsMax) this.#newItem();
    return this.items.map((item, at) => [`(< ${at} ${this.length})`, item]);
  }

  /** For `any`: the item at an index, if the list is that long. */
  itemAt(at: number): SymbolicValue {
    return this.numbered.getOrInsertComputed(at, () => this.#newItem());
  }

  #newItem(): SymbolicValue {
    const item = new SymbolicValue(this.#sight);
    this.items.push(item);
    for (const greet of this.#greetings) greet(item);
    return item;
  }

  /** Calls the function with every known item, and later with each new one. */
  greet(greeting: (item: SymbolicValue) => void): void {
    this.#greetings.push(greeting);
    for (const item of this.items) greeting(item);
  }

  every(of: (item: SymbolicValue) => Term): Term {
    if (this.view === "few") return and(...this.allItems().map(([isThere, item]) => implies(isThere, of(item))));
    const exception = this.#newItem();
    const there = of(exception);
    if (there === "true") return "true";
    const isTrue = this.#script.constant("Bool");
    this.#script.assert(or(isTrue, and(`(> ${this.length} 0)`, not(there))));
    this.#everywhere.push({ isTrue, of });
    this.#done.push(0);
    return isTrue;
  }

  /**
   * For `any`: asserts the statements about all items for each known item. Call it when nothing more is read.
   *
   * @returns whether there was anything to assert
   */
  settle(rounds: number): boolean {
    let said = false;
    if (rounds > 0) {
      for (const [at, { isTrue, of }] of this.#everywhere.entries()) {
        const from = this.#done[at] ?? 0;
        const items = this.items.slice(from);
        this.#done[at] = this.items.length;
        for (const item of items) this.#script.assert(implies(and(isTrue, `(> ${this.length} 0)`), of(item)));
        said ||= items.length > 0;
      }
    }
    for (const { symbol } of this.members.values()) said = symbol.settle(rounds) || said;
    for (const item of this.items) said = item.settle(rounds) || said;
    return said;
  }
}

export interface SymbolicMember {
  readonly present: Term;
  readonly symbol: SymbolicValue;
}
