import type { ContractInForce } from "../../src/contract/mod.ts";
import { Engine, type Defect, type Done } from "./engine.ts";
import type { Call, Contract, Counter, Expression, Json, Scenario, Setting, Verdict } from "./language.ts";
import { decideCall, eventsOf, type Event, type Reached, type Receipt } from "./model.ts";
import { decimal } from "./number.ts";
import { parts } from "./walk.ts";

/** One call that the engine and the model judge differently. */
export interface Disagreement {
  readonly call: number;
  readonly about: string;
  readonly model: unknown;
  readonly engine: unknown;
}

/** Is told what both came to, call by call. */
export type Witness = (reached: Reached, events: readonly Event[], done: Done) => void;

/** Asks both, call after call, until they differ. */
export function differ(
  scenario: Scenario,
  force: ContractInForce,
  defect?: Defect,
  witness?: Witness,
): Disagreement | undefined {
  const engine = new Engine(force, scenario.mode, defect);
  const past: Receipt[] = [];
  const keys = new Keys();
  const twins = twinsIn(scenario);
  for (const [index, call] of scenario.calls.entries()) {
    const reached = decideCall(scenario, past, call);
    const receipt: Receipt = { call, verdict: reached.verdict, answered: reached.answered, sound: reached.sound };
    const events = eventsOf(scenario, receipt);
    const done = engine.check(call);
    witness?.(reached, events, done);
    const found = compareCall(call, reached, events, done, { keys, twins });
    if (found !== undefined) return { call: index, ...found };
    past.push(receipt);
  }
  return undefined;
}

type Finding = Omit<Disagreement, "call">;

function compareCall(
  call: Call,
  reached: Reached,
  events: readonly Event[],
  done: Done,
  { keys, twins }: { readonly keys: Keys; readonly twins: Twins },
): Finding | undefined {
  const { decision } = done;
  const pairs: readonly (readonly [about: string, model: unknown, engine: unknown])[] = [
    ["defect", undefined, decision.defect],
    ["verdict", reached.verdict, decision.verdict],
    ["rule", reached.rule, decision.rule],
    ["final", reached.verdict === "BLOCK" && reached.final, decision.verdict === "BLOCK" && decision.final],
    ["fired", reached.fired, decision.fired],
    ["errors", names(reached.errors, twins), names(decision.errors, twins)],
    ["read", [...reached.read].toSorted(byName), decision.read.toSorted(byName)],
    ["answered", reached.answered, done.answered],
    ["reason", undefined, reasonFault(decision.reason, reached.rule, call, decision.verdict)],
    [
      "moves",
      distinct(events, twins).map(eventText).toSorted(),
      done.moves.map(({ name, amount }) => `${twins.get(name) ?? name} ${amount}`).toSorted(),
    ],
  ];
  for (const [about, model, engine] of pairs) {
    if (JSON.stringify(model) !== JSON.stringify(engine)) return { about, model, engine };
  }
  return keys.add(distinct(events, twins), done, twins);
}

/** A counter that stands twice under two names is broken once. */
function names(errors: readonly (readonly [string, string])[], twins: Twins): readonly string[] {
  const inOne = errors.map(([name]) => {
    const first = twins.get(name.replace(".$counters.", "."));
    return name.includes(".$counters.") && first !== undefined ? first : name;
  });
  return [...new Set(inOne)];
}

function byName([a]: readonly [string, string], [b]: readonly [string, string]): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function eventText({ counter, amount }: Event): string {
  return `${counter} ${decimal(amount)}`;
}

function reasonFault(reason: string, rule: string, call: Call, verdict: Verdict): string | undefined {
  if (!reason.startsWith("Svc: ") || reason.length < 7) return reason;
  if (rule === "$route" && verdict === "BLOCK" && !reason.includes(`"${call.tool}"`)) return reason;
  return undefined;
}

/** Which keys of the engine stand for which keys of the model: one for one. */
class Keys {
  readonly #engineOf = new Map<string, string>();
  readonly #modelOf = new Map<string, string>();

  add(events: readonly Event[], done: Done, twins: Twins): Finding | undefined {
    for (const event of events) {
      const move = done.moves.find(({ name }) => (twins.get(name) ?? name) === event.counter);
      if (move === undefined) continue;
      const model = JSON.stringify([event.counter, event.key]);
      const engine = JSON.stringify([event.counter, move.key]);
      const [engineBefore, modelBefore] = [this.#engineOf.get(model), this.#modelOf.get(engine)];
      if ((engineBefore ?? engine) !== engine || (modelBefore ?? model) !== model)
        return {
          about: "key",
          model: { now: model, before: modelBefore },
          engine: { now: engine, before: engineBefore },
        };
      this.#engineOf.set(model, engine);
      this.#modelOf.set(engine, model);
    }
    return undefined;
  }
}

/** By the name of a counter, the first counter that has the same definition and the same limits to go by. */
type Twins = ReadonlyMap<string, string>;

function twinsIn({ contracts, settings }: Scenario): Twins {
  const firsts = new Map<string, string>();
  const entries = contracts.flatMap((contract) =>
    contract.counters.map(({ name, ...definition }): readonly [string, string] => {
      const full = `${contract.name}.${name}`;
      const expressions = [definition.when, definition.sum, definition.since].filter((each) => each !== undefined);
      const limits = [...new Set(expressions.flatMap((each) => limitsIn(each)))].toSorted();
      const meaning = JSON.stringify([spelt(definition), limits.map((limit) => limitOf(contract, settings, limit))]);
      const first = firsts.get(meaning) ?? full;
      firsts.set(meaning, first);
      return [full, first];
    }),
  );
  return new Map(entries);
}

function distinct(events: readonly Event[], twins: Twins): readonly Event[] {
  const renamed = events.map((event) => ({ ...event, counter: twins.get(event.counter) ?? event.counter }));
  return renamed.filter(
    (event, index) => renamed.findIndex(({ counter, key }) => counter === event.counter && key === event.key) === index,
  );
}

/** With what is left out written in. */
function spelt({
  of,
  per,
  when,
  sum,
  counting = "attempts",
  within,
  since,
  settlesWithin,
}: Omit<Counter, "name">): Json[] {
  const whole =
    within !== undefined && "unit" in within ? { weekStarts: "monday", timezone: "UTC", ...within } : within;
  const entries = whole === undefined ? [] : Object.entries(whole).toSorted(byName);
  const expressions = [per, when, sum, since].map((each) => JSON.stringify(each) ?? null);
  return [
    of.toSorted(),
    counting,
    entries.map((entry) => JSON.stringify(entry)),
    settlesWithin ?? null,
    ...expressions,
  ];
}

function limitsIn(expression: Expression): readonly string[] {
  const own = expression.kind === "limit" ? [expression.name] : [];
  return [...own, ...parts(expression).flatMap(limitsIn)];
}

function limitOf(contract: Contract, settings: readonly Setting[], name: string): Json {
  const set = settings.find((each) => each.contract === contract.name && each.limit === name);
  return set?.value ?? contract.limits.find((each) => each.name === name)?.value ?? null;
}
