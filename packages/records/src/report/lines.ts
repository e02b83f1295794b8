import { otherGroups } from "../replay/verdict-changes.ts";

/** Names beyond this number are counted together: bounds memory for any history. */
export const linesMax = 10_000;

/** Counts by name. */
export class Lines<Line> {
  readonly #make: () => Line;
  readonly #sizeOf: (line: Line) => number;
  readonly #lines = new Map<string, Line>();

  constructor(make: () => Line, sizeOf: (line: Line) => number) {
    this.#make = make;
    this.#sizeOf = sizeOf;
  }

  of(name: string): Line {
    const own = this.#lines.has(name) || this.#lines.size < linesMax ? name : otherGroups;
    return this.#lines.getOrInsertComputed(own, this.#make);
  }

  /** The largest lines first. */
  get lines(): readonly (readonly [name: string, line: Line])[] {
    return [...this.#lines].toSorted(
      ([a, one], [b, other]) => this.#sizeOf(other) - this.#sizeOf(one) || (a < b ? -1 : 1),
    );
  }
}
