/** How commands read contracts, mandates and test files, and print what is wrong with them. */
export { besideMandate, loadContracts, renderDiagnostics, toolMatcher } from "../gate/policy/mod.ts";
export { badInput } from "./check.ts";
export { readTests } from "./test/read.ts";
