/**
 * The bodies of administrative requests: JSON objects with known members.
 *
 * Promises: an unknown or wrong member is refused by name.
 *
 * Does not: know a route.
 *
 * Package: gate. May import: nothing.
 */
