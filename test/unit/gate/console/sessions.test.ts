/**
 * Goal: a sealed session opens with its own page secret, within its times and on its path, and with nothing else.
 * Method: sessions over a clock of the test; each byte of a cookie is changed in turn. Secrets are made in real files.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
  secretIn,
  sessionIdleMs,
  sessionMs,
  Sessions,
  type OpenedSession,
} from "../../../../packages/console/src/server/sessions.ts";
import { EndedSessions } from "../../../../packages/gate/src/server/keys/ended-sessions.ts";
import { temporaryFolder } from "../../../support/ledger-fixture.ts";

const scope = "/console";
const start = { keyDigest: "a".repeat(64), row: 7, scope };
const secret = (): Promise<Buffer> => Promise.resolve(Buffer.alloc(32, 1));

function sessionsAt(): { readonly sessions: Sessions; readonly clock: { ms: number } } {
  const clock = { ms: 1_800_000_000_000 };
  return { sessions: new Sessions(secret, () => clock.ms), clock };
}

test("a cookie opens its session only with its page secret and in its scope", async () => {
  const { sessions } = sessionsAt();
  const [one, other] = [await sessions.open(start), await sessions.open(start)];
  assert.deepEqual(await sessions.read([one.cookie], one.pageSecret, scope), one.session);
  assert.deepEqual(await sessions.read(["x", other.cookie, one.cookie], one.pageSecret, scope), one.session);
  for (const wrong of ["", other.pageSecret, one.session.pageDigest, one.pageSecret.slice(1)])
    assert.equal(await sessions.read([one.cookie], wrong, scope), undefined);
  for (const elsewhere of ["", "/t/acme/console", "/console/"])
    assert.equal(await sessions.read([one.cookie], one.pageSecret, elsewhere), undefined);
  assert.equal(
    await new Sessions(() => Promise.resolve(Buffer.alloc(32, 2))).read([one.cookie], one.pageSecret, scope),
    undefined,
  );
  assert.notEqual(one.session.nonce, other.session.nonce);
});

test("a cookie with any changed, missing or added byte opens nothing", async () => {
  const { sessions } = sessionsAt();
  const { cookie, pageSecret } = await sessions.open(start);
  const bytes = Buffer.from(cookie, "base64url");
  const opens = async (changed: Uint8Array): Promise<boolean> =>
    (await sessions.read([Buffer.from(changed).toString("base64url")], pageSecret, scope)) !== undefined;
  assert.ok(await opens(bytes), "positive control: the unchanged cookie opens the session");
  for (let at = 0; at < bytes.length; at += 1) {
    const changed = Buffer.from(bytes);
    changed[at] = (changed[at] ?? 0) ^ 1;
    assert.equal(await opens(changed), false, `byte ${at}`);
    assert.equal(await opens(bytes.subarray(0, at)), false, `the first ${at} bytes`);
  }
  assert.equal(await opens(Buffer.concat([bytes, Buffer.alloc(1)])), false);
  for (const odd of ["", ".", "é", "null", "A".repeat(10_000)])
    assert.equal(await sessions.read([odd], pageSecret, scope), undefined);
});

test("a session ends when its person is idle, and after its longest time in any case", async () => {
  const { sessions, clock } = sessionsAt();
  const opened = await sessions.open(start);
  const startedAt = clock.ms;
  const reads = async ({ cookie, pageSecret }: Pick<OpenedSession, "cookie" | "pageSecret">): Promise<boolean> =>
    (await sessions.read([cookie], pageSecret, scope)) !== undefined;
  clock.ms = startedAt + sessionIdleMs - 1;
  assert.ok(await reads(opened));
  clock.ms += 1;
  assert.ok(!(await reads(opened)));
  clock.ms = startedAt;
  let { cookie } = opened;
  for (; clock.ms < startedAt + sessionMs; clock.ms += sessionIdleMs - 1) {
    const session = await sessions.read([cookie], opened.pageSecret, scope);
    assert.ok(session !== undefined, `after ${clock.ms - startedAt} ms`);
    cookie = (await sessions.renew(session, scope)) ?? cookie;
  }
  clock.ms = startedAt + sessionMs - 1;
  assert.ok(await reads({ ...opened, cookie }));
  clock.ms += 1;
  assert.ok(!(await reads({ ...opened, cookie })));
});

test("a session is renewed at most once a minute, and keeps its sign-in", async () => {
  const { sessions, clock } = sessionsAt();
  const { session, pageSecret } = await sessions.open(start);
  clock.ms += 59_999;
  assert.equal(await sessions.renew(session, scope), undefined);
  clock.ms += 1;
  const renewed = await sessions.read([(await sessions.renew(session, scope)) ?? ""], pageSecret, scope);
  assert.deepEqual(renewed, { ...session, active: clock.ms });
});

test("the secret of a folder is made once, whole and private, and a short one is refused", async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, "console.secret");
  const [one, two] = await Promise.all([secretIn(file), secretIn(file)]);
  assert.deepEqual(await secretIn(file), one);
  assert.deepEqual(two, one);
  assert.deepEqual(readFileSync(file), one);
  assert.equal(one.length, 32);
  if (process.platform !== "win32") assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(folder), ["console.secret"]);
  for (const short of ["", "x".repeat(31)]) {
    writeFileSync(file, short);
    await assert.rejects(secretIn(file), /is damaged: remove it/);
  }
});

test("a secret that cannot be read is read again at the next request", async () => {
  let isThere = false;
  const sessions = new Sessions(() => (isThere ? secret() : Promise.reject(new Error("not now"))));
  await assert.rejects(sessions.open(start), /not now/);
  isThere = true;
  assert.equal((await sessions.open(start)).session.row, 7);
});

const now = 1_800_000_000_000;
const ending = (seq: number, at: number, session: string | null) => ({
  seq,
  at,
  body: JSON.stringify({ key: "anna", session }),
});

test("the end of all sessions ends those that were opened before its row, whatever the clocks of replicas say", () => {
  const ended = new EndedSessions();
  ended.add(ending(9, now, null), now);
  const has = (row: number, issued: number): boolean => ended.has({ id: "anna" }, { nonce: "n", row, issued });
  assert.ok(has(8, now - 1));
  assert.ok(has(8, now + 60_000), "the clock of the other replica is a minute ahead");
  assert.ok(has(20, now), "rows were lost in a restore");
  assert.ok(!has(9, now + 1));
  assert.ok(!ended.has({ id: "bob" }, { nonce: "n", row: 1, issued: 1 }));
});

test("ended sessions are forgotten when they could not be open any more", () => {
  const ended = new EndedSessions();
  const session = { nonce: "n", row: 1, issued: now - 1 };
  const digest = "1b16b1df538ba12dc3f97edbb85caa7050d46c148134290feba80f8236c83db9";
  ended.add(ending(2, now, digest), now);
  assert.ok(ended.has({ id: "anna" }, session));
  ended.add(ending(3, now + sessionMs + 1, "0".repeat(64)), now + sessionMs + 1);
  assert.ok(!ended.has({ id: "anna" }, session));
  ended.add(ending(2, now, digest), now + sessionMs + 1);
  assert.ok(!ended.has({ id: "anna" }, session), "an old row is not even read");
  ended.clear();
});
