import { lookup } from "node:dns/promises";
import { BlockList, isIP } from "node:net";
import { bad, good, type Result } from "../../wire/mod.ts";

/** An address of a server, after its name was resolved. */
export interface ServerAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

const ipv4Private: readonly (readonly [string, number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
];

/** IPv6 addresses outside 2000::/3 are not routed; these inside it are reserved, or contain an IPv4 address. */
const ipv6Private: readonly (readonly [string, number])[] = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
];

const closed = new BlockList();
for (const [network, bits] of ipv4Private) closed.addSubnet(network, bits, "ipv4");
for (const [network, bits] of ipv6Private) closed.addSubnet(network, bits, "ipv6");
const routed = new BlockList();
routed.addSubnet("2000::", 3, "ipv6");

/** Returns true if an address is routed on the internet: not private, local, shared, multicast or reserved. */
export function isPublic({ address, family }: ServerAddress): boolean {
  if (family === 4) return isIP(address) === 4 && !closed.check(address, "ipv4");
  return isIP(address) === 6 && routed.check(address, "ipv6") && !closed.check(address, "ipv6");
}

export type Resolve = (name: string) => Promise<readonly { readonly address: string; readonly family: number }[]>;

const resolveName: Resolve = (name) => lookup(name, { all: true, verbatim: true });

/**
 * Resolves the host of a URL once. If one of its addresses is not public, none is used.
 *
 * @returns an address to connect to, or why there is none
 */
export async function resolveHost(
  { hostname }: URL,
  allowPrivate: boolean,
  resolve: Resolve = resolveName,
): Promise<Result<ServerAddress, string>> {
  const bare = hostname.replace(/^\[|\]$/g, "");
  const literal = isIP(bare);
  const found = literal === 0 ? await resolve(bare).catch(() => []) : [{ address: bare, family: literal }];
  const addresses = found.map(({ address, family }): ServerAddress => ({ address, family: family === 6 ? 6 : 4 }));
  const [first] = addresses;
  if (first === undefined) return bad("its name cannot be resolved");
  if (allowPrivate || addresses.every(isPublic)) return good(first);
  return bad("its address is not public: if that is meant, set `allow_private` of the endpoint");
}
