/**
 * The decision on a call: prepare it, plan its look-ups of counters, decide; also recount recorded checks.
 *
 * Promises: the same contracts, call, caller, facts, counters and time give the same decision; `decide` never throws.
 *
 * Does not: read a clock or the ledger, or keep state.
 *
 * May import: compile, core, plan, schema, value.
 */
