import type { Receipt } from "../../../../core/src/record/entry/mod.ts";
import { bad, good, quote, refuse, type KeyJson, type Refusal, type Result } from "../../../../core/src/wire/mod.ts";
import { digestOf } from "./digest.ts";
import { keyId, recordBody, type KeyRecord } from "./record.ts";
import { withoutOidcGroups } from "./oidc-groups.ts";
import { operatorName } from "../policy/reserved-names.ts";
import {
  readCreate,
  readNothing,
  readPerson,
  readRotate,
  readUpdate,
  type CreateRequest,
  type RotateRequest,
  type UpdateRequest,
} from "./requests.ts";
import type { ValidKey, KeyStanding } from "./known-keys.ts";
import type { KeyRing } from "./ring.ts";
import { makeKey } from "./token.ts";

/**
 * An administrator and the tenant whose keys are managed. `by` has the scope admin, and belongs to that tenant or to
 * the root.
 */
export interface KeyAdmin {
  readonly by: ValidKey;
  /** Null is the root. */
  readonly tenant: string | null;
}

/** The answer to a change: the row that records it, and the new key, which is shown only once. */
export interface ChangedKey extends KeyJson {
  readonly key?: string;
  readonly receipt: Receipt;
}

/** A request that changes a key. `body` is the body of its POST route: bytes, or a value that is not yet JSON. */
export type KeyRequest<Body = unknown> =
  | { readonly act: "create"; readonly body: Body }
  | { readonly act: "revoke" | "rotate" | "update"; readonly name: string; readonly body: Body };

type KeyIdentity = Pick<KeyRecord, "name" | "tenant">;

/** Lists keys. The root's administrators see the keys of all tenants; a tenant's administrators see their own. */
export async function listKeys(ring: KeyRing, { tenant }: KeyAdmin): Promise<readonly KeyJson[]> {
  const standings = await ring.list(tenant ?? undefined);
  return standings.map((standing) => keyJson(standing, ring.now()));
}

/** Lists people, who are for all tenants. A tenant's administrators see only those who use a key of the tenant. */
export async function listPeople(ring: KeyRing, { tenant }: KeyAdmin): Promise<readonly string[]> {
  if (tenant === null) return ring.known.people;
  const used = new Set((await ring.list(tenant)).map(({ record }) => record.person));
  return ring.known.people.filter((person) => used.has(person));
}

/**
 * Returns why the body of a POST /admin/keys is wrong for any ledger, by this machine's clock; undefined if it is not.
 */
export function createFault(body: unknown): Refusal | undefined {
  const request = readCreate(body, Date.now());
  return request.ok ? undefined : request.problem;
}

/** Appends the row of a request, or refuses it. */
export async function changeKey(
  ring: KeyRing,
  admin: KeyAdmin,
  request: KeyRequest,
): Promise<Result<ChangedKey, Refusal>> {
  const { act, body } = request;
  const { by, tenant } = admin;
  if (act === "create") return createKey(ring, admin, body);
  const wanted = { rotate: rotation, revoke: revocation, update }[act](ring, by, body);
  if (!wanted.ok) return wanted;
  return recordChange(ring, by, wanted.value.key, () => {
    const found = liveKey(ring, { name: request.name, tenant });
    return found.ok ? wanted.value.change(found.value) : found;
  });
}

/** A change of a key, before it is recorded. */
interface KeyEvent {
  readonly act: "keys.create" | "keys.rotate" | "keys.revoke" | "keys.update";
  readonly record: KeyRecord;
  /** One sentence for a person. */
  readonly reason: string;
}

/** A change of a live key, as the body of its route asks for it. */
interface KeyChangeRequest {
  /** The new key, if there is one. */
  readonly key?: string;
  readonly change: (old: KeyRecord) => Result<KeyEvent, Refusal>;
}

/** Adds a person to the list of those who may decide calls. Only the root's administrators may. */
export async function addPerson(
  ring: KeyRing,
  { by, tenant }: KeyAdmin,
  body: unknown,
): Promise<Result<{ readonly name: string; readonly receipt: Receipt }, Refusal>> {
  const read = readPerson(body);
  if (!read.ok) return read;
  if (tenant !== null || by.tenant !== null)
    return bad(refuse("forbidden", "people are for all tenants: only an administrator of the root adds them"));
  const name = read.value;
  const receipt = await ring.append(() => {
    if (ring.known.people.includes(name))
      return bad(refuse("conflict", `the person ${quote(name)} is on the list already`));
    return good({ by: by.id, act: "persons.add", body: { name }, reason: `Svc: ${by.id} added the person ${name}` });
  });
  if (!receipt.ok) return receipt;
  const { seq, hash } = receipt.value;
  return good({ name, receipt: { seq, hash } });
}

