/**
 * Approvals on one ledger: waiting calls, people's decisions, grants, and requests for stops.
 *
 * Promises: an approval lets one call through: the shown one, except for members that the contract leaves unbound.
 *
 * Does not: serve routes or pages.
 *
 * May import: keys, policy, request.
 */
