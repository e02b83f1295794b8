/**
 * Readers of addresses: URLs, hosts, IP addresses, mail addresses.
 *
 * Promises: a text is read in one way or not at all; a text that programs read differently is an error.
 *
 * Does not: look up a name, or open a connection.
 *
 * Package: readers. May import: core, value.
 */