/** Changes who uses a key. */
function update(ring: KeyRing, by: ValidKey, body: unknown): Result<KeyChangeRequest, Refusal> {
  const request = readUpdate(body);
  if (!request.ok) return request;
  const change: KeyChangeRequest["change"] = (old) => {
    const { person = old.person, groups = groupsFor(old, request.value) } = request.value;
    if (person === undefined)
      return bad(refuse("invalid-request", '"groups" are those of a "person": name the person'));
    const record: KeyRecord = { ...old, person, ...(groups === undefined ? {} : { groups }) };
    const problem = unknownPerson(ring, record) ?? beyondMaker(by, record);
    if (problem !== undefined) return bad(problem);
    const of = groups === undefined || groups.length === 0 ? "" : `, of ${groups.join(", ")}`;
    const reason = `Svc: ${by.id} says that ${person}${of}, uses the key ${keyId(record)}`;
    return good({ act: "keys.update", record, reason });
  };
  return good({ change });
}

/** The groups that a provider stated are those of a person, so they stay only with that person. */
function groupsFor(known: KeyRecord, { person = known.person }: UpdateRequest): KeyRecord["groups"] {
  return known.groups === undefined || person === known.person ? known.groups : withoutOidcGroups(known);
}

function unknownPerson(ring: KeyRing, { person }: Pick<KeyRecord, "person">): Refusal | undefined {
  if (person === undefined || ring.known.people.includes(person)) return undefined;
  return refuse(
    "invalid-request",
    `no person is called ${quote(person)}: add the person with \`svc-gate persons add\``,
  );
}

async function createKey(ring: KeyRing, admin: KeyAdmin, body: unknown): Promise<Result<ChangedKey, Refusal>> {
  const request = readCreate(body, ring.now());
  if (!request.ok) return request;
  const tenant = tenantOf(ring, admin, request.value);
  if (!tenant.ok) return tenant;
  const key = makeKey();
  const record: KeyRecord = {
    ...request.value,
    tenant: tenant.value,
    digest: digestOf(key),
    previous: null,
    revoked: false,
  };
  const { by } = admin;
  const beyond = beyondMaker(by, record);
  if (beyond !== undefined) return bad(beyond);
  return recordChange(ring, by, key, () => {
    const stranger = unknownPerson(ring, record);
    if (stranger !== undefined) return bad(stranger);
    const known = ring.known.findState(record);
    if (known !== undefined) return bad(refuse("conflict", takenName(known.record)));
    const reason = `Svc: ${by.id} made the key ${keyId(record)}, for ${purposeOf(record)}`;
    return good({ act: "keys.create", record, reason });
  });
}

function purposeOf({ kind, scopes }: KeyRecord): string {
  return kind === undefined ? scopes.join(", ") : `the ${kind} of an agent`;
}

/** Makes a new key under the old name. The old key stays valid until the overlap ends. */
function rotation(ring: KeyRing, by: ValidKey, body: unknown): Result<KeyChangeRequest, Refusal> {
  const request = readRotate(body, ring.now());
  if (!request.ok) return request;
  const key = makeKey();
  const change: KeyChangeRequest["change"] = (old) => {
    const beyond = beyondMaker(by, old);
    if (beyond !== undefined) return bad(beyond);
    const record = rotateRecord(old, digestOf(key), request.value, ring.now());
    if (record.expires !== null && record.expires <= ring.now())
      return bad(refuse("conflict", `the key ${quote(old.name)} has expired: set a new end with "expires"`));
    const { previous } = record;
    const overlap = previous === null ? "ends now" : `is valid until ${moment(previous.until)}`;
    const reason = `Svc: ${by.id} rotated the key ${keyId(record)}; the old key ${overlap}`;
    return good({ act: "keys.rotate", record, reason });
  };
  return good({ key, change });
}

function revocation(_ring: KeyRing, by: ValidKey, body: unknown): Result<KeyChangeRequest, Refusal> {
  const request = readNothing(body);
  if (!request.ok) return request;
  const change: KeyChangeRequest["change"] = (old) => {
    const record: KeyRecord = { ...old, previous: null, revoked: true };
    return good({ act: "keys.revoke", record, reason: `Svc: ${by.id} revoked the key ${keyId(record)}` });
  };
  return good({ change });
}

async function recordChange(
  ring: KeyRing,
  by: ValidKey,
  key: string | undefined,
  decide: () => Result<KeyEvent, Refusal>,
): Promise<Result<ChangedKey, Refusal>> {
  let changed: KeyRecord | undefined;
  const receipt = await ring.append(() => {
    const decided = decide();
    if (!decided.ok) return decided;
    const { act, record, reason } = decided.value;
    changed = record;
    return good({ by: by.id, act, body: recordBody(record), reason });
  });
  if (!receipt.ok) return receipt;
  const { seq, hash } = receipt.value;
  const standing = changed && ring.known.findState(changed);
  if (standing === undefined) throw new Error(`row ${seq} is missing from the keys in memory`);
  return good({ ...(key === undefined ? {} : { key }), ...keyJson(standing, ring.now()), receipt: { seq, hash } });
}

