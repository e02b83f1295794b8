/**
 * Goal: a session of the console opens the gate to the page that signed in, and to nothing else. Method: each scenario
 * plays the browser, another server or another origin against a real gate. Positive controls: each scenario fails
 * against a gate with a planted defect.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { secretIn, Sessions } from "../../packages/console/src/server/sessions.ts";
import { digestOf } from "../../packages/gate/src/server/keys/digest.ts";
import { assertLedgerValid, large, runScenarios, small, type Desk, type Scenario } from "../support/approvals.ts";
import { cookieIn, pageOf, sendAsPage, sendPlain, signIn, trySignIn, type ConsolePage } from "../support/console.ts";
import { openStream, type Stream } from "../support/events.ts";
import { ask } from "../support/gate.ts";

const keyOf = ({ keys }: Desk, person = "anna"): string => keys[person] ?? assert.fail(`${person} has no key`);
const signInAnna = (desk: Desk): Promise<ConsolePage> => signIn(desk, keyOf(desk));

/** Parks a call that anna may decide. */
async function park(desk: Desk): Promise<{ readonly id: string; readonly hash: string }> {
  const { approval } = await desk.asks(large);
  const { json } = await desk.as("anna", `/approvals/${approval.id}`);
  return { id: approval.id, hash: json.hash };
}

async function assertPending(desk: Desk, id: string): Promise<void> {
  assert.equal((await desk.as("anna", `/approvals/${id}`)).json.status, "pending");
}

/** A session of a key that was opened and last used at other times, sealed with the gate's own secret. */
async function sessionOf(
  { folder, address }: Desk,
  key: string,
  { openedMsAgo, usedMsAgo }: { readonly openedMsAgo: number; readonly usedMsAgo: number },
): Promise<ConsolePage> {
  const secret = (): Promise<Buffer> => secretIn(join(folder, "data", "console.secret"));
  const past = new Sessions(secret, () => Date.now() - openedMsAgo);
  const { pageSecret, session } = await past.open({ keyDigest: digestOf(key), row: 1e9, scope: "/console" });
  const used = await new Sessions(secret, () => Date.now() - usedMsAgo).renew({ ...session, active: 0 }, "/console");
  const cookie = `svc-${new URL(address).port}=${used}`;
  const signedIn = await sendPlain({ address }, "/health");
  return pageOf({ address }, { cookie, secret: pageSecret, signedIn });
}

const minute = 60_000;
const hour = 60 * minute;

const noPageSecret = {
  within: "Sessions.read",
  find: "isEqual(session.pageDigest, pageDigest)",
  put: "true",
} as const;

const noEnds = { within: "KnownKeys.isSessionEnded", first: "return false;" } as const;

const noKeyState = {
  within: "KnownKeys.findDigest",
  first: "this.#seen ??= new Map(); const gone = this.#seen.get(digest); if (gone) return gone;",
} as const;

/** Keeps each key that was ever found, whatever happens to it. */
const oldKeys = [
  noKeyState,
  {
    within: "KnownKeys.findDigest",
    find: "found.entry.lastUsed = now;",
    put: "this.#seen.set(digest, found.entry.key);",
  },
  { within: "KnownKeys.#digests", value: "new Map(); #seen" },
] as const;

