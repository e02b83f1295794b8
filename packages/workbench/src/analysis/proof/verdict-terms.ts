import type { Counter } from "../../../../readers/src/contract.ts";
import {
  spellValue,
  type Core,
  type KeyPart,
  type Requirement,
  type Route,
  type ToolPlan,
} from "../../../../readers/src/ir.ts";
import type { SymbolicValue } from "./symbolic-value.ts";
import { declareSchema, meets } from "./shape-term.ts";
import { and, choose, not, or, type Term } from "./term.ts";
import type { ConditionTranslator } from "./translate.ts";
import type { SymbolicCall } from "./world.ts";

/** When a plan's verdict is BLOCK, and when it is ESCALATE; otherwise it is ALLOW. */
export interface VerdictTerms {
  readonly blocks: Term;
  readonly escalates: Term;
}

/** The decision of one plan on any call, as terms over the world. The world must have each counter that the plan reads. */
export class PlanTerms {
  /** The schemas and writers that every plan has, by their spelling: they are not translated. */
  readonly #closed: ReadonlySet<string>;
  readonly #plan: ToolPlan;
  readonly #translator: ConditionTranslator;
  readonly #world: SymbolicCall;

  constructor(plan: ToolPlan, translator: ConditionTranslator, closed: ReadonlySet<string> = new Set()) {
    this.#closed = closed;
    this.#plan = plan;
    this.#translator = translator;
    this.#world = translator.world;
  }

