import { isIP } from "node:net";

/** Returns true for `localhost` and for a loopback address, which no other machine can reach. */
export function isLoopback(host: string): boolean {
  const address = host.toLowerCase().replace(/^::ffff:(?=\d+\.)/, "");
  return address === "localhost" || address === "::1" || (isIP(address) === 4 && address.startsWith("127."));
}

/** Returns true if the host of a URL is this machine. */
export function isLoopbackUrl({ hostname }: URL): boolean {
  return isLoopback(hostname.replace(/^\[(.*)\]$/, "$1"));
}

/** Returns true if nobody can read keys and cookies on the way to an address: it has TLS, or is this machine. */
export function isPrivateUrl(url: string): boolean {
  return url.startsWith("https:") || isLoopbackUrl(new URL(url));
}
