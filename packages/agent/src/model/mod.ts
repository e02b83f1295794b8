/**
 * A scripted model behind four protocols of three vendors, for `doctor` and for tests.
 *
 * Promises: it gives the same answer to a repeated request.
 *
 * Does not: ask a real model.
 *
 * May import: nothing.
 */
