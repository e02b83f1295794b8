/**
 * The events that people and other systems follow: read from rows, searched and streamed.
 *
 * Promises: events are in the order of rows, and a reader can continue after any of them.
 *
 * Does not: write rows.
 *
 * Package: gate. May import: admission.
 */
