/**
 * Compilation: documents become the plan of each tool, with rules, counters, keys and approvals.
 *
 * Promises: all errors of all contracts are reported together; a compiled contract is immutable.
 *
 * Does not: read files, or decide a call.
 *
 * Package: core. May import: check, core, plan, schema, text, value.
 */
