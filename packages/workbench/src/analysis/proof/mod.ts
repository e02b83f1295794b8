/**
 * The difference of two contracts, found by a solver and confirmed by the engine.
 *
 * Promises: a difference is shown with a call that both contracts decide differently; unknown stays unknown.
 *
 * Does not: decide whether a difference is intended.
 *
 * Package: workbench. May import: formula.
 */
