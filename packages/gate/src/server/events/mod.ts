/**
 * The events that people and other systems follow: read from rows, with reminders, and streamed.
 *
 * Promises: events of rows come in the order of rows, and a reader can continue after each.
 *
 * Does not: store events.
 *
 * May import: nothing.
 */
