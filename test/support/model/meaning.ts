import type { Contract, Counter, Expression, Json, Setting } from "./language.ts";
import { parts } from "./walk.ts";

/** Returns the same text for counters with the same definition and the same limits. */
export function meaningOf(contract: Contract, counter: Counter, settings: readonly Setting[]): string {
  const { when, sum, remembers, since } = counter;
  const expressions = [when, sum, remembers, since].filter((each) => each !== undefined);
  const limits = [...new Set(expressions.flatMap((each) => limitsIn(each)))].toSorted();
  return JSON.stringify([spelt(counter), limits.map((limit) => limitOf(contract, settings, limit))]);
}

/** Fills in the defaults. */
function spelt({
  of,
  per,
  when,
  sum,
  remembers,
  counting = "attempts",
  within,
  since,
  settlesWithin,
}: Counter): Json[] {
  const whole =
    within !== undefined && "unit" in within ? { weekStarts: "monday", timezone: "UTC", ...within } : within;
  const entries = whole === undefined ? [] : Object.entries(whole).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const expressions = [per, when, sum, remembers, since].map((each) => JSON.stringify(each) ?? null);
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
