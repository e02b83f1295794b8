import type { PolicySet, Decision } from "../../../packages/core/src/contract/mod.ts";
import { Engine, type Defect, type Done } from "./engine.ts";
import type { Call, Scenario, Verdict } from "./language.ts";
import { meaningOf } from "./meaning.ts";
import { decideCall, eventsOf, type Event, type Reached, type Receipt } from "./model.ts";
import { decimal } from "./number.ts";

/** One call that the engine and the model judge differently. */
export interface Disagreement {
  readonly call: number;
  readonly about: string;
  readonly model: unknown;
  readonly engine: unknown;
}

/** Receives both results, call by call. */
export type Witness = (reached: Reached, events: readonly Event[], done: Done) => void;

/** Asks both, call after call, until they differ. */
export function differ(
  scenario: Scenario,
  policySet: PolicySet,
  defect?: Defect,
  witness?: Witness,
): Disagreement | undefined {
  const engine = new Engine(policySet, scenario.mode, defect);
  const past: Receipt[] = [];
  const keys = new Keys();
  const twins = twinsIn(scenario);
  for (const [index, call] of scenario.calls.entries()) {
    const reached = decideCall(scenario, past, call);
    const { verdict, answered, sound } = reached;
    const receipt: Receipt = { call, verdict, answered, sound };
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
  const pairs: readonly Pair[] = [
    ...pairsOf(call, reached, done.decision, twins),
    ["answered", reached.answered, done.answered],
    [
      "updates",
      distinct(events, twins).map(eventText).toSorted(),
      done.updates.map(({ name, amount }) => `${twins.get(name) ?? name} ${amount}`).toSorted(),
    ],
  ];
  for (const [about, model, engine] of pairs) {
    if (JSON.stringify(model) !== JSON.stringify(engine)) return { about, model, engine };
  }
  return keys.add(distinct(events, twins), done, twins);
}

type Pair = readonly [about: string, model: unknown, engine: unknown];

function pairsOf(call: Call, reached: Reached, decision: Decision, twins: Twins): readonly Pair[] {
  return [
    ["defect", undefined, decision.defect],
    ["verdict", reached.verdict, decision.verdict],
    ["rule", reached.rule, decision.rule],
    ["final", reached.verdict === "BLOCK" && reached.final, decision.verdict === "BLOCK" && decision.final],
    ["fired", reached.fired, decision.fired],
    ["errors", names(reached.errors, twins), names(decision.errors, twins)],
    ["observed", reached.observed, decision.observed.map(({ rule, verdict }) => [rule, verdict])],
    ["read", [...reached.read].map(readText).toSorted(), decision.read.map(readText).toSorted()],
    ["reason", undefined, reasonFault(decision.reason, reached.rule, call, decision.verdict)],
  ];
}

/** Leaves out the looked-up value: it is a number in the engine and a text in the model. */
function readText([name, value]: readonly [string, string]): string {
  return `${name.replace(/\[.*\]$/s, "[]")} ${value}`;
}

/** Returns the names of errors; an error of a counter that has two names counts once. */
function names(errors: readonly (readonly [string, string])[], twins: Twins): readonly string[] {
  const inOne = errors.map(([name]) => {
    const first = twins.get(name.replace(".$counters.", "."));
    return name.includes(".$counters.") && first !== undefined ? first : name;
  });
  return [...new Set(inOne)];
}

function eventText({ counter, amount }: Event): string {
  return `${counter} ${decimal(amount)}`;
}

function reasonFault(reason: string, rule: string, call: Call, verdict: Verdict): string | undefined {
  if (!reason.startsWith("Svc: ") || reason.length < 7) return reason;
  if (rule === "$route" && verdict === "BLOCK" && !reason.includes(`"${call.tool}"`)) return reason;
  return undefined;
}

/** Maps keys of the engine to keys of the model, one to one. */
class Keys {
  readonly #engineOf = new Map<string, string>();
  readonly #modelOf = new Map<string, string>();

  add(events: readonly Event[], done: Done, twins: Twins): Finding | undefined {
    for (const [index, event] of events.entries()) {
      const before = events.slice(0, index).filter(({ counter }) => counter === event.counter).length;
      const move = done.updates.filter(({ name }) => (twins.get(name) ?? name) === event.counter)[before];
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

/** Returns, by a counter's name, the first counter with the same meaning. */
type Twins = ReadonlyMap<string, string>;

function twinsIn({ contracts, settings }: Scenario): Twins {
  return firsts(
    contracts.flatMap((contract) =>
      contract.counters.map(
        (counter) => [`${contract.name}.${counter.name}`, meaningOf(contract, counter, settings)] as const,
      ),
    ),
  );
}

function firsts(counters: readonly (readonly [name: string, meaning: string])[]): Twins {
  return new Map(counters.map(([name, meaning]) => [name, counters.find((each) => each[1] === meaning)?.[0] ?? name]));
}

function distinct(events: readonly Event[], twins: Twins): readonly Event[] {
  const renamed = events.map((event) => ({ ...event, counter: twins.get(event.counter) ?? event.counter }));
  return renamed.filter(
    (event, index) => renamed.findIndex(({ counter, key }) => counter === event.counter && key === event.key) === index,
  );
}
