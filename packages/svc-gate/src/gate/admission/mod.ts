/**
 * Which requests may wait: the queue, batches, places of open requests and reports, the valve of refusals.
 *
 * Promises: waiting calls use bounded memory. A request that finds no place does not wait for one.
 *
 * Does not: decide calls.
 *
 * Package: gate. May import: keys.
 */
