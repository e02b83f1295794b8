/**
 * The decision: it prepares a call, plans its look-ups of counters, and decides.
 *
 * Promises: the same call, facts, counters and time give the same decision; `decide` never throws.
 *
 * Does not: read a clock or a counter, or keep state.
 *
 * Package: core. May import: compile, core, plan, schema, value.
 */
