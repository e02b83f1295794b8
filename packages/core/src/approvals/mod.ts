/**
 * Approvals: a person decides a call, and the decision is bound to that call.
 *
 * Promises: an approval is a fold of rows. It is used at most once, by the call that the person was shown, for the rules
 * that the person was shown.
 *
 * Does not: read clocks, files or keys; decide a call; keep state. The caller gives all of them.
 */
export type * from "./answers.ts";
export * from "./approval.ts";
export * from "./binding.ts";
export { distance, isAbove } from "./decimals.ts";
export * from "./grant.ts";
export * from "./judge.ts";
export * from "./quorum.ts";
export * from "./stop.ts";
