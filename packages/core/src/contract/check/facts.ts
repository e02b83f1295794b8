import type { Core } from "../core/core.ts";
import type { Span } from "../text/diagnostic.ts";

/**
 * The facts proven at one point: paths that are present (`input.a`), and with a `!` at the end, paths that are not
 * null.
 */
export type Facts = ReadonlySet<string>;

/** A checked expression, and the facts that are true after it evaluated to true or to false. */
export interface TypedCore {
  readonly core: Core;
  readonly whenTrue: Facts;
  readonly whenFalse: Facts;
}

/** A piece of an expression, and the facts that are true there. */
export interface FactSpan {
  readonly span: Span;
  readonly facts: Facts;
}

export function same(core: Core, facts: Facts): TypedCore {
  return { core, whenTrue: facts, whenFalse: facts };
}

export function intersect(a: Facts, b: Facts): Facts {
  return a === b ? a : a.intersection(b);
}

/** The fact that a member is present; undefined if the same expression may have another value the next time. */
export function pathOf(of: Core, name: string): string | undefined {
  const owner = ownPath(of);
  return owner === undefined ? undefined : `${owner}.${JSON.stringify(name)}`;
}

export function ownPath(core: Core): string | undefined {
  if (core.op === "root") return core.root;
  if (core.op === "variable") return `$${core.slot}`;
  return core.op === "member" ? pathOf(core.of, core.name) : undefined;
}

export function nullFacts(
  core: Core,
  operator: "==" | "!=",
  [left, right]: readonly [Core, Core],
  facts: Facts,
): TypedCore {
  const [value, other] = left.type.kind === "null" ? [right, left] : [left, right];
  const path = other.type.kind === "null" && value.op !== "root" ? ownPath(value) : undefined;
  if (path === undefined) return same(core, facts);
  const known: Facts = new Set([...facts, `${path}!`]);
  return operator === "!=" ? { core, whenTrue: known, whenFalse: facts } : { core, whenTrue: facts, whenFalse: known };
}
