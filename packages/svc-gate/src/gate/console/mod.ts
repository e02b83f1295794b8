/**
 * The console's server side: files of the page, sessions, and the code for the first sign-in.
 *
 * Promises: a session is a sealed cookie without rights; the key's rights are read at each request.
 *
 * Does not: decide what a page shows.
 *
 * Package: console. May import: settings.
 */
