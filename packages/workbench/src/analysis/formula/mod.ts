/**
 * Conditions as formulas: what holds for every call, and whether conditions can hold together.
 *
 * Promises: an answer is sure, or it is unknown.
 *
 * Does not: report findings.
 *
 * Package: workbench. May import: nothing.
 */
