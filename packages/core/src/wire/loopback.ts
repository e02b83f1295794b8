const loopback = /^(?:localhost|::1|(?:::ffff:)?127(?:\.(?:0|[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])){3})$/;

/** Returns true for `localhost` and for a loopback address, which no other machine can reach. */
export function isLoopback(host: string): boolean {
  return loopback.test(host.toLowerCase());
}

/** Returns true if the host of a URL is this machine. */
export function isLoopbackUrl({ hostname }: { readonly hostname: string }): boolean {
  return isLoopback(hostname.replace(/^\[(.*)\]$/, "$1"));
}

/** Returns true if nobody can read keys and cookies on the way to an address: it has TLS, or is this machine. */
export function isPrivateUrl(url: { readonly hostname: string; readonly protocol: string }): boolean {
  return url.protocol === "https:" || (url.protocol === "http:" && isLoopbackUrl(url));
}
