import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { isPublicText, loadAddresses } from "../../../../readers/src/mod.ts";
import { bad, good, type Result } from "../../../../core/src/wire/mod.ts";

/** An address of a server, after its name was resolved. */
export interface ServerAddress {
  readonly address: string;
  readonly family: 4 | 6;
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
  await loadAddresses();
  if (allowPrivate || addresses.every(({ address }) => isPublicText(address))) return good(first);
  return bad("its address is not public: if that is meant, set `allow_private` of the endpoint");
}
