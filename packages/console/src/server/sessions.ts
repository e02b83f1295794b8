import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import { link, open, readFile, rm } from "node:fs/promises";
import { Seal } from "./seal.ts";

/** The contents of the sealed cookie. Scopes, groups and the state of the key are never in it. */
export interface Session {
  /** SHA-256 in hex of the key that opened the session. */
  readonly keyDigest: string;
  /** SHA-256 in hex of the page's own secret. */
  readonly pageDigest: string;
  /** 128 random bits in hex; rows name their digest. */
  readonly nonce: string;
  /** Milliseconds since the epoch. */
  readonly issued: number;
  /** The last act of the person, to the minute; milliseconds since the epoch. */
  readonly active: number;
  /** The last row about keys that the gate knew at the sign-in. */
  readonly row: number;
}

/** A sign-in. */
export interface SessionStart {
  /** SHA-256 in hex of the key. */
  readonly keyDigest: string;
  readonly row: number;
  /** The gate's path and tenant: a cookie of one is nothing to another. */
  readonly scope: string;
}

/** A new session: the cookie's value, and the secret that the page keeps. */
export interface OpenedSession {
  readonly cookie: string;
  readonly pageSecret: string;
  readonly session: Session;
}

export const sessionIdleMs: number = 30 * 60_000;
export const sessionMs: number = 12 * 3_600_000;
const renewAfterMs = 60_000;

/**
 * Seals sessions into cookies, so that every replica with the same secret can read them.
 *
 * A browser sends a cookie to every port of a host. So the cookie alone opens nothing: the page also sends a secret that
 * its origin stores, and the cookie has only the digest of that secret.
 */
export class Sessions {
  readonly #seal: Seal;
  readonly #now: () => number;

  /** @param secret reads or makes the secret; at least 32 bytes */
  constructor(secret: () => Promise<Buffer>, now: () => number = Date.now) {
    this.#seal = new Seal(secret, "svc-gate console session 1");
    this.#now = now;
  }

  async open({ keyDigest, row, scope }: SessionStart): Promise<OpenedSession> {
    const now = this.#now();
    const pageSecret = randomBytes(32).toString("base64url");
    const session = {
      keyDigest,
      pageDigest: hash("sha256", pageSecret, "hex"),
      nonce: randomBytes(16).toString("hex"),
      issued: now,
      active: now,
      row,
    };
    return { cookie: await this.#seal.close(session, scope), pageSecret, session };
  }

  /** Returns the session of the first cookie that fits the page's secret; undefined if none does or it has ended. */
  async read(cookies: readonly string[], pageSecret: string, scope: string): Promise<Session | undefined> {
    const pageDigest = hash("sha256", pageSecret, "hex");
    for (const cookie of cookies) {
      const session = (await this.#seal.open(cookie, scope)) as Session | undefined;
      if (session !== undefined && isEqual(session.pageDigest, pageDigest) && this.isLive(session)) return session;
    }
    return undefined;
  }

  /** Returns false after 30 minutes without an act of the person, and after 12 hours. */
  isLive({ issued, active }: Session): boolean {
    const now = this.#now();
    return now < issued + sessionMs && now < active + sessionIdleMs;
  }

  /** The cookie after an act of the person; undefined if the old one is new enough. */
  async renew(session: Session, scope: string): Promise<string | undefined> {
    const now = this.#now();
    return now < session.active + renewAfterMs ? undefined : this.#seal.close({ ...session, active: now }, scope);
  }
}

function isEqual(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));
}

const secretBytes = 32;

/**
 * Reads the secret of a data folder, or makes it. Only the owner can read the file.
 *
 * @throws if the file is shorter than a secret: whoever knew its content could seal sessions of any key
 */
export async function secretIn(file: string): Promise<Buffer> {
  const secret = await readFile(file).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
    await makeSecret(file);
    return readFile(file);
  });
  if (secret.length < secretBytes)
    throw new Error(`${file} is damaged: remove it, and the gate makes another. Each person must then sign in again`);
  return secret;
}

/** The file gets its name when its content is on disk, so a crash cannot leave an empty secret. */
async function makeSecret(file: string): Promise<void> {
  const fresh = `${file}.${randomBytes(8).toString("hex")}`;
  const handle = await open(fresh, "wx", 0o600);
  try {
    await handle.writeFile(randomBytes(secretBytes));
    await handle.sync();
  } finally {
    await handle.close();
  }
  await link(fresh, file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  await rm(fresh);
}
