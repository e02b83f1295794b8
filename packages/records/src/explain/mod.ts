/**
 * `svc-gate explain` and POST /explain: how a verdict is reached, with the values of operands.
 *
 * Promises: it decides a receipt again, and reports if verdict, rule or reason differ.
 *
 * Does not: write a receipt or change a counter.
 *
 * May import: replay.
 */
