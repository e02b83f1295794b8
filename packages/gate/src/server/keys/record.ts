import { keyKindOf, type Canonical, type KeyKind } from "../../../../core/src/wire/mod.ts";
import type { Rate } from "../settings/rate.ts";

/** The scopes of keys. Each route needs one. */
export const scopes = ["check", "rules", "receipts", "outcome", "approve", "admin", "metrics"] as const;
export type KeyScope = (typeof scopes)[number];

/**
 * A key as a row of the ledger records it. The last row for a tenant and a name counts. The key itself is not stored.
 */
export interface KeyRecord {
  readonly name: string;
  /** Null is the root. */
  readonly tenant: string | null;
  readonly owner: string | null;
  /**
   * SHA-256 in hex; null for the first key. A person may have chosen that key, so a digest in a row could be guessed.
   */
  readonly digest: string | null;
  /** The key before the last rotation. It stays valid until `until`, in milliseconds since the epoch. */
  readonly previous: { readonly digest: string | null; readonly until: number } | null;
  /** Milliseconds since the epoch; null means never. */
  readonly expires: number | null;
  readonly scopes: readonly KeyScope[];
  /** Patterns; null means every tool. */
  readonly tools: readonly string[] | null;
  readonly rate: Rate | null;
  readonly revoked: boolean;
  /** The person who uses the key. Only a key with a person may decide calls. */
  readonly person?: string | undefined;
  /** The groups of the person, sorted. */
  readonly groups?: readonly string[] | undefined;
  /** Undefined for an ordinary key. It never changes. */
  readonly kind?: KeyKind | undefined;
}

/** Returns a name that is unique over all tenants. The names of tenants and keys have no slash. */
export function keyId({ tenant, name }: Pick<KeyRecord, "name" | "tenant">): string {
  return tenant === null ? name : `${tenant}/${name}`;
}

/** Returns the body of a key's row. */
export function recordBody({ rate, revoked, previous, person, groups, kind, ...rest }: KeyRecord): Canonical {
  return {
    ...rest,
    ...(person === undefined ? {} : { person }),
    ...(groups === undefined ? {} : { groups: [...groups] }),
    ...(kind === undefined ? {} : { kind }),
    previous: previous === null ? null : { ...previous },
    rate: rate === null ? null : { burst: rate.burst, per_second: rate.perSecond },
    ...(revoked ? { revoked } : {}),
  };
}

/**
 * Reads the body of a key's row. Unknown scopes, from a later version, are left out. A key of an unknown kind has no
 * scopes, because the kind may mean that it may do less.
 */
export function readRecord(body: string): KeyRecord {
  const written = JSON.parse(body) as WrittenRecord;
  const { digest, expires, name, owner, previous, rate, tenant, tools, person, groups } = written;
  const kind = keyKindOf(written.kind);
  const isKnown = written.kind === undefined || kind !== undefined;
  return {
    name,
    tenant,
    owner,
    digest,
    previous,
    expires,
    scopes: scopes.filter((scope) => isKnown && written.scopes.includes(scope)),
    tools,
    rate: rate === null ? null : { perSecond: rate.per_second, burst: rate.burst },
    revoked: written.revoked === true,
    ...(person === undefined ? {} : { person }),
    ...(groups === undefined ? {} : { groups }),
    ...(kind === undefined ? {} : { kind }),
  };
}

interface WrittenRecord extends Omit<KeyRecord, "kind" | "rate" | "revoked" | "scopes"> {
  readonly kind?: unknown;
  readonly rate: { readonly burst: number; readonly per_second: number } | null;
  readonly revoked?: boolean;
  readonly scopes: readonly string[];
}
