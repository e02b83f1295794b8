/**
 * Which requests may wait: the queue and batches of calls, places of open requests, lines and turns of reads, the valve of
 * refusals.
 *
 * Promises: what waits uses bounded memory. Reads go on under any load, but calls go first.
 *
 * Does not: decide calls.
 *
 * May import: keys.
 */
