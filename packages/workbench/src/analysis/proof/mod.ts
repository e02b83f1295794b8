/**
 * The difference of two contracts: verdicts by tried calls and a solver, other parts by comparison.
 *
 * Promises: a difference of verdicts is shown with a call that the engine decided under both contracts; unknown stays
 * unknown.
 *
 * Does not: decide whether a difference is intended.
 *
 * May import: formula.
 */
