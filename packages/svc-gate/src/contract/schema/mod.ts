/**
 * The schemas of inputs and facts: they are read, and values are validated by them.
 *
 * Promises: a schema outside the published subset is reported; validation names the first mismatch.
 *
 * Does not: load a schema from elsewhere.
 *
 * Package: core. May import: check, text, value.
 */
