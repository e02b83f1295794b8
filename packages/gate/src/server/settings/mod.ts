/**
 * Shared readers: rates, moments, the tenants file, private files.
 *
 * Promises: a mistake in the tenants file is reported with its line; a private file is never quoted.
 *
 * Does not: read the environment.
 *
 * May import: nothing.
 */