  /**
   * Call it for every plan of a question before asking for any verdict: a closed object refuses the others' members.
   */
  declare(): void {
    for (const { schemas } of this.#plan.routes) {
      declareSchema(schemas.input, this.#world.input, this.#world.sight);
      declareSchema(schemas.platform, this.#world.platform, this.#world.sight);
      this.#world.sight.schemas += 1;
    }
  }

  /** Presence, schemas and the other requirements are true, so the rules are evaluated. */
  translateRequirements(): Term {
    const { routes } = this.#plan;
    const [presence, requires] = [routes.flatMap((route) => route.presence), routes.flatMap((route) => route.requires)];
    return and(
      this.#areAllTrue(presence),
      ...routes.map((route) => this.#meetsSchemas(route)),
      this.#areAllTrue(requires),
    );
  }

  verdict(): VerdictTerms {
    const { routes, writers } = this.#plan;
    if (routes.length === 0) return { blocks: "true", escalates: "false" };
    const said = routes.map((route) => this.#route(route));
    const broken = writers.map(({ counter, reads }) => this.#cannotMove(counter, reads));
    const refused = not(this.translateRequirements());
    const blocks = or(refused, ...said.map((each) => each.blocks), ...broken);
    const escalates = and(not(blocks), or(...said.map((each) => each.escalates)));
    return { blocks: this.#short(blocks), escalates: this.#short(escalates) };
  }

  #short(term: Term): Term {
    return this.#world.script.shareTerm("Bool", term);
  }

  #areAllTrue(requirements: readonly Requirement[]): Term {
    return and(
      ...requirements.map(({ when }) => {
        const { isTrue, fails } = this.#translator.condition(when);
        return and(isTrue, not(fails));
      }),
    );
  }

  #meetsSchemas({ schemas, onlyDoubles }: Route): Term {
    const { input, platform, hasPlatform } = this.#world;
    const snapshot = this.#meets(schemas.platform, platform);
    const numbers = onlyDoubles ? this.#world.unknown("every number of the input is the shortest of a double") : "true";
    return this.#short(and(this.#meets(schemas.input, input), numbers, or(not(hasPlatform), snapshot)));
  }

  #meets(schema: Route["schemas"]["input"], symbol: SymbolicValue): Term {
    if (schema === undefined) return "true";
    const key = `${symbol.id} meets ${spellValue(schema)}`;
    return this.#closed.has(spellValue(schema)) ? this.#world.unknown(key) : meets(schema, symbol, this.#world);
  }

  /** The rules of one contract: its verdict is the strictest of those that fire, else its `otherwise`. */
  #route({ rules, otherwise, otherwiseShows }: Route): VerdictTerms {
    const blocks: Term[] = [];
    const escalates: Term[] = [];
    const fired: Term[] = [];
    for (const { when, verdict, shows, observed } of rules) {
      if (observed) continue;
      const { isTrue, fails } = this.#translator.condition(when);
      const wrong = or(fails, and(isTrue, this.#anyFails(shows)));
      blocks.push(verdict === "BLOCK" ? or(wrong, isTrue) : wrong);
      if (verdict === "ESCALATE") escalates.push(and(isTrue, not(fails)));
      fired.push(or(fails, isTrue));
    }
    const none = not(or(...fired));
    blocks.push(and(none, otherwise === "BLOCK" ? "true" : this.#anyFails(otherwiseShows)));
    if (otherwise === "ESCALATE") escalates.push(none);
    return { blocks: or(...blocks), escalates: or(...escalates) };
  }

  #anyFails(cores: readonly Core[]): Term {
    return or(...cores.map((core) => this.#translator.evaluate(core).fails));
  }

  /** The call should update a counter but cannot: its key is too long, or a part of it fails. */
  #cannotMove(counter: Counter, { when, per, values }: ToolPlan["writers"][number]["reads"]): Term {
    if (this.#closed.has(counter.identity)) return this.#world.unknown(`${counter.identity} cannot be moved`);
    const condition = when === undefined ? { isTrue: "true", fails: "false" } : this.#translator.condition(when);
    const amount = counter.remembers
      ? or(this.#anyFails(values), this.#world.unknown(`${counter.identity} cannot remember`))
      : this.#anyFails(values);
    const session = per.includes("session") ? this.#world.hasSession : "true";
    const wrong = or(keyFails(this.#translator, per), and(session, amount));
    return or(condition.fails, and(condition.isTrue, wrong));
  }
}

/** The common parts of both plans: expressions by key, schemas and writers by their spelling. */
export function closeShared(sides: readonly (readonly [ToolPlan, ConditionTranslator])[]): ReadonlySet<string> {
  const [a, b] = sides.map(([{ routes, writers }, translator]) => ({
    keys: routes
      .flatMap(({ requires, rules }) => [...requires, ...rules])
      .map(({ when }) => translator.key(when, new Map())),
    words: [
      ...routes.flatMap(({ schemas }) => [schemas.input ?? [], schemas.platform ?? []]).map(spellValue),
      ...writers.map(({ counter }) => counter.identity),
    ],
  }));
  for (const [, translator] of sides)
    for (const key of a?.keys ?? []) if (b?.keys.includes(key) === true) translator.closed.add(key);
  return new Set(a?.words.filter((word) => b?.words.includes(word)));
}

/**
 * A key fails if one of its parts fails, or is a text of over 16,384 bytes. Parts after `session` fail only in a
 * session.
 */
function keyFails(translator: ConditionTranslator, per: readonly KeyPart[]): Term {
  const { world } = translator;
  let reached: Term = "true";
  const found: Term[] = [];
  for (const part of per) {
    if (part === "session") reached = world.hasSession;
    if (typeof part === "string") continue;
    const { value, fails } = translator.evaluate(part);
    found.push(and(reached, fails));
    if (value.kind !== "text") continue;
    const length = `(str.len ${value.term})`;
    const key = translator.key(part, new Map());
    // A character takes one to four bytes, so a key of 4,097 to 16,384 characters may be too long.
    found.push(
      and(reached, or(`(> ${length} 16384)`, and(`(> ${length} 4096)`, world.rarely(`${key} takes over 16384 bytes`)))),
    );
  }
  return or(...found);
}

/**
 * Declares the counters of every plan for its translator. Counters with one definition, or with one name, are one
 * number: verdicts are compared for equal values of it.
 *
 * @returns the names that have other definitions in other plans
 */
export function declareCounters(plans: readonly (readonly [ToolPlan, ConditionTranslator])[]): readonly string[] {
  const readers = plans.flatMap(([plan, translator]) =>
    [...plan.readers].map((entry) => [...entry, translator] as const),
  );
  const values = new Map<string, Term>();
  const redefined = new Set<string>();
  for (const [name, { counter, per, since }, translator] of readers) {
    const { world } = translator;
    const namesakes = readers.filter(([other]) => other === name).map(([, reader]) => reader.counter.identity);
    const isRedefined = namesakes.some((identity) => identity !== counter.identity);
    if (isRedefined) redefined.add(name);
    const key = isRedefined ? name : counter.identity;
    const free = values.get(key) ?? freeCounter(world, counter);
    values.set(key, free);
    const session = per.includes("session") ? world.hasSession : "true";
    const late = since === undefined ? "false" : sinceFails(translator, since);
    translator.counters.set(name, {
      value: choose(session, free, "0.0"),
      fails: or(keyFails(translator, per), and(session, late)),
      key,
      free,
    });
  }
  return [...redefined];
}

function freeCounter({ script }: SymbolicCall, { sums }: Counter): Term {
  const value = script.constant("Real");
  script.assert(and(`(>= ${value} 0.0)`, sums ? "true" : `(is_int ${value})`));
  return value;
}

/** The time up to which events are dropped is in the future. */
function sinceFails(translator: ConditionTranslator, since: Core): Term {
  const { value, fails } = translator.evaluate(since);
  const isLate = value.kind === "number" ? `(> (* 1000.0 ${value.term}) (to_real ${translator.world.now}))` : "false";
  return or(fails, isLate);
}
