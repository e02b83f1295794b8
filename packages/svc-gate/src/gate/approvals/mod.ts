/**
 * Approvals in one batch: open questions, people's decisions, grants and stops.
 *
 * Promises: an approval is used once, by the call that the person was shown.
 *
 * Does not: know routes or pages.
 *
 * Package: gate. May import: admin, admission, keys, policy, request.
 */
