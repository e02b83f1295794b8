/** Contracts and mandates as files: read, compiled, and reported; and the tools that a pattern names. */
export { loadContracts, renderDiagnostics } from "./contracts.ts";
export { toolMatcher } from "./tool-patterns.ts";