runScenarios("a session of the console", [
  {
    rule: "a cookie stolen by a server on another port can neither list nor decide",
    run: async (desk, t) => {
      const anna = await signInAnna(desk);
      const { id, hash } = await park(desk);
      const thief = await listen(t);
      // A browser sends a host's cookies to each port of the host.
      await sendPlain(thief, "/pixel.png", { headers: { cookie: anna.cookie } });
      const cookie = thief.received[0]?.headers.cookie;
      assert.equal(cookie, anna.cookie);
      for (const secret of [undefined, "", "x", anna.cookie, keyOf(desk).slice(0, -1)]) {
        const headers: Readonly<Record<string, string | undefined>> = { cookie, "x-svc-session": secret };
        assert.equal((await sendAsPage(desk, "/api/approvals", { headers })).status, 401);
        assert.equal((await sendAsPage(desk, "/session", { headers })).status, 401);
        const body = { hash, comment: "mine" };
        for (const act of ["approve", "deny"])
          assert.equal((await sendAsPage(desk, `/api/approvals/${id}/${act}`, { headers, body })).status, 401);
      }
      await assertPending(desk, id);
      assert.equal((await anna("/api/approvals")).json.approvals.length, 1);
    },
    defect: noPageSecret,
  },
  {
    rule: "session fixation: a cookie that was planted before the sign-in opens nothing after it",
    run: async (desk) => {
      const mallory = await signIn(desk, keyOf(desk, "bob"));
      const planted = { headers: { cookie: mallory.cookie } };
      const answer = await sendAsPage(desk, "/session", { ...planted, body: { key: keyOf(desk) } });
      const own = cookieIn(answer) ?? assert.fail();
      assert.notEqual(own, mallory.cookie);
      assert.notEqual(answer.json.session, mallory.secret);
      // The planted cookie has a longer path, so the browser sends it first.
      const both = { cookie: `${mallory.cookie}; ${own}`, secret: answer.json.session, signedIn: answer };
      assert.equal((await pageOf(desk, both)("/session")).json.person, "anna");
      const onlyPlanted = pageOf(desk, { ...both, cookie: mallory.cookie });
      assert.equal((await onlyPlanted("/session")).status, 401);
      const malloryAfter = pageOf(desk, { ...both, cookie: own, secret: mallory.secret });
      assert.equal((await malloryAfter("/session")).status, 401);
    },
    defect: noPageSecret,
  },
  {
    rule: "a session ends thirty minutes after the last act of its person",
    run: async (desk) => {
      await signInAnna(desk);
      const open = await sessionOf(desk, keyOf(desk), { openedMsAgo: hour, usedMsAgo: 29 * minute });
      const answer = await open("/api/approvals");
      assert.equal(answer.status, 200);
      assert.ok(cookieIn(answer), "an act renews the session");
      const quiet = await open("/api/approvals", { headers: { "x-svc-background": "1" } });
      assert.equal(quiet.status, 200);
      assert.equal(cookieIn(quiet), undefined, "a page that refreshes itself does not");
      const idle = await sessionOf(desk, keyOf(desk), { openedMsAgo: hour, usedMsAgo: 30 * minute });
      assert.equal((await idle("/api/approvals")).status, 401);
    },
    defect: { within: "Sessions.isLive", find: "now < active + sessionIdleMs", put: "true" },
  },
  {
    rule: "a session ends twelve hours after the sign-in, however busy its person is",
    run: async (desk) => {
      await signInAnna(desk);
      const open = await sessionOf(desk, keyOf(desk), { openedMsAgo: 12 * hour - minute, usedMsAgo: minute });
      const renewed = cookieIn(await open("/session")) ?? assert.fail("it was not renewed");
      const over = await sessionOf(desk, keyOf(desk), { openedMsAgo: 12 * hour, usedMsAgo: minute });
      assert.equal((await over("/session")).status, 401);
      assert.equal((await pageOf(desk, { ...open, cookie: renewed })("/session")).status, 200);
    },
    defect: { within: "Sessions.isLive", find: "now < issued + sessionMs", put: "true" },
  },
  {
    rule: "a revoked key ends its sessions at once, and no other session",
    run: async (desk) => {
      const [anna, bob] = [await signInAnna(desk), await signIn(desk, keyOf(desk, "bob"))];
      await desk.operates("/admin/keys/anna-laptop/revoke", {});
      assert.equal((await anna("/session")).status, 401);
      assert.equal((await anna("/api/approvals")).status, 401);
      assert.equal((await trySignIn(desk, keyOf(desk))).status, 401);
      assert.equal((await bob("/session")).status, 200);
    },
    defect: oldKeys,
  },
  {
    rule: "a rotated key ends its sessions when its overlap ends, and the new key opens others",
    run: async (desk) => {
      const anna = await signInAnna(desk);
      const { json } = await desk.operates("/admin/keys/anna-laptop/rotate", { overlap: "2s" });
      assert.equal((await anna("/session")).status, 200);
      const again = await signIn(desk, json.key);
      await wait(2100);
      assert.equal((await anna("/session")).status, 401);
      assert.equal((await again("/session")).status, 200);
    },
    defect: oldKeys,
  },
  {
    rule: "an expired key ends its sessions",
    run: async (desk) => {
      const scopes = ["approve", "receipts"];
      const { json } = await desk.operates("/admin/keys", { name: "guest", scopes, person: "anna", expires: "2s" });
      const guest = await signIn(desk, json.key);
      await wait(2100);
      assert.equal((await guest("/session")).status, 401);
      assert.equal((await guest("/api/receipts")).status, 401);
    },
    defect: oldKeys,
  },
  {
    rule: "the gate reads a key's groups at each request, and not from the cookie",
    run: async (desk) => {
      const anna = await signInAnna(desk);
      const { id, hash } = await park(desk);
      assert.deepEqual((await anna("/session")).json.groups, ["finance"]);
      await desk.operates("/admin/keys/anna-laptop/update", { person: "anna", groups: ["legal"] });
      assert.deepEqual((await anna("/session")).json.groups, ["legal"]);
      assert.equal((await anna(`/api/approvals/${id}/approve`, { body: { hash } })).json.code, "not-an-approver");
      await assertPending(desk, id);
    },
    defect: oldKeys,
  },
  {
    rule: "a sign-out ends the session at the gate, and a copy of its cookie and secret opens nothing more",
    run: async (desk) => {
      const [one, other] = [await signInAnna(desk), await signInAnna(desk)];
      const answer = await one("/session/end", { body: {} });
      assert.equal(answer.status, 200, answer.text);
      assert.deepEqual(answer.headers["set-cookie"]?.length, 1);
      assert.match(answer.headers["set-cookie"]?.[0] ?? "", /^svc-\d+=; .*Max-Age=0$/);
      assert.equal((await one("/session")).status, 401);
      assert.equal((await other("/session")).status, 200);
      await assertLedgerValid(desk);
    },
    defect: noEnds,
  },
  {
    rule: "a person can end all sessions of a key, and sign in again",
    run: async (desk) => {
      const [one, other, bob] = [
        await signInAnna(desk),
        await signInAnna(desk),
        await signIn(desk, keyOf(desk, "bob")),
      ];
      assert.equal((await one("/session/end", { body: { all: "yes" } })).status, 400);
      assert.equal((await one("/session/end", { body: { all: true } })).status, 200);
      for (const ended of [one, other]) assert.equal((await ended("/session")).status, 401);
      assert.equal((await bob("/session")).status, 200);
      assert.equal((await (await signInAnna(desk))("/session")).status, 200);
    },
    defect: noEnds,
  },
  {
    rule: "a sign-out does not end the recorded answer to an exact repeat of a check",
    run: async (desk) => {
      const anna = await signInAnna(desk);
      const identified = { ...small, call_id: "0".repeat(32) };
      const { receipt } = await desk.asks(identified);
      assert.equal((await anna("/session/end", { body: {} })).status, 200);
      const again = await desk.asks(identified);
      assert.equal(again.repeated, true);
      assert.deepEqual(again.receipt, receipt);
    },
    defect: { within: "harmlessActs", text: "sessions.end", put: "sessions.begin" },
  },
  {
    rule: "a session that ends while its request's body arrives decides nothing",
    run: async (desk) => {
      const [anna, other] = [await signInAnna(desk), await signInAnna(desk)];
      const { id, hash } = await park(desk);
      const body = JSON.stringify({ hash });
      const { host, origin, port } = new URL(desk.address);
      const head = [
        `POST /console/api/approvals/${id}/approve HTTP/1.1`,
        `Host: ${host}`,
        `Origin: ${origin}`,
        "Sec-Fetch-Site: same-origin",
        "Content-Type: application/json",
        "X-Svc-Console: 1",
        `Cookie: ${anna.cookie}`,
        `X-Svc-Session: ${anna.secret}`,
        `Content-Length: ${body.length}`,
        "Connection: close",
      ];
      const pieces = async function* (): AsyncGenerator<string> {
        yield `${head.join("\r\n")}\r\n\r\n${body.slice(0, 5)}`;
        await wait(300);
        assert.equal((await other("/session/end", { body: { all: true } })).status, 200);
        yield body.slice(5);
      };
      assert.match(await exchangePieces(Number(port), pieces()), /^HTTP\/1\.1 401 /);
      await assertPending(desk, id);
    },
    defect: {
      within: "addKeyHooks",
      find: "exchange.session === undefined && keys.known.isUnchanged(exchange.key)",
      put: "keys.known.isUnchanged(exchange.key)",
    },
  },
  {
    rule: "a session that ends while it waits for a decision gets no answer",
    run: async (desk) => {
      const [anna, other] = [await signInAnna(desk), await signInAnna(desk)];
      const { id } = await park(desk);
      const waiting = anna(`/api/approvals/${id}?wait=2`);
      await wait(300);
      await other("/session/end", { body: { all: true } });
      const answer = await waiting;
      assert.equal(answer.status, 401, answer.text);
      assert.ok(!answer.text.includes("anna"));
    },
    defect: {
      within: "show",
      module: "http/approvals",
      find: "call.key !== undefined && request.exchange?.credential()?.id !== call.key.id",
      put: "false",
    },
  },
  {
    rule: "a stream of events ends with its session, and shows nothing after it",
    run: async (desk) => {
      const [anna, bob] = [await signInAnna(desk), await signIn(desk, keyOf(desk, "bob"))];
      const streams = [await streamOf(desk, anna), await streamOf(desk, bob)] as const;
      await park(desk);
      for (const stream of streams) await stream.next("approval.opened");
      await anna("/session/end", { body: {} });
      await desk.asks({ ...large, tool_input: { amount: 1250, to: "otto" } });
      await streams[1].next("approval.opened");
      await streams[0].ends();
      assert.equal(streams[0].events.filter(({ type }) => type === "approval.opened").length, 1);
      streams[1].close();
    },
    defect: noEnds,
  },
  {
    rule: "a cookie and its secret open no route of the API",
    run: async (desk) => {
      const anna = await signInAnna(desk);
      const headers = { cookie: anna.cookie, "x-svc-session": anna.secret, "x-svc-console": "1", authorization: "" };
      for (const path of ["/approvals", "/receipts", "/stop", "/rules", "/events"])
        assert.equal((await ask(desk, path, { headers })).status, 401, path);
    },
    defect: {
      within: "addKeyHooks",
      find: 'access === "session" && door !== undefined',
      put: 'access !== "page" && access !== "sign-in" && !request.headers.authorization && door !== undefined',
    },
  },
  {
    rule: "the routes of the console never read Authorization",
    run: async (desk) => {
      const authorization = `Bearer ${keyOf(desk)}`;
      for (const path of ["/api/approvals", "/api/receipts", "/session"])
        assert.equal((await sendAsPage(desk, path, { headers: { authorization } })).status, 401, path);
      const anna = await signInAnna(desk);
      const other = await anna("/session", { headers: { authorization: `Bearer ${keyOf(desk, "bob")}` } });
      assert.equal(other.json.person, "anna");
    },
    defect: {
      within: "ConsoleDoor.admit",
      find: "if (session === undefined) return bad(noSession);",
      put:
        "const given = () => this.#parts.keys.known.find(request.headers.authorization);" +
        "if (session === undefined && given()) return good({ session: {}, credential: given, cookie: undefined }); $found",
    },
  },
  {
    rule: "under a public address with TLS, only the gate itself can set the cookie, and only TLS carries it",
    run: async (desk) => {
      const origin = "https://gate.example";
      const anna = await signIn(desk, keyOf(desk), { origin });
      const [field = ""] = anna.signedIn.headers["set-cookie"] ?? [];
      assert.match(field, /^__Host-svc=[\w-]+; Secure; HttpOnly; SameSite=Strict; Path=\/; Max-Age=43200$/);
      assert.equal((await anna("/session")).status, 200);
      const local = await signInAnna(desk);
      assert.match(local.signedIn.headers["set-cookie"]?.[0] ?? "", /^svc-\d+=[\w-]+; HttpOnly; SameSite=Strict; /);
      const planted = anna.cookie.replace("__Host-svc", local.cookie.split("=")[0] ?? "");
      assert.equal((await pageOf(desk, { ...anna, cookie: planted }, { origin })("/session")).status, 401);
    },
    options: { env: { SVC_PUBLIC_URL: "https://gate.example" } },
    defect: { within: "ConsoleDoor.#isSecure", first: "return false;" },
  },
  {
    rule: "a cookie of one gate opens nothing on another gate, even with the same key",
    run: async (desk, t) => {
      const anna = await signInAnna(desk);
      const copied = `svc-${new URL(desk.address).port}=${forged(anna.cookie)}`;
      assert.equal((await pageOf(desk, { ...anna, cookie: copied })("/session")).status, 401);
      const strangers = new Sessions(() => Promise.resolve(Buffer.alloc(32)));
      const { cookie, pageSecret } = await strangers.open({
        keyDigest: digestOf(keyOf(desk)),
        row: 1e9,
        scope: "/console",
      });
      const sealed = { ...anna, cookie: `${anna.cookie.split("=")[0]}=${cookie}`, secret: pageSecret };
      assert.equal((await pageOf(desk, sealed)("/session")).status, 401);
      t.diagnostic(`a cookie has ${anna.cookie.length} characters`);
    },
    defect: { within: "openConsole", find: "secretIn(file)", put: "Promise.resolve(Buffer.alloc(32))" },
  },
  {
    rule: "a cookie that is too large is refused, and planted cookies of the same name cost little",
    run: async (desk) => {
      const anna = await signInAnna(desk);
      const [name] = anna.cookie.split("=");
      const huge = await anna("/session", { headers: { cookie: `${name}=${"A".repeat(20_000)}; ${anna.cookie}` } });
      assert.equal(huge.json.code, "headers-too-large");
      const planted = Array.from({ length: 8 }, () => `${name}=${"A".repeat(80)}`);
      const crowd = [...planted.slice(1), anna.cookie].join("; ");
      assert.equal((await anna("/session", { headers: { cookie: crowd } })).status, 200);
      const tooMany = [...planted, anna.cookie].join("; ");
      assert.equal((await anna("/session", { headers: { cookie: tooMany } })).status, 401);
    },
    defect: { within: "cookiesOf", find: "own.slice(0, cookiesMax)", put: "own" },
  },
] satisfies readonly Scenario[]);

