import { bad, good, isPrivateUrl, type Result } from "../../../../core/src/wire/mod.ts";

/** Reads a URL that the gate may send to: over TLS, or on this machine. */
export function parseUrl(text: string): Result<URL, string> {
  if (!URL.canParse(text)) return bad(`"${text}" is not a URL`);
  const url = new URL(text);
  const { username, password, hash } = url;
  if (!isPrivateUrl(url))
    return bad("it must start with https:// (http:// is only allowed for this machine, such as http://127.0.0.1)");
  if (username !== "" || password !== "" || hash !== "")
    return bad("it must not have a user name, a password or a fragment");
  return good(url);
}

/** Returns a URL without its query, which may have a secret. */
export function urlText(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}
