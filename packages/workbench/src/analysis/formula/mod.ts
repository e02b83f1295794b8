/**
 * Conditions as formulas: what is true for every call, and whether conditions can be true together.
 *
 * Promises: only the answer that something is impossible is sure.
 *
 * Does not: report findings.
 *
 * May import: nothing.
 */
