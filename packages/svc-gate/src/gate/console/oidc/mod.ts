/**
 * Sign-in with a provider of OpenID Connect.
 *
 * Promises: every token is verified, and a sign-in ends in the browser in which it began.
 *
 * Does not: give rights: a key does.
 *
 * Package: console. May import: console, keys, settings.
 */
