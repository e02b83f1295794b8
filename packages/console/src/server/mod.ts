/**
 * The console's server side: files of the page, sessions, and the code for the first sign-in.
 *
 * Promises: a session's cookie is sealed, has no scopes, and opens nothing without the page's secret.
 *
 * Does not: decide what a page shows.
 *
 * Package: console. May import: settings.
 */
