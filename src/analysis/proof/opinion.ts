import { walk, type Route } from "../../contract/mod.ts";
import type { SecondOpinion } from "../reasoner.ts";
import type { Condition, Subject } from "../subject.ts";
import { declareSchema, meets } from "./shape-term.ts";
import type { Solver } from "./solver.ts";
import { and, not, or, type Term } from "./term.ts";
import { Translator } from "./translate.ts";
import { World } from "./world.ts";

/** What the solver thinks of conditions: false where no call of the tool fulfils them all, of whatever lists. */
export function solverOpinion(solver: Solver, timeMs: number): SecondOpinion {
  return async (subject, conditions) => {
    const answer = await solver.ask(questionOf(subject, conditions), [], timeMs);
    return answer.kind === "no" ? false : undefined;
  };
}

function questionOf({ tool, route, world: known }: Subject, conditions: readonly Condition[]): string {
  const world = new World(tool, "any");
  const translator = new Translator(world);
  declareSchema(route.schemas.input, world.input, world.sight);
  declareSchema(route.schemas.platform, world.platform, world.sight);
  world.sight.schemas += 1;
  for (const { core } of conditions) {
    for (const node of walk(core))
      if (node.op === "counter") declareCounter(translator, node.name, known.whole.has(node.name));
  }
  const all = conditions.map(({ core, holds }) => {
    const found = translator.condition(core);
    return and(holds ? found.holds : not(found.holds), not(found.fails));
  });
  world.script.assert(and(meetsSchemas(route, world), ...all));
  world.settle();
  return world.script.text();
}

/** Any number that is not negative, and that may not be known. */
function declareCounter({ world, counters }: Translator, name: string, isWhole: boolean): void {
  if (counters.has(name)) return;
  const value = world.script.constant("Real");
  world.script.assert(and(`(>= ${value} 0.0)`, isWhole ? `(is_int ${value})` : "true"));
  counters.set(name, { value, fails: world.unknown(`${name} is not known`), key: name, free: value });
}

function meetsSchemas({ schemas }: Route, world: World): Term {
  const snapshot = schemas.platform === undefined ? "true" : meets(schemas.platform, world.platform, world);
  return and(meets(schemas.input, world.input, world), or(not(world.hasPlatform), snapshot));
}
