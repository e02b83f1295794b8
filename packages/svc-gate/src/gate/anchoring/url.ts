import { isIP } from "node:net";
import { bad, good, type Result } from "../../wire/mod.ts";

/** Where something may be sent: over TLS, or on this machine alone. */
export function parseUrl(text: string): Result<URL, string> {
  if (!URL.canParse(text)) return bad(`"${text}" is no URL`);
  const url = new URL(text);
  const { protocol, hostname, username, password, hash } = url;
  if (protocol !== "https:" && !(protocol === "http:" && isLoopback(hostname)))
    return bad("it must begin with https:// (http:// is for this machine alone, such as http://127.0.0.1)");
  if (username !== "" || password !== "" || hash !== "") return bad("it must have no name, password or fragment");
  return good(url);
}

/** A URL as it may be shown: what stands behind the question mark may be a secret. */
export function shownUrl(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || (isIP(host) === 4 && host.startsWith("127."));
}
