import type { IPv4, IPv6 } from "ipaddr.js";
import {
  boolean,
  type ContractFunction,
  EvaluationError,
  library,
  type PatternProblem,
  recordType,
  size,
  string,
} from "../../../core/src/contract/function.ts";
import { bad, good, type Result } from "../../../core/src/wire/mod.ts";

const ipaddr = library("ipaddr.js", async () => (await import("ipaddr.js")).default);

export const loadAddresses: () => Promise<void> = ipaddr.load;

/** IP addresses, in spellings that every program reads alike. */
export const addressFunctions: readonly ContractFunction[] = [
  {
    name: "ip",
    style: "function",
    parameters: ["string"],
    result: recordType({ version: size, text: string, public: boolean }),
    doc:
      "An IP address: `version` (4 or 6), `text` (its shortest spelling), `public` (routed on the internet: not private, " +
      "local, shared, reserved or inside a cloud). Short, octal and hexadecimal IPv4, zones, and IPv6 that contains an " +
      "IPv4 address are errors.",
    examples: [
      ['ip("10.1.2.3").public', "false"],
      ['ip("2606:4700:0:0::1111").text', '"2606:4700::1111"'],
    ],
    load: ipaddr.load,
    run: ([text]) => {
      const address = readAddress(text as string);
      const [version, spelled] =
        address.kind() === "ipv4" ? [4, address.toString()] : [6, (address as IPv6).toRFC5952String()];
      return new Map<string, number | string | boolean>([
        ["version", version],
        ["text", spelled],
        ["public", isPublic(address)],
      ]);
    },
  },
  {
    name: "cidr",
    style: "method",
    parameters: ["string", "string"],
    result: boolean,
    doc: "Is the IP address in the network? An address of the other version is not.",
    examples: [['"10.1.2.3".cidr("10.0.0.0/8")', "true"]],
    load: ipaddr.load,
    checkLiteral: networkProblem,
    run: ([text, network]) => {
      const address = readAddress(text as string);
      const [start, bits] = readNetwork(network as string);
      return address.kind() === start.kind() && address.match(start, bits);
    },
  },
];

/**
 * Reads an address in a spelling that all programs read alike. IPv4 is four plain decimals. IPv6 that contains an IPv4
 * address is refused, because a rule on the IPv4 address would miss it.
 *
 * @throws {EvaluationError} for any other text
 */
export function readAddress(text: string): IPv4 | IPv6 {
  if (isPlainIpv4(text)) return ipaddr.use().IPv4.parse(text);
  if (!/^[0-9A-Fa-f:]{2,39}$/.test(text) || !ipaddr.use().IPv6.isValid(text))
    throw new EvaluationError(`"${text.slice(0, 45)}" is not an IP address in its plain spelling`);
  const address = ipaddr.use().IPv6.parse(text);
  if (carriesIpv4(address)) throw new EvaluationError(`${text} is an IPv6 address that contains an IPv4 address`);
  return address;
}

/** Networks in public space that only machines inside a cloud reach, as the clouds' own pages name them. */
const insideClouds: readonly string[] = [
  "168.63.129.16/32", // Azure: the host's agent
  "161.26.0.0/16", // IBM Cloud: infrastructure
  "166.8.0.0/14", // IBM Cloud: services
  "34.118.224.0/20", // Google: services in a cluster
  "2600:2d00:0:4::/64",
  "34.126.0.0/18", // Google: interfaces for machines inside
  "2001:4860:8040::/42",
  "199.36.153.4/30",
  "199.36.153.8/30",
  "2600:2d00:2:1000::/56",
  "2600:2d00:2:2000::/56",
  "2600:2d00:0:2::/63", // Google: routers
];

let cloudNetworks: [IPv4 | IPv6, number][] | undefined;

/** Is the address routed on the internet? IPv6 outside 2000::/3 is not allocated yet, so the answer is false. */
export function isPublic(address: IPv4 | IPv6): boolean {
  if (address.range() !== "unicast") return false;
  const { parseCIDR, subnetMatch } = ipaddr.use();
  cloudNetworks ??= insideClouds.map((network) => parseCIDR(network));
  if (subnetMatch(address, { cloud: cloudNetworks }, "none") === "cloud") return false;
  return address.kind() === "ipv4" || ((address as IPv6).parts[0] ?? 0) >> 13 === 1;
}

/**
 * Is the text an address that is routed on the internet? An address that is in another one, as in `::ffff:10.0.0.1`, is not.
 * Wait for `loadAddresses` first.
 */
export function isPublicText(text: string): boolean {
  const { isValid, parse } = ipaddr.use();
  return isValid(text) && isPublic(parse(text));
}

export function isPlainIpv4(text: string): boolean {
  const parts = text.split(".");
  return parts.length === 4 && parts.every((part) => /^(?:0|[1-9][0-9]{0,2})$/.test(part) && Number(part) <= 255);
}

const carriers: readonly string[] = ["ipv4Mapped", "rfc6145", "rfc6052", "6to4", "teredo"];

function carriesIpv4(address: IPv6): boolean {
  const [, , , , fifth = 0, sixth, seventh = 0, eighth = 0] = address.parts;
  const isCompatible = address.parts.slice(0, 6).every((part) => part === 0) && (seventh > 0 || eighth > 1);
  const isIsatap = (fifth & 0xfdff) === 0 && sixth === 0x5efe;
  return carriers.includes(address.range()) || isCompatible || isIsatap;
}

/** @throws {EvaluationError} */
function readNetwork(text: string): readonly [IPv4 | IPv6, number] {
  const found = splitNetwork(text);
  if (!found.ok) throw new EvaluationError(found.problem.message);
  const { start, bits } = found.value;
  const address = readAddress(start);
  const first = address.kind() === "ipv4" ? ipaddr.use().IPv4 : ipaddr.use().IPv6;
  if (bits > (address.kind() === "ipv4" ? 32 : 128)) throw new EvaluationError(`a network /${bits} is too narrow`);
  const expected = first.networkAddressFromCIDR(`${start}/${bits}`).toString();
  if (expected !== address.toString())
    throw new EvaluationError(`the network ${text} starts at ${expected}: write ${expected}/${bits}`);
  return [address, bits];
}

function networkProblem(literal: string): PatternProblem | undefined {
  const found = splitNetwork(literal);
  return found.ok ? undefined : found.problem;
}

/** The checks of a network that do not need its parser. */
function splitNetwork(text: string): Result<{ readonly start: string; readonly bits: number }, PatternProblem> {
  const parts = /^([0-9A-Fa-f:.]{2,39})\/(0|[1-9][0-9]{0,2})$/.exec(text);
  const [, start = "", bits = ""] = parts ?? [];
  if (parts === null || !(start.includes(":") ? !start.includes(".") : isPlainIpv4(start)))
    return bad({
      message: `"${text.slice(0, 45)}" is not a network`,
      hint: 'write one such as "10.0.0.0/8" or "fd00::/8"',
    });
  return good({ start, bits: Number(bits) });
}
