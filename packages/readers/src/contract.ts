/**
 * The contract language with all functions, for programs: everything of packages/core/src/contract/mod.ts, and a compiler
 * that knows the readers.
 */
import * as language from "../../core/src/contract/mod.ts";
import type { Result } from "../../core/src/wire/mod.ts";
import { functions } from "./functions.ts";

export * from "../../core/src/contract/mod.ts";

/** What a program may set when it compiles; all functions may be called. */
export type CompileOptions = Omit<language.CompileOptions, "functions">;
type Compiled = Result<language.PolicySet, readonly language.Diagnostic[]>;

/** Compiles a mandate and every contract that it names. Reports all problems of all files together, in order. */
export function compileMandate(
  mandate: language.SourceFile,
  open: Parameters<typeof language.compileMandate>[1],
  options: CompileOptions = {},
): Compiled {
  return language.compileMandate(mandate, open, { ...options, functions });
}

/** Compiles contracts without a mandate, with the limits that they declare. */
export function compileContracts(files: readonly language.SourceFile[], options: CompileOptions = {}): Compiled {
  return language.compileContracts(files, { ...options, functions });
}

/** Compiles the text of GET /rules again. A ledger stores this text for each digest on its receipts. */
export function recompile(text: string, options: CompileOptions = {}): Compiled {
  return language.recompile(text, { ...options, functions });
}
