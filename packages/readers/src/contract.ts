/**
 * The contract language with all functions, for programs: everything of packages/core/src/contract/mod.ts, and a compiler
 * that knows the readers.
 */
export * from "../../core/src/contract/mod.ts";
export { exampleCall } from "../../core/src/contract/ir.ts";
export { compileContracts, compileMandate, recompile, type CompileOptions } from "./compile.ts";
