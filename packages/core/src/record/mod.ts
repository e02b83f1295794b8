/**
 * The records of a ledger: rows and their evidence, and the Merkle tree over them. Other modules enter by `entry/mod.ts` and
 * `tree/mod.ts`.
 *
 * Promises: the same row has the same bytes and the same hash on every machine.
 *
 * Does not: store or sign anything, or read a clock.
 */
