import type { IncomingMessage } from "node:http";
import { TLSSocket } from "node:tls";
import { isLoopbackUrl, isPrivateUrl } from "../../../core/src/wire/mod.ts";

/**
 * The names under which a browser reaches this gate: loopback names with the gate's own port, and the host of
 * SVC_PUBLIC_URL if it has TLS. A web page whose own name points to 127.0.0.1 sends that name, so any other name is
 * refused.
 */
export class OwnNames {
  readonly #public: URL | undefined;

  constructor(publicUrl: string | undefined) {
    const named = publicUrl === undefined ? undefined : new URL(publicUrl);
    this.#public = named !== undefined && isPrivateUrl(named) ? named : undefined;
  }

  /** Returns the origin of the gate's own pages as this browser sees it; undefined if the Host header is not ours. */
  originOf({ headers, socket, url }: IncomingMessage): string | undefined {
    const host = headers.host?.toLowerCase();
    if (host === undefined || url?.startsWith("/") !== true) return undefined; // A whole URL names a host of its own.
    if (host === this.#public?.host) return this.#public.origin;
    const scheme = socket instanceof TLSSocket ? "https" : "http";
    const named = URL.parse(`${scheme}://${host}`);
    if (named === null || named.host !== host) return undefined;
    const port = Number(named.port || (scheme === "https" ? 443 : 80));
    return isLoopbackUrl(named) && port === socket.localPort ? named.origin : undefined;
  }
}
