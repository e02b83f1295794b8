/**
 * Sign-in with a provider of OpenID Connect.
 *
 * Promises: every ID token is verified, and only the browser that started a sign-in can finish it.
 *
 * Does not: give scopes. The provider states only groups of the key's person.
 *
 * May import: nothing.
 */
export { readOidc } from "./settings.ts";
export { OidcSignIn, redeemedMax, tooMany, type ConsoleAddress, type ReturnedSignIn } from "./sign-in.ts";
