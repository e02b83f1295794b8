/**
 * The schemas of inputs and facts: the code that reads them, and validates values against them.
 *
 * Promises: a used schema outside the published subset is reported; validation names the first mismatch.
 *
 * Does not: load a schema from elsewhere.
 *
 * May import: check, text, value.
 */
