/** How commands read contracts, mandates and test files, and print what is wrong with them. */
export {
  besideMandate,
  loadContracts,
  openReady,
  renderDiagnostics,
  toolMatcher,
} from "../../gate/src/server/policy/mod.ts";
export { badInput } from "../../gate/src/cli/check.ts";
export { readTests } from "../../workbench/src/test/read.ts";
