import { patience } from "../random-test.ts";
import type { Scenario } from "./language.ts";

const triesMax = 100_000;

/** The members that a scenario may leave out at any path. */
const optional = new Set(
  (
    "properties required additional items oneOf constant minimum maximum exclusiveMinimum exclusiveMaximum multipleOf " +
    "minLength maxLength minItems maxItems uniqueItems observed remembers when sum " +
    "counting within since settlesWithin weekStarts min max reason"
  ).split(" "),
);

type Tree = null | boolean | number | string | readonly Tree[] | { readonly [key: string]: Tree };

/**
 * Returns the smallest interesting scenario: leaves out and simplifies one thing at a time until nothing more can go, or
 * patience ends. A scenario for which `interests` throws is not interesting.
 */
export function minimise(scenario: Scenario, interests: (smaller: Scenario) => boolean): Scenario {
  let best = scenario;
  let size = JSON.stringify(best).length;
  const mayTry = patience(triesMax);
  for (let found = true; found;) {
    found = false;
    for (const candidate of simpler(best as unknown as Tree)) {
      const smaller = candidate as unknown as Scenario;
      const ownSize = JSON.stringify(smaller).length;
      if (ownSize >= size) continue;
      if (!mayTry()) return best;
      if (!stillInterests(smaller, interests)) continue;
      best = smaller;
      size = ownSize;
      found = true;
      break;
    }
  }
  return best;
}

function stillInterests(scenario: Scenario, interests: (smaller: Scenario) => boolean): boolean {
  try {
    return interests(scenario);
  } catch {
    return false;
  }
}

/** Returns every tree with one thing removed, the larger things first. */
function* simpler(tree: Tree): Generator<Tree> {
  if (Array.isArray(tree)) {
    const items: readonly Tree[] = tree;
    if (items.length > 3) yield items.slice(0, Math.floor(items.length / 2));
    if (items.length > 3) yield items.slice(Math.floor(items.length / 2));
    for (const index of items.keys()) yield items.filter((_, each) => each !== index);
    for (const [index, item] of items.entries()) {
      for (const smaller of simpler(item)) yield items.map((each, at) => (at === index ? smaller : each));
    }
    return;
  }
  if (tree === null || typeof tree !== "object") return;
  const members = Object.entries(tree);
  if ("kind" in tree) yield* simplerExpressions(tree["kind"] ?? null, members);
  for (const [name] of members)
    if (optional.has(name)) yield Object.fromEntries(members.filter(([each]) => each !== name));
  for (const [name, value] of members) {
    for (const smaller of simpler(value))
      yield Object.fromEntries(members.map(([each, old]) => [each, each === name ? smaller : old]));
  }
}

/** Replaces an expression by a part of it, or by a constant. */
function* simplerExpressions(kind: Tree, members: readonly (readonly [string, Tree])[]): Generator<Tree> {
  for (const [, value] of members) {
    if (value !== null && typeof value === "object" && "kind" in value) yield value;
  }
  if (kind === "boolean" || kind === "number" || kind === "text" || kind === "root" || kind === "name") return;
  yield { kind: "boolean", value: true };
  yield { kind: "boolean", value: false };
  yield { kind: "number", text: "1" };
  yield { kind: "text", value: "a" };
}
