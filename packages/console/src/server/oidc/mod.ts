/**
 * Sign-in with a provider of OpenID Connect.
 *
 * Promises: every ID token is verified, and only the browser that began a sign-in can finish it.
 *
 * Does not: give scopes. The provider states only groups of the key's person.
 *
 * Package: console. May import: admission, console, keys, settings.
 */
