import type { Done } from "./engine.ts";
import type { Expression, Scenario } from "./language.ts";
import type { Event, Reached } from "./model.ts";
import { parts } from "./walk.ts";

/** Counts how often each named situation occurred. */
export class Coverage {
  readonly #counts = new Map<string, number>();

  add(name: string): void {
    this.#counts.set(name, this.of(name) + 1);
  }

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  scenario({ mode, contracts }: Scenario): void {
    this.add(`mode ${mode}`);
    this.add(`contracts ${contracts.length}`);
    for (const { counters, rules, lets } of contracts) {
      for (const rule of rules) {
        this.add(`rule ${rule.final ? "final " : ""}${rule.verdict}`);
        [rule.when, ...[...lets, ...rule.lets].map(([, expression]) => expression)].forEach((each) =>
          this.expression(each),
        );
      }
      for (const { counting = "attempts", within, since, sum, when } of counters) {
        this.add(`counting ${counting}`);
        this.add(`within ${within === undefined ? "ever" : "unit" in within ? within.unit : "rolling"}`);
        if (since !== undefined) this.add("since");
        if (sum !== undefined) this.add("sum");
        if (when !== undefined) this.add("when");
      }
    }
  }

  expression(expression: Expression): void {
    const more =
      expression.kind === "binary"
        ? expression.operator
        : expression.kind === "fold"
          ? expression.macro
          : expression.kind === "call" || expression.kind === "root"
            ? expression.name
            : "";
    this.add(`expression ${expression.kind} ${more}`.trimEnd());
    parts(expression).forEach((part) => this.expression(part));
  }

  call(reached: Reached, events: readonly Event[], done: Done): void {
    this.add("calls");
    this.add(`verdict ${reached.verdict}`);
    if (reached.answered !== reached.verdict) this.add(`${reached.verdict} answered ${reached.answered}`);
    const named = /\$[a-z]+/.exec(reached.rule)?.[0] ?? "a rule";
    this.add(`reached by ${reached.errors.some(([name]) => name === reached.rule) ? `an error in ${named}` : named}`);
    for (const [, why] of reached.errors) this.add(`error: ${why}`);
    if (reached.fired.length > 1) this.add("several rules fired");
    for (const [name, value] of reached.read) {
      if (name.endsWith("]")) this.add(value === "0" ? "a value asked for, unknown" : "a value asked for, known");
      else this.add(value === "0" ? "counter read, 0" : "counter read, more");
    }
    if (reached.observed.length > 0) this.add("a rule that observes fired");
    if (events.some(({ amount }) => amount.d !== 1n)) this.add("a move by a fraction");
    if (done.updates.length > 0) this.add("moved");
  }

  toString(): string {
    const names = [...this.#counts.keys()].toSorted();
    return names.map((name) => `${String(this.of(name)).padStart(9)}  ${name}`).join("\n");
  }
}
