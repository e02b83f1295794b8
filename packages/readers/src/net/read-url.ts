import { EvaluationError, type Value } from "../../../core/src/contract/function.ts";
import { isPlainIpv4, isPublic, readAddress } from "./address.ts";
import { isHostName, registrableDomain } from "./host.ts";

/** The parser of the platform (WHATWG URL), which reads no clock and no network. */
declare const URL: new (text: string) => { readonly hostname: string; readonly pathname: string };

/** Signed links have 2,000 characters and more; many servers accept at most this length. */
const lengthMax = 8192;

/** The schemes whose hosts WHATWG URL reads as internet hosts, and their default ports. */
const ports: ReadonlyMap<string, number> = new Map([
  ["http", 80],
  ["https", 443],
  ["ws", 80],
  ["wss", 443],
  ["ftp", 21],
]);

/** @throws {EvaluationError} if two parsers could disagree, or if one would repair the text */
export function readUrl(text: string): Value {
  if (text.length > lengthMax) refuse(`it is over ${lengthMax} characters long`);
  if (!/^[A-Za-z0-9._~:/?#[\]@!$&'()*+,;=%-]*$/.test(text)) refuse("it has a character that must be percent-encoded");
  const parts = /^([A-Za-z]+):\/\/([^/?#]+)([^?#]*)(?:\?([^#]*))?(?:#.*)?$/.exec(text);
  if (parts === null) refuse("it is not scheme://host/path");
  const [, written = "", authority = "", path = "", query = ""] = parts;
  const scheme = written.toLowerCase();
  const usual = ports.get(scheme);
  if (usual === undefined) refuse(`its scheme is not one of ${[...ports.keys()].join(", ")}`);
  const { host, port = usual } = readAuthority(authority);
  checkParsed(text, host, path);
  checkPath(path);
  const bare = host.replace(/^\[|\]$/g, "");
  const address = host !== bare || isPlainIpv4(bare) ? readAddress(bare) : undefined;
  if (address === undefined && !isHostName(bare)) refuse("its host is neither a host name nor an address");
  return new Map<string, Value>([
    ["scheme", scheme],
    ["host", bare],
    ["port", port],
    ["path", path === "" ? "/" : path],
    ["query", query],
    ["domain", address === undefined ? registrableDomain(bare) : ""],
    ["isAddress", address !== undefined],
    ["public", address !== undefined && isPublic(address)],
  ]);
}

function readAuthority(authority: string): { readonly host: string; readonly port?: number } {
  if (authority.includes("@")) refuse("it has a user name or password before its host");
  const parts = /^(\[[^[\]]*\]|[^:[\]]+)(?::([1-9][0-9]{0,4}))?$/.exec(authority);
  if (parts === null) refuse("its host or port is not in its plain spelling");
  const [, host = "", port] = parts;
  if (Number(port ?? 0) > 65_535) refuse("its port is over 65535");
  return { host: host.toLowerCase(), ...(port !== undefined && { port: Number(port) }) };
}

/** The platform's parser must return the host and path as written. Otherwise it changed the host, or removed `..`. */
function checkParsed(text: string, host: string, path: string): void {
  const parsed = attempt(() => new URL(text));
  if (parsed === undefined) refuse("it is not a URL");
  if (parsed.hostname !== host) refuse(`its host would be read as ${parsed.hostname}`);
  if (parsed.pathname !== (path === "" ? "/" : path)) refuse(`its path would be read as ${parsed.pathname}`);
}

function attempt<Found>(run: () => Found): Found | undefined {
  try {
    return run();
  } catch {
    return undefined;
  }
}

/** RFC 3986 6.2.2: a path has one spelling, so that no other spelling bypasses a rule. */
function checkPath(path: string): void {
  if (path.includes("//")) refuse("its path has an empty segment");
  if (/\/\.{1,2};/.test(path)) refuse("its path has a dot segment with parameters");
  for (const [escape] of path.matchAll(/%.{0,2}/g)) {
    if (!/^%[0-9A-F]{2}$/.test(escape)) refuse(`its path contains "${escape}", which is not an encoding in upper case`);
    if (/%(?:[01].|7F|2[DEF]|5[CF]|7E|3[0-9]|[46][1-9A-F]|[57][0-9A])/.test(escape))
      refuse(`its path contains ${escape}, an encoded separator, control or plain character`);
  }
  if (/%25[0-9A-Fa-f]{2}/.test(path)) refuse("its path is encoded twice");
  if (attempt(() => decodeURIComponent(path)) === undefined) refuse("its path is encoded, but not in UTF-8");
}

function refuse(why: string): never {
  throw new EvaluationError(`a URL that is in doubt: ${why}`);
}
