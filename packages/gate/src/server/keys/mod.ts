/**
 * API keys: their records, the ring of keys, scopes, rates, and the requests that change keys.
 *
 * Promises: the ledger has only digests of keys; an administrator's change of a key is a row of the root's ledger.
 *
 * Does not: serve routes.
 *
 * May import: admin, policy, request, settings.
 */
