import { requireKnown, WrongMember, type Members, type Result } from "../../../../core/src/wire/mod.ts";
import { eventTypes, type EventType } from "../events/event.ts";
import { StartRefused } from "../errors.ts";
import { readPrivateJson } from "../settings/private-file.ts";

export const formats = ["standard", "slack"] as const;
export type Format = (typeof formats)[number];

/** Where events are sent to. Its address and its secrets never appear in logs, metrics or answers. */
export interface Endpoint {
  readonly name: string;
  readonly url: URL;
  /** Undefined means every event. */
  readonly events: readonly EventType[] | undefined;
  /** The tenants whose events are sent; undefined means the root. */
  readonly tenants: readonly string[] | "all" | undefined;
  /** The keys of signatures: two during a rotation. */
  readonly secrets: readonly Buffer[];
  readonly format: Format;
  /** True if the address may be private, such as that of a server in the same network. */
  readonly allowPrivate: boolean;
}

const known = ["name", "url", "events", "tenants", "secrets", "format", "allow_private", "allow_http"];
const endpointsMax = 100;

/**
 * Reads the file of endpoints. Only its owner may read it, because it has addresses and secrets.
 *
 * @returns the endpoints, or a sentence that names the first mistake without any address or secret
 */
export function readEndpoints(file: string): Promise<Result<readonly Endpoint[], string>> {
  return readPrivateJson("SVC_NOTIFY", file, parseEndpoints);
}

function parseEndpoints({ endpoints, ...others }: Members): readonly Endpoint[] {
  if (!Array.isArray(endpoints) || Object.keys(others).length > 0)
    throw new WrongMember("the only member must be `endpoints`, a list");
  if (endpoints.length > endpointsMax) throw new WrongMember(`there are over ${endpointsMax} endpoints`);
  const found: Endpoint[] = [];
  for (const [index, each] of endpoints.entries()) {
    const endpoint = numberMistake(index + 1, () => endpointOf(Object(each) as Members));
    if (found.some(({ name }) => name === endpoint.name))
      throw new WrongMember(`two endpoints are named ${endpoint.name}`);
    found.push(endpoint);
  }
  return found;
}

/** The mistake in an endpoint gets its number. */
function numberMistake(number: number, read: () => Endpoint): Endpoint {
  try {
    return read();
  } catch (error) {
    throw error instanceof WrongMember ? new WrongMember(`endpoint ${number}: ${error.message}`) : error;
  }
}

function endpointOf(read: Members): Endpoint {
  requireKnown(read, known);
  const { name, format = "standard", allow_private: allowPrivate = false, allow_http: allowHttp = false } = read;
  if (typeof name !== "string" || !/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(name))
    throw new WrongMember("`name` must be 1 to 63 of a-z, 0-9 and -, without - at either end");
  if (typeof allowPrivate !== "boolean" || typeof allowHttp !== "boolean")
    throw new WrongMember("`allow_private` and `allow_http` must be true or false");
  const isFormat = formats.find((each) => each === format);
  if (isFormat === undefined) throw new WrongMember(`\`format\` must be one of ${formats.join(", ")}`);
  const url = urlOf(read["url"], allowHttp);
  const events = readNameList(read["events"], "events");
  const tenants = read["tenants"] === "all" ? "all" : readNameList(read["tenants"], "tenants");
  const unknown = events?.find((event) => !eventTypes.some((type) => type === event));
  if (unknown !== undefined)
    throw new WrongMember(`"${unknown.slice(0, 40)}" is not an event; events are ${eventTypes.join(", ")}`);
  const secrets = secretsOf(read["secrets"], isFormat);
  return { name, url, events: events as Endpoint["events"], tenants, secrets, format: isFormat, allowPrivate };
}

function urlOf(text: unknown, allowHttp: boolean): URL {
  const url = typeof text === "string" ? URL.parse(text) : null;
  if (url === null) throw new WrongMember("`url` must be an address such as https://host/path");
  if (url.username !== "" || url.password !== "")
    throw new WrongMember("`url` must not have a user name or a password");
  if (url.protocol === "https:" || (url.protocol === "http:" && allowHttp)) return url;
  throw new WrongMember("`url` must start with https:; for http:, set `allow_http` to true");
}

function readNameList(value: unknown, member: string): readonly string[] | undefined {
  if (value === undefined) return undefined;
  const isList = Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === "string");
  if (isList) return value;
  throw new WrongMember(`\`${member}\` must be a list of names`);
}

/** Standard Webhooks: `whsec_` and 24 to 64 bytes in base64. */
function secretsOf(value: unknown, format: Format): readonly Buffer[] {
  if (value === undefined && format === "slack") return [];
  if (!Array.isArray(value) || value.length < 1 || value.length > 2)
    throw new WrongMember("`secrets` must be a list of one secret, or of two during a rotation");
  const secrets = value.map((each) => {
    const [, text = ""] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(String(each)) ?? [];
    return Buffer.from(text, "base64");
  });
  if (secrets.every(({ length }) => length >= 24 && length <= 64)) return secrets;
  throw new WrongMember(
    "a secret must be `whsec_` and 24 to 64 bytes in base64: `echo whsec_$(openssl rand -base64 32)` makes one",
  );
}

/** @throws {StartRefused} if the file of endpoints cannot be used */
export async function endpointsOf({
  notify,
}: {
  readonly notify?: string | undefined;
}): Promise<readonly Endpoint[] | undefined> {
  if (notify === undefined) return undefined;
  const endpoints = await readEndpoints(notify);
  if (!endpoints.ok) throw new StartRefused(endpoints.problem, 2);
  return endpoints.value;
}
