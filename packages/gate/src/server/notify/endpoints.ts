import { bad, good, nearest, type Result } from "../../../../core/src/wire/mod.ts";
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
export async function readEndpoints(file: string): Promise<Result<readonly Endpoint[], string>> {
  const read = await readPrivateJson("SVC_NOTIFY", file);
  if (!read.ok) return read;
  const found = listOf(read.value);
  return found.ok ? found : bad(`SVC_NOTIFY: in the file ${file}, ${found.problem}`);
}

function listOf(read: unknown): Result<readonly Endpoint[], string> {
  const { endpoints, ...others } = Object(read) as { readonly endpoints?: unknown };
  if (!Array.isArray(endpoints) || Object.keys(others).length > 0)
    return bad("the only member must be `endpoints`, a list");
  if (endpoints.length > endpointsMax) return bad(`there are over ${endpointsMax} endpoints`);
  const found: Endpoint[] = [];
  for (const [index, each] of endpoints.entries()) {
    const endpoint = endpointOf(Object(each) as Readonly<Record<string, unknown>>);
    if (!endpoint.ok) return bad(`endpoint ${index + 1}: ${endpoint.problem}`);
    if (found.some(({ name }) => name === endpoint.value.name))
      return bad(`two endpoints are named ${endpoint.value.name}`);
    found.push(endpoint.value);
  }
  return good(found);
}

function endpointOf(read: Readonly<Record<string, unknown>>): Result<Endpoint, string> {
  const stranger = Object.keys(read).find((name) => !known.includes(name));
  if (stranger !== undefined) {
    const near = nearest(stranger, known);
    return bad(
      `the member "${stranger.slice(0, 40)}" is unknown${near === undefined ? "" : `; did you mean "${near}"?`}`,
    );
  }
  const { name, format = "standard", allow_private: allowPrivate = false, allow_http: allowHttp = false } = read;
  if (typeof name !== "string" || !/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(name))
    return bad("`name` must be 1 to 63 of a-z, 0-9 and -, without - at either end");
  if (typeof allowPrivate !== "boolean" || typeof allowHttp !== "boolean")
    return bad("`allow_private` and `allow_http` must be true or false");
  const isFormat = formats.find((each) => each === format);
  if (isFormat === undefined) return bad(`\`format\` must be one of ${formats.join(", ")}`);
  const url = urlOf(read["url"], allowHttp);
  if (!url.ok) return url;
  const events = namesOf(read["events"], "events");
  const tenants = read["tenants"] === "all" ? good("all" as const) : namesOf(read["tenants"], "tenants");
  if (!events.ok) return events;
  if (!tenants.ok) return tenants;
  const unknown = events.value?.find((event) => !eventTypes.some((type) => type === event));
  if (unknown !== undefined)
    return bad(`"${unknown.slice(0, 40)}" is not an event; events are ${eventTypes.join(", ")}`);
  const secrets = secretsOf(read["secrets"], isFormat);
  if (!secrets.ok) return secrets;
  return good({
    name,
    url: url.value,
    events: events.value as readonly EventType[] | undefined,
    tenants: tenants.value,
    secrets: secrets.value,
    format: isFormat,
    allowPrivate,
  });
}

function urlOf(text: unknown, allowHttp: boolean): Result<URL, string> {
  const url = typeof text === "string" ? URL.parse(text) : null;
  if (url === null) return bad("`url` must be an address such as https://host/path");
  if (url.username !== "" || url.password !== "") return bad("`url` must not have a user name or a password");
  if (url.protocol === "https:" || (url.protocol === "http:" && allowHttp)) return good(url);
  return bad("`url` must begin with https:; for http:, set `allow_http` to true");
}

function namesOf(value: unknown, member: string): Result<readonly string[] | undefined, string> {
  if (value === undefined) return good(undefined);
  const isList = Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === "string");
  return isList ? good(value as readonly string[]) : bad(`\`${member}\` must be a list of names`);
}

/** Standard Webhooks: `whsec_` and 24 to 64 bytes in base64. */
function secretsOf(value: unknown, format: Format): Result<readonly Buffer[], string> {
  if (value === undefined && format === "slack") return good([]);
  if (!Array.isArray(value) || value.length < 1 || value.length > 2)
    return bad("`secrets` must be a list of one secret, or of two during a rotation");
  const secrets = value.map((each) => {
    const [, text = ""] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(String(each)) ?? [];
    return Buffer.from(text, "base64");
  });
  if (secrets.every(({ length }) => length >= 24 && length <= 64)) return good(secrets);
  return bad(
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
