/**
 * The console's server side: files of the page, sessions, and the code for the first sign-in.
 *
 * Promises: a session's cookie is sealed, has no scopes, and opens nothing without the page's secret.
 *
 * Does not: decide what a page shows, or know the gate. The sign-in with a provider has oidc/mod.ts.
 */
export { consoleAssets } from "./assets.ts";
export { FirstCode } from "./first-code.ts";
export { OwnNames } from "./own-names.ts";
export { pageHeaders, pageText } from "./page.ts";
export { Seal } from "./seal.ts";
export { secretIn, sessionIdleMs, sessionMs, Sessions, type Session } from "./sessions.ts";
