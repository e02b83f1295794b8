/**
 * Conditions as formulas: what holds for every call, and whether conditions can hold together.
 *
 * Promises: only the answer that something is impossible is sure.
 *
 * Does not: report findings.
 *
 * May import: nothing.
 */
