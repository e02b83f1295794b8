/**
 * The values of expressions and their types: exact numbers, texts, times, lists and maps; also patterns.
 *
 * Promises: arithmetic is exact, and matching a pattern takes linear time.
 *
 * Does not: parse contracts, or know functions.
 *
 * May import: nothing.
 */
