import type { Canonical } from "../../../wire/mod.ts";

/** What a key may be used for; a route names one. */
export const scopes = ["check", "rules", "receipts", "outcome", "approve", "admin", "metrics"] as const;
export type Scope = (typeof scopes)[number];

/** How often a key may ask: a bucket of `burst` that fills by `perSecond`. Both are whole, from 1. */
export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

/** A key as the ledger's rows have it: the last row of a tenant and a name holds. The key itself is nowhere. */
export interface KeyRecord {
  readonly name: string;
  /** Null is the root, whose keys are of no tenant. */
  readonly tenant: string | null;
  readonly owner: string | null;
  /** SHA-256 in hex; null is the first key's, which no row has: a person may have chosen it, and it could be guessed. */
  readonly digest: string | null;
  /** What was valid before the last rotation, until its overlap ends in milliseconds since the epoch. */
  readonly previous: { readonly digest: string | null; readonly until: number } | null;
  /** Milliseconds since the epoch; null is never. */
  readonly expires: number | null;
  readonly scopes: readonly Scope[];
  /** Patterns; null is every tool. */
  readonly tools: readonly string[] | null;
  readonly rate: Rate | null;
  readonly revoked: boolean;
}

/** Names a key over all tenants. Neither a tenant nor a key has a slash in its name. */
export function keyId({ tenant, name }: Pick<KeyRecord, "name" | "tenant">): string {
  return tenant === null ? name : `${tenant}/${name}`;
}

/** The body of a key's row. */
export function recordBody({ rate, revoked, previous, ...rest }: KeyRecord): Canonical {
  return {
    ...rest,
    previous: previous === null ? null : { ...previous },
    rate: rate === null ? null : { burst: rate.burst, per_second: rate.perSecond },
    ...(revoked ? { revoked } : {}),
  };
}

/** A row's body as it was written; scopes of a later version, which this one cannot honour, are left out. */
export function readRecord(body: string): KeyRecord {
  const written = JSON.parse(body) as WrittenRecord;
  const { digest, expires, name, owner, previous, rate, tenant, tools } = written;
  return {
    name,
    tenant,
    owner,
    digest,
    previous,
    expires,
    scopes: scopes.filter((scope) => written.scopes.includes(scope)),
    tools,
    rate: rate === null ? null : { perSecond: rate.per_second, burst: rate.burst },
    revoked: written.revoked === true,
  };
}

interface WrittenRecord extends Omit<KeyRecord, "rate" | "revoked" | "scopes"> {
  readonly rate: { readonly burst: number; readonly per_second: number } | null;
  readonly revoked?: boolean;
  readonly scopes: readonly string[];
}
