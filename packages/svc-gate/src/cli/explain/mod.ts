/**
 * `svc-gate explain` and POST /explain: how a verdict is reached, with the value of every operand.
 *
 * Promises: the explanation decides again and says so if the verdict differs from the recorded one.
 *
 * Does not: record or count.
 *
 * Package: records. May import: replay.
 */
