import type { BegunSignIn, OpenedJson } from "../../../core/src/wire/mod.ts";
import { askConsole, base, keepPageSecret, type RouteAnswer, type Problem } from "./gate.ts";
import { go, routeNow } from "./route.ts";

/** Where the provider of OpenID Connect sends the browser back to. */
const callback = "/oidc/callback";

/** The sealed start of a sign-in. No other port of this host can read it, as it could read a cookie. */
const stored = `svc-gate ${base} sign-in`;

/** Lets this browser go before strangers when a person signs in again. */
const storedKnown = `svc-gate ${base} known`;

/**
 * Starts a sign-in with the provider, and leaves the page.
 *
 * @returns why it did not start
 */
export async function startSignIn(): Promise<Problem | undefined> {
  const started = await askConsole<BegunSignIn>("/oidc", { body: "{}" });
  if (!started.ok) return started.problem;
  sessionStorage.setItem(stored, started.value.flow);
  location.assign(started.value.location);
  return undefined;
}

/** Gives the gate the provider's answer. Returns undefined if the browser does not come from the provider. */
export async function finishSignIn(): Promise<RouteAnswer<OpenedJson> | undefined> {
  if (routeNow().path !== callback) return undefined;
  const answer = location.search;
  const flow = sessionStorage.getItem(stored) ?? "";
  sessionStorage.removeItem(stored);
  go("/", { replace: true }); // The browser's history does not keep the answer.
  const known = localStorage.getItem(storedKnown) ?? undefined;
  const opened = await askConsole<OpenedJson>("/session", { body: JSON.stringify({ oidc: { flow, answer, known } }) });
  if (opened.ok) {
    keepPageSecret(opened.value.session);
    localStorage.setItem(storedKnown, opened.value.known ?? "");
  }
  return opened;
}