/** The value of a cookie with one bit changed. */
function forged(cookie: string): string {
  const bytes = Buffer.from(cookie.split("=")[1] ?? "", "base64url");
  bytes[40] = (bytes[40] ?? 0) ^ 1;
  return bytes.toString("base64url");
}

/** A server on another port, which notes what it receives. */
async function listen(t: TestContext): Promise<{ readonly address: string; readonly received: IncomingMessage[] }> {
  const received: IncomingMessage[] = [];
  const server = createServer((incoming, response) => {
    received.push(incoming);
    response.end();
  }).listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  return { address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received };
}

function streamOf(desk: Desk, page: ConsolePage): Promise<Stream> {
  const own = { cookie: page.cookie, "x-svc-session": page.secret, "x-svc-console": "1" };
  return openStream(desk, "", { path: "/console/api/events", own });
}

/** Sends bytes in pieces, and returns everything that comes back. */
async function exchangePieces(port: number, pieces: AsyncIterable<string>): Promise<string> {
  const socket = connect(port, "127.0.0.1").setEncoding("latin1");
  const received: string[] = [];
  socket.on("data", (piece) => received.push(String(piece)));
  const closed = once(socket, "close");
  for await (const piece of pieces) socket.write(piece);
  await closed;
  return received.join("");
}
