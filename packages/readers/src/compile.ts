/** The compiler of contracts with all functions: a gate compiles by it, and programs by contract.ts. */
import * as language from "../../core/src/contract/mod.ts";
import type { Result } from "../../core/src/wire/mod.ts";
import { functions } from "./functions.ts";

/** What a program may set when it compiles; all functions may be called. */
export type CompileOptions = Omit<language.CompileOptions, "functions">;
type CompileResult = Result<language.PolicySet, readonly language.Diagnostic[]>;

/** Compiles a mandate and every contract that it names. Reports all problems of all files together, in order. */
export function compileMandate(
  mandate: language.SourceFile,
  open: Parameters<typeof language.compileMandate>[1],
  options: CompileOptions = {},
): CompileResult {
  return language.compileMandate(mandate, open, { ...options, functions });
}

/** Compiles contracts without a mandate, with the limits that they declare. */
export function compileContracts(files: readonly language.SourceFile[], options: CompileOptions = {}): CompileResult {
  return language.compileContracts(files, { ...options, functions });
}

/** Compiles the text of GET /rules again. A ledger stores this text for each digest on its receipts. */
export function recompile(text: string, options: CompileOptions = {}): CompileResult {
  return language.recompile(text, { ...options, functions });
}
