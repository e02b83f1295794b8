/**
 * Which requests may wait: the queue, batches, the places of open requests, and reading beside checks.
 *
 * Promises: memory is bounded, and a request that finds no place is refused at once.
 *
 * Does not: decide calls.
 *
 * Package: gate. May import: keys.
 */
