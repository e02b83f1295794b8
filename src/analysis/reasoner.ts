import { formulaOf } from "./formula.ts";
import { possible } from "./satisfy.ts";
import { isFalse, isTrue, type Condition, type Subject } from "./subject.ts";

/** A second engine: may the conditions hold together, of one call of the tool? Undefined where it cannot tell in time. */
export type SecondOpinion = (subject: Subject, conditions: readonly Condition[]) => Promise<boolean | undefined>;

/** Answers what cannot be. Intervals, sets and elimination first; what they leave open goes to the second engine. */
export class Reasoner {
  readonly #second: SecondOpinion | undefined;

  constructor(second?: SecondOpinion) {
    this.#second = second;
  }

  /** No call that the tool's rules see can fulfil the conditions. */
  async impossible(subject: Subject, ...conditions: readonly Condition[]): Promise<boolean> {
    const whole = [...subject.context, ...conditions];
    const formulas = whole.map(({ core, holds }) => formulaOf(core, holds));
    if (!possible(formulas, subject.world)) return true;
    return (await this.#second?.(subject, whole)) === false;
  }

  /** Whenever one condition holds, one of the others does. */
  async covered(subject: Subject, by: readonly Condition[], ...conditions: readonly Condition[]): Promise<boolean> {
    const opposite = by.map(({ core, holds }) => (holds ? isFalse(core) : isTrue(core)));
    return this.impossible(subject, ...conditions, ...opposite);
  }
}

/** Does it hold for every one? Those that come after one for which it does not are not asked. */
export async function every<Item>(items: readonly Item[], holds: (item: Item) => Promise<boolean>): Promise<boolean> {
  for (const item of items) {
    if (!(await holds(item))) return false;
  }
  return true;
}
