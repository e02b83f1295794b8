import {
  Decimal,
  keyKindOf,
  didYouMean,
  quote,
  typeName,
  utf8Bytes,
  type Json,
  type JsonObject,
  type Refusal,
  type Result,
} from "../../../../core/src/wire/mod.ts";
import { gateName, retentionName, operatorName } from "../policy/reserved-names.ts";
import { readBody, readText, BodyError } from "../request/body.ts";
import { lengthMs } from "../settings/moment.ts";
import { firstKeyName } from "./first-key.ts";
import { isOidcGroup } from "./oidc-groups.ts";
import { scopes, type KeyRecord, type KeyScope } from "./record.ts";
import { rateMax, type Rate } from "../settings/rate.ts";

/** A request for a new key. */
export interface CreateRequest extends Pick<
  KeyRecord,
  "expires" | "groups" | "kind" | "name" | "owner" | "person" | "rate" | "scopes" | "tools"
> {
  /** Undefined if the body does not name a tenant. */
  readonly tenant: string | null | undefined;
}

export interface RotateRequest {
  readonly overlapMs: number;
  /** Undefined keeps the old value. */
  readonly expires: number | null | undefined;
}

/** A change of who uses a key. Undefined keeps the old value. */
export interface UpdateRequest {
  readonly person: string | undefined;
  readonly groups: readonly string[] | undefined;
}

const dayMs = 86_400_000;
const overlapMsMax = 30 * dayMs;
const ownerBytesMax = 256;
const toolsMax = 64;
const patternBytesMax = 256;

/** Names in rows that do not stand for a key. A key must not have such a name. */
const reserved: readonly string[] = [operatorName, retentionName, gateName, "start"];

/**
 * Reads the body of a POST /admin/keys.
 *
 * @param now milliseconds since the epoch
 */
export function readCreate(body: unknown, now: number): Result<CreateRequest, Refusal> {
  const names = ["name", "owner", "scopes", "expires", "tenant", "tools", "rate", "person", "groups", "kind"];
  return readBody(body, names, (members) => {
    const kind = readKind(members);
    const found = {
      name: readName(members.get("name")),
      owner: readOwner(members.get("owner") ?? null),
      scopes: kind === undefined ? readScopes(members.get("scopes") ?? ["check"]) : hostScopes,
      ...(kind !== undefined && { kind }),
      expires: readExpiry(members.get("expires") ?? null, now),
      tenant: readTenant(members.get("tenant")),
      tools: readTools(members.get("tools") ?? null),
      rate: readRate(members.get("rate") ?? null),
      ...readUser(members),
    };
    requireApart(found);
    if (kind !== undefined && found.name === firstKeyName)
      throw new BodyError(`the name ${quote(firstKeyName)} is that of the first key: choose another name`);
    return found;
  });
}

/** A key of a host asks for calls; which routes it opens is a matter of its kind. */
const hostScopes: readonly KeyScope[] = ["check"];

function readKind(members: JsonObject): KeyRecord["kind"] {
  const value = members.get("kind");
  if (value === undefined) return undefined;
  const kind = keyKindOf(value);
  if (kind === undefined) throw new BodyError('"kind" must be "host"; a key without it is an ordinary key');
  if (members.has("scopes")) throw new BodyError(`the scopes of a key of kind "${kind}" are fixed: leave "scopes" out`);
  return kind;
}

/** Reads the body of a POST /admin/keys/{name}/update. */
export function readUpdate(body: unknown): Result<UpdateRequest, Refusal> {
  return readBody(body, ["person", "groups"], (members) => {
    const { person, groups } = readUser(members);
    if (person === undefined && groups === undefined)
      throw new BodyError('the body must have "person", "groups" or both');
    return { person, groups };
  });
}

/** Reads the body of a POST /admin/persons. */
export function readPerson(body: unknown): Result<string, Refusal> {
  return readBody(body, ["name"], (members) => readName(members.get("name")));
}

function readUser(members: JsonObject): Pick<KeyRecord, "groups" | "person"> {
  const [person, groups] = [members.get("person"), members.get("groups")];
  return {
    ...(person !== undefined && { person: readText("person", person) }),
    ...(groups !== undefined && { groups: readGroups(groups) }),
  };
}

const groupsMax = 16;

function readGroups(value: Json): readonly string[] {
  if (Array.isArray(value) && value.length === 0) return [];
  const groups = readList("groups", value, groupsMax).map((each) => readText("a group", each));
  const stated = groups.find(isOidcGroup);
  if (stated !== undefined)
    throw new BodyError(`the group ${quote(stated)} can only come from the provider of the sign-in: leave it out`);
  const odd = groups.find((group) => !/^[a-z0-9][a-z0-9._-]{0,63}$/.test(group));
  if (odd !== undefined) throw new BodyError(`${quote(odd)} is not the name of a group: 1 to 64 of a-z, 0-9 and . _ -`);
  return [...new Set(groups)].toSorted();
}

