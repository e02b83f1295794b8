/**
 * Bodies of requests: strict JSON with known members. It also sends JSON answers.
 *
 * Promises: an unknown member is refused by name, and bad JSON by line and column.
 *
 * Does not: know a route.
 *
 * May import: nothing.
 */
