/**
 * Readers of addresses: URLs, hosts, IP addresses, mail addresses.
 *
 * Promises: a URL, an IP address or a mail address that programs may read differently is an error.
 *
 * Does not: look up a name, or open a connection.
 *
 * May import: nothing.
 */
