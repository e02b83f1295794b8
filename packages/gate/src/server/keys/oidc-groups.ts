import { quote } from "../../../../core/src/wire/mod.ts";
import type { AdminEvent } from "../policy/admin-event.ts";
import { keyId, type KeyRecord } from "./record.ts";

/** The act of a row that says in which groups a provider of OpenID Connect has put the person of a key. */
export const keysGroups = "keys.groups";

/** Groups with this prefix come from a provider, at a sign-in. Nobody else can set one. */
const prefix = "oidc:";

export function isOidcGroup(group: string): boolean {
  return group.startsWith(prefix);
}

interface StatedGroups extends Pick<KeyRecord, "name" | "tenant"> {
  /** All groups from the provider, with their prefix, sorted. The key's other groups stay. */
  readonly groups: readonly string[];
}

/**
 * The row that states the groups of a key; undefined if the key has just these.
 *
 * @param groups without their prefix
 */
export function groupsEvent(record: KeyRecord, groups: readonly string[]): AdminEvent | undefined {
  const stated = [...new Set(groups)].map((group) => prefix + group).toSorted();
  const known = (record.groups ?? []).filter(isOidcGroup);
  if (stated.length === known.length && stated.every((group, index) => group === known[index])) return undefined;
  const { name, tenant } = record;
  const text = stated.length === 0 ? "no group" : stated.join(", ");
  return {
    by: keyId(record),
    act: keysGroups,
    body: { name, tenant, groups: stated },
    reason: `Svc: the person of the key ${quote(keyId(record))} signed in, and the provider states ${text}`,
  };
}

/** Which key such a row is about. */
export function readStated(body: string): StatedGroups {
  return JSON.parse(body) as StatedGroups;
}

/** The record with the groups of such a row. It changes nothing else, so a provider can only ever state groups. */
export function withOidcGroups(record: KeyRecord, { groups }: StatedGroups): KeyRecord {
  return { ...record, groups: [...withoutOidcGroups(record), ...groups.filter(isOidcGroup)].toSorted() };
}

/** The groups that administrators gave. */
export function withoutOidcGroups({ groups = [] }: Pick<KeyRecord, "groups">): readonly string[] {
  return groups.filter((group) => !isOidcGroup(group));
}
