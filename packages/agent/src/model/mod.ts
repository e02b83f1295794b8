/**
 * A scripted model behind the protocols of four vendors, for `doctor` and for tests.
 *
 * Promises: it says exactly what its script says.
 *
 * Does not: ask a real model.
 *
 * Package: agent. May import: nothing.
 */
