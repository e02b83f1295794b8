/**
 * The values of settings: rates, moments, tenants, private files, loopback addresses.
 *
 * Promises: a mistake is reported with its place before the gate listens.
 *
 * Does not: read the environment.
 *
 * Package: gate. May import: nothing.
 */