/** Returns the tenant of a new key: the tenant in the path, or at the root the one in the body. */
function tenantOf(
  ring: KeyRing,
  { tenant }: KeyAdmin,
  { tenant: named }: CreateRequest,
): Result<string | null, Refusal> {
  if (named === undefined || named === tenant) return good(tenant);
  if (tenant !== null) return bad(refuse("forbidden", `keys at this path can only be for the tenant ${quote(tenant)}`));
  if (named !== null && !ring.isTenant(named))
    return bad(refuse("invalid-request", `the tenant ${quote(named)} does not exist`));
  return good(named);
}

/**
 * Refuses to grant more than the administrator's own key may do, to a new key or by changing a key. Administrators of
 * the root may grant anything but `approve`: that takes their own, or the files of the gate's machine. Every
 * administrator may grant `check`, because no key has it beside `admin`.
 */
function beyondMaker(by: ValidKey, { name, scopes, tools }: KeyRecord): Refusal | undefined {
  if (by.tenant === null) {
    const mayApprove = by.name === operatorName || by.scopes.has("approve");
    if (!scopes.includes("approve") || mayApprove) return undefined;
    const problem = `the key ${quote(by.name)} lacks the scope "approve", so it cannot make or change ${quote(name)}`;
    return refuse("forbidden", `${problem}: use the command on the gate's machine`);
  }
  const more = scopes.filter((scope) => !by.scopes.has(scope) && scope !== "check");
  if (more.length > 0) {
    const sentence = `the key ${quote(by.name)} lacks the scope ${more.map(quote).join(", ")}, so it cannot grant that to ${quote(name)}`;
    return refuse("forbidden", sentence);
  }
  // A pattern that matches the text of another pattern, with its stars, also matches every tool that the other matches.
  const wider = (tools ?? ["*"]).find((pattern) => !by.allowsTool(pattern));
  if (wider === undefined) return undefined;
  return refuse(
    "forbidden",
    `the key ${quote(by.name)} does not cover the tools ${quote(wider)}, so it cannot grant them`,
  );
}

/** The old key stays valid until the overlap ends, but never beyond its own expiry. */
function rotateRecord(old: KeyRecord, digest: string, { overlapMs, expires }: RotateRequest, now: number): KeyRecord {
  const next = expires === undefined ? old.expires : expires;
  const until = Math.min(now + overlapMs, old.expires ?? Infinity, next ?? Infinity);
  return { ...old, digest, expires: next, previous: until > now ? { digest: old.digest, until } : null };
}

/**
 * The message does not repeat the name: somebody may have sent a key instead of its name, and the log would show it.
 */
const noSuchKey = "no key has that name; `svc-gate keys list` shows the names";

function liveKey(ring: KeyRing, named: KeyIdentity): Result<KeyRecord, Refusal> {
  const record = ring.known.findState(named)?.record;
  if (record?.name !== named.name) return bad(refuse("not-found", noSuchKey));
  if (record.revoked) return bad(refuse("conflict", `the key ${quote(named.name)} is revoked`));
  return good(record);
}

function takenName({ name, revoked }: KeyRecord): string {
  const found = revoked ? "was revoked" : "exists: rotate it";
  return `a key ${quote(name)} ${found}; receipts name keys, so a name is never used for another key`;
}

const soonMs = 7 * 86_400_000;

function keyJson({ record, created, lastUsed }: KeyStanding, now: number): KeyJson {
  const {
    name,
    tenant,
    owner,
    scopes,
    tools,
    rate,
    expires,
    previous,
    person = null,
    groups = [],
    kind = null,
  } = record;
  const isRotating = previous !== null && previous.until > now && stateOf(record, now) === "rotating";
  return {
    name,
    tenant,
    owner,
    scopes,
    kind,
    tools,
    rate: rate === null ? null : { per_second: rate.perSecond, burst: rate.burst },
    person,
    groups,
    created: created === null ? null : moment(created),
    expires: expires === null ? null : moment(expires),
    previous_until: isRotating ? moment(previous.until) : null,
    state: stateOf(record, now),
    last_used: lastUsed === null ? null : moment(lastUsed),
  };
}

function stateOf({ expires, previous, revoked }: KeyRecord, now: number): KeyJson["state"] {
  if (revoked) return "revoked";
  if (expires !== null && expires <= now) return "expired";
  if (previous !== null && previous.until > now) return "rotating";
  return expires !== null && expires - now < soonMs ? "expiring" : "active";
}

function moment(ms: number): string {
  return new Date(ms).toISOString();
}
