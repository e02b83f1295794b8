/**
 * Compilation: documents become the plan of each tool, with its rules, counters, counter keys and approvals.
 *
 * Promises: errors of all contracts are reported together, but some checks wait for the others; a compiled contract is
 * immutable.
 *
 * Does not: read files, or decide a call.
 *
 * May import: check, commands, core, plan, schema, text, value.
 */
