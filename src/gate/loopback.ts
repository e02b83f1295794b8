import { isIP } from "node:net";

/** Is this `localhost` or a loopback address, which no other machine can reach? */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}
