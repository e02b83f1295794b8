import type { TestContext } from "node:test";
import type { Parameters } from "fast-check";

/** The tests of fast-check share one variable. */
const sharedVariable = "RANDOM_SEED";
const sharedSeed = seedOf(sharedVariable);
/** A minimiser stops after this time, so that the test can still report the smallest case that it has. */
const patienceMs = 300_000;

type Test = Pick<TestContext, "diagnostic" | "name">;

/**
 * Returns the seed of a random test: the variable's number, or else another one in each run.
 *
 * @param fixed the seed without the variable, if each run must have the same one
 * @throws if the variable is not a whole number
 */
export function seedOf(variable: string, fixed?: number): number {
  const text = process.env[variable];
  if (text === undefined) return fixed ?? Math.floor(Math.random() * 2 ** 30);
  if (!/^-?\d+$/.test(text)) throw new Error(`${variable}=${text} is not a whole number: set it to a printed seed`);
  return Number(text);
}

/** Prints how to repeat a random test, also if it passes. `npm test` collects these lines. */
export function printSeed(t: Test, { cases, seed, variable }: Draw): void {
  t.diagnostic(`random: ${t.name}, ${cases} cases, seed ${seed} (${variable}=${seed} repeats them)`);
}

interface Draw {
  readonly cases: number;
  readonly seed: number;
  readonly variable: string;
}

/**
 * Returns the options of fast-check for a random test, and prints its seed. A failure has the smallest case that is found
 * in time.
 */
export function randomRuns(t: Test, cases = 100, limitMs: number = patienceMs): RandomRuns {
  const numRuns = Math.ceil(cases);
  printSeed(t, { cases: numRuns, seed: sharedSeed, variable: sharedVariable });
  return { numRuns, seed: sharedSeed, interruptAfterTimeLimit: limitMs, markInterruptAsFailure: true };
}

export type RandomRuns = Pick<
  Parameters<unknown>,
  "numRuns" | "seed" | "endOnFailure" | "interruptAfterTimeLimit" | "markInterruptAsFailure"
>;

/** Bounds a minimiser. The returned function says whether it may try another case. */
export function patience(triesMax: number, limitMs: number = patienceMs): () => boolean {
  const end = performance.now() + limitMs;
  let left = triesMax;
  return () => left-- > 0 && performance.now() < end;
}
