/**
 * Erasure of parts of receipts, on request or by age.
 *
 * Promises: the chain and all proofs stay valid, and a row records what was erased.
 *
 * Does not: erase whole rows, or rows of acts.
 *
 * May import: policy, request, settings.
 */
