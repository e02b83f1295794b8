/**
 * The second entry point for contracts with all functions: everything of packages/core/src/contract/ir.ts, the table of
 * functions, and expressions that may call them.
 */
import * as language from "../../core/src/contract/ir.ts";
import type { Json } from "../../core/src/wire/mod.ts";
import { functions } from "./functions.ts";

export * from "../../core/src/contract/ir.ts";
export { functions };

/** Compiles one expression outside a contract, as packages/core/src/contract/compile/expression.ts does. */
export function compileExpression(
  text: string,
  bindings: ReadonlyMap<string, Json> = new Map(),
): ReturnType<typeof language.compileExpression> {
  return language.compileExpression(text, functions, bindings);
}
