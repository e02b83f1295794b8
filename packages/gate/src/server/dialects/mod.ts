/**
 * How agent hosts describe calls to a hook: one table for each host.
 *
 * Promises: a name that two known servers could have is refused, not guessed.
 *
 * Does not: ask the gate, or serve routes.
 *
 * May import: nothing.
 */
