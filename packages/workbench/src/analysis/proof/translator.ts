import type { Core } from "../../../../readers/src/ir.ts";
import type { Sym, SymEvaluation } from "./sym.ts";
import type { Term } from "./term.ts";
import type { SymbolicCall } from "./world.ts";

/** The translation of one condition, as the translations of its parts use it. */
export interface Translator {
  readonly world: SymbolicCall;
  /** @param bound the values for the variables of the folds around it */
  evaluate(core: Core, bound?: Bindings): SymEvaluation;
  /** A condition: when it is true, and when it fails. */
  condition(core: Core, bound?: Bindings): { readonly isTrue: Term; readonly fails: Term };
  key(core: Core, bound: Bindings): string;
  /** A value of which only the type is known; it may fail if one of its parts does. */
  opaque(core: Core, key: string, fails: Term): SymEvaluation;
}

/** An item of a current fold. */
export interface Binding {
  readonly value: Sym;
  readonly key: string;
}

export type Bindings = ReadonlyMap<number, Binding>;
