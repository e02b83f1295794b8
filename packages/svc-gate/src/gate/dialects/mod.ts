/**
 * How agent hosts describe calls to a hook: one table of members and words for each host.
 *
 * Promises: two different tools never get one name; a call that cannot be read is refused.
 *
 * Does not: ask the gate, or serve routes.
 *
 * Package: gate. May import: nothing.
 */
