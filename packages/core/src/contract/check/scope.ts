import type { CommandTable } from "../commands/form.ts";
import type { Report } from "../text/diagnostic.ts";
import type { Counter } from "../core/counter.ts";
import type { HostFacts } from "../core/core.ts";
import type { ContractFunction } from "../core/function.ts";
import type { Probe } from "../plan/plan.ts";
import type { Syntax } from "../text/syntax.ts";
import type { RecordType, Type } from "../value/type.ts";
import type { Value } from "../value/value.ts";

/** The names that an expression may read, and their types. One scope serves one tool. */
export interface Scope {
  /** The functions that may be called. */
  readonly functions: readonly ContractFunction[];
  /** Undefined if an expression is evaluated before the schemas are checked. */
  readonly input: RecordType | undefined;
  readonly platform: RecordType | undefined;
  /** The facts that a host's key may state; none by default. */
  readonly hostFacts?: HostFacts;
  readonly limits: ReadonlyMap<string, { readonly type: Type; readonly value: Value }>;
  /** The counters that may be read; undefined if neither counters nor `now` may be read. */
  readonly counters: ReadonlyMap<string, Counter> | undefined;
  readonly lets: ReadonlyMap<string, Syntax>;
  /** The table of commands, if the contract has one. */
  readonly commands?: CommandTable | undefined;
  /** Names with given values, each in a slot (`compileExpression`). */
  readonly bindings?: ReadonlyMap<string, { readonly slot: number; readonly type: Type }>;
  /** The members of the input that an approval is not bound to, such as `input.note`; none by default. */
  readonly unbound?: readonly string[];
  /** Collects the `let:` definitions that are used. */
  readonly used?: Set<Syntax>;
  readonly calls?: Set<ContractFunction>;
  /** Observes every evaluation, for `explain` and coverage. */
  readonly probe?: Probe | undefined;
  readonly budget: Budget;
  readonly report: Report;
}

/** The budget for compiling one contract, however much `let:`, `$ref`, tools and rules multiply it. */
export interface Budget {
  /** Nodes of expressions; each rule counts for each of its tools. */
  parts: number;
  /** Nodes of schemas; each `$ref` counts as a copy. */
  schemas: number;
}

/** A contract of 5,000 rules on one tool has under 200,000; at 2,000,000 checking takes seconds. */
export const partsMax = 2_000_000;
/** The largest published tool lists have under 20,000. More results from references that multiply. */
export const schemasMax = 100_000;

export function newBudget(): Budget {
  return { parts: partsMax, schemas: schemasMax };
}