/** The agent's key must not have the person's half of a decision, not even by mistake. */
function requireApart({ scopes: wanted, person, groups }: Pick<KeyRecord, "groups" | "person" | "scopes">): void {
  const other = wanted.find((scope) => scope === "approve" || scope === "admin");
  if (wanted.includes("check") && other !== undefined)
    throw new BodyError(`a key with the scope "check" cannot have "${other}": make two keys`);
  if (wanted.includes("approve") && person === undefined)
    throw new BodyError('a key with the scope "approve" needs the "person" who uses it');
  if (groups !== undefined && person === undefined)
    throw new BodyError('"groups" are those of a "person": name the person');
}

/** Reads the body of a POST /admin/keys/{name}/rotate. */
export function readRotate(body: unknown, now: number): Result<RotateRequest, Refusal> {
  return readBody(body, ["overlap", "expires"], (members) => ({
    overlapMs: readOverlap(members.get("overlap") ?? "24h"),
    expires: members.has("expires") ? readExpiry(members.get("expires") ?? null, now) : undefined,
  }));
}

/** Reads a body without members. */
export function readNothing(body: unknown): Result<null, Refusal> {
  return readBody(body, [], () => null);
}

function readName(value: Json | undefined): string {
  const name = readText("name", value);
  if (!/^[a-z0-9][a-z0-9._-]{0,63}$/.test(name))
    throw new BodyError('"name" must be 1 to 64 of a-z, 0-9 and . _ -, and start with a letter or a digit');
  if (reserved.includes(name)) throw new BodyError(`the name ${quote(name)} is reserved: choose another name`);
  return name;
}

function readOwner(value: Json): string | null {
  if (value === null) return null;
  const owner = readText("owner", value);
  if (owner === "" || utf8Bytes(owner) > ownerBytesMax || /\p{C}/u.test(owner))
    throw new BodyError(`"owner" must be 1 to ${ownerBytesMax} bytes of visible characters`);
  return owner;
}

function readScopes(value: Json): readonly KeyScope[] {
  const wanted = readList("scopes", value, scopes.length).map((each) => readScope(readText("a scope", each)));
  return scopes.filter((scope) => wanted.includes(scope));
}

function readScope(text: string): KeyScope {
  const found = scopes.find((scope) => scope === text);
  if (found !== undefined) return found;
  const hint = didYouMean(text, scopes, `scopes are ${scopes.join(", ")}`, '"');
  throw new BodyError(`the scope ${quote(text)} does not exist; ${hint}`);
}

function readTenant(value: Json | undefined): string | null | undefined {
  return value === undefined || value === null ? value : readText("tenant", value);
}

function readTools(value: Json): readonly string[] | null {
  if (value === null) return null;
  const patterns = readList("tools", value, toolsMax).map((each) => readText("a pattern of tools", each));
  const odd = patterns.find((each) => each === "" || utf8Bytes(each) > patternBytesMax || each.includes("\0"));
  if (odd !== undefined)
    throw new BodyError(
      `${quote(odd)} is not a pattern of tools: a pattern has 1 to ${patternBytesMax} bytes and no NUL`,
    );
  return patterns;
}

function readRate(value: Json): Rate | null {
  if (value === null) return null;
  if (!(value instanceof Map)) throw new BodyError(`"rate" must be an object, not ${typeName(value)}`);
  const rate: JsonObject = value;
  const stranger = rate.keys().find((name) => name !== "per_second" && name !== "burst");
  if (stranger !== undefined)
    throw new BodyError(`"rate" has no member ${quote(stranger)}, only "per_second" and "burst"`);
  const perSecond = readCount("per_second", rate.get("per_second"));
  return { perSecond, burst: rate.has("burst") ? readCount("burst", rate.get("burst")) : perSecond };
}

function readCount(member: string, value: Json | undefined): number {
  if (typeof value === "number" && value >= 1 && value <= rateMax) return value;
  const found = value === undefined ? "" : `, not ${value instanceof Decimal ? value.text : typeName(value)}`;
  throw new BodyError(`"${member}" of "rate" must be a whole number from 1 to ${rateMax}${found}`);
}

function readOverlap(value: Json): number {
  const ms = lengthMs(readText("overlap", value));
  if (ms === undefined || ms > overlapMsMax)
    throw new BodyError('"overlap" must be a time such as 24h, from 0s to 30d');
  return ms;
}

/** Reads a moment of RFC 3339, or a length of time from now. */
function readExpiry(value: Json, now: number): number | null {
  if (value === null) return null;
  const text = readText("expires", value);
  const length = lengthMs(text);
  const at = length === undefined ? momentMs(text) : now + length;
  if (at === undefined)
    throw new BodyError('"expires" must be a time such as 90d, or a moment such as 2027-01-31T00:00:00Z');
  if (at <= now) throw new BodyError('"expires" is in the past');
  return at;
}

function momentMs(text: string): number | undefined {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/.test(text)) return undefined;
  try {
    return Temporal.Instant.from(text).epochMilliseconds;
  } catch {
    return undefined; // a day or an hour that does not exist
  }
}

function readList(member: string, value: Json, max: number): readonly Json[] {
  if (Array.isArray(value) && value.length >= 1 && value.length <= max) return value as readonly Json[];
  throw new BodyError(`"${member}" must be a list of 1 to ${max} strings`);
}
