/**
 * API keys: their records, the ring of valid keys, scopes, rates, and the requests that change them.
 *
 * Promises: only digests of keys are kept; a change of a key is a row of the root ledger.
 *
 * Does not: answer requests.
 *
 * Package: gate. May import: admin, policy, request, settings.
 */
