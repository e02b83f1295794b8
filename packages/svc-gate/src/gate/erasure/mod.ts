/**
 * Erasure of personal data from receipts, on request or by age.
 *
 * Promises: the chain and all proofs stay valid, and a row records what was erased.
 *
 * Does not: decide what must be erased.
 *
 * Package: gate. May import: admin, policy, request, settings.
 */
