import type { Report } from "../text/diagnostic.ts";
import type { Counter } from "../counters/counter.ts";
import type { ContractFunction } from "../functions/functions.ts";
import type { Probe } from "../run/plan.ts";
import type { Syntax } from "../text/syntax.ts";
import type { RecordType, Type } from "./type.ts";
import type { Value } from "../run/value.ts";

/** What an expression may read, and the types of it. One scope serves one tool. */
export interface Scope {
  /** Undefined where an expression is evaluated before the schemas are. */
  readonly input: RecordType | undefined;
  readonly platform: RecordType | undefined;
  readonly limits: ReadonlyMap<string, { readonly type: Type; readonly value: Value }>;
  /** The counters that may be read here; undefined where counters and `now` may not be. */
  readonly counters: ReadonlyMap<string, Counter> | undefined;
  readonly lets: ReadonlyMap<string, Syntax>;
  /** Names with values of their own, each in a slot (`compileExpression`). */
  readonly bindings?: ReadonlyMap<string, { readonly slot: number; readonly type: Type }>;
  /** Gathers the `let:` definitions that something reads. */
  readonly used?: Set<Syntax>;
  /** Gathers the functions that something calls. */
  readonly calls?: Set<ContractFunction>;
  /** Is told of every evaluation, for `explain` and coverage. */
  readonly probe?: Probe | undefined;
  readonly budget: Budget;
  readonly report: Report;
}

/** What the compilation of one contract may cost, whatever `let:`, `$ref`, tools and rules multiply. */
export interface Budget {
  /** Parts of expressions, each rule written out for each of its tools. */
  parts: number;
  /** Parts of schemas, each `$ref` written out where it stands. */
  schemas: number;
}

/** A contract of 5,000 rules on one tool has under 200,000; at 2,000,000 checking takes seconds. */
export const partsMax = 2_000_000;
/** The largest published tool lists have under 20,000; more comes of references that multiply. */
export const schemasMax = 100_000;

export function newBudget(): Budget {
  return { parts: partsMax, schemas: schemasMax };
}
