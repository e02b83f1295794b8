/**
 * Goal: no other origin, host or frame can use the session of a person, and reading changes nothing. Method: each
 * scenario sends the requests of hostile pages over every route, with a cookie and a secret that are right. Positive
 * controls: each scenario fails against a gate with a planted defect.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { routes } from "../../packages/gate/src/server/http/routes.ts";
import { large, runScenarios, type Desk, type Scenario } from "../support/approvals.ts";
import { sendAsPage, sendPlain, signIn, type ConsolePage, type ConsoleRequest } from "../support/console.ts";
import { openStream } from "../support/events.ts";
import { exchange, key } from "../support/gate.ts";

type Headers = NonNullable<ConsoleRequest["headers"]>;

/** A gate with sessions that together may do everything, and a call that waits. */
interface Target {
  readonly desk: Desk;
  readonly approval: string;
  readonly hash: string;
  /** The session that a route's scope needs. */
  readonly pageFor: (scope: string | undefined) => ConsolePage;
  /** Fails if a request has changed something since. */
  readonly assertUnchanged: () => Promise<void>;
}

async function aim(desk: Desk): Promise<Target> {
  const { approval } = await desk.asks(large);
  const { json } = await desk.as("anna", `/approvals/${approval.id}`);
  const operator = JSON.parse(readFileSync(join(desk.folder, "data", "operator.json"), "utf8")).key as string;
  const monitor = (await desk.operates("/admin/keys", { name: "monitor", scopes: ["metrics"] })).json.key as string;
  const anna = await signIn(desk, desk.keys["anna"] ?? "");
  const pages: Readonly<Record<string, ConsolePage>> = {
    admin: await signIn(desk, operator),
    metrics: await signIn(desk, monitor),
    approve: anna,
    receipts: anna,
  };
  const agent = await signIn(desk, key);
  const rows = await desk.rows();
  return {
    desk,
    approval: approval.id,
    hash: json.hash,
    pageFor: (scope = "receipts") => pages[scope] ?? agent,
    assertUnchanged: async () => {
      assert.equal(await desk.rows(), rows);
      assert.equal((await desk.as("anna", `/approvals/${approval.id}`)).json.status, "pending");
      assert.equal((await anna("/session")).status, 200);
    },
  };
}

interface Shot {
  readonly method: "GET" | "POST";
  /** Below the console. */
  readonly path: string;
  readonly scope: string | undefined;
}

/** Every route of the gate below the console, and the console's own. */
function shotsAt({ approval }: Target): readonly Shot[] {
  const values: Readonly<Record<string, string>> = { ":id": approval, ":name": "anna-laptop", ":seq": "1" };
  const own: readonly Shot[] = [
    { method: "GET", path: "/session", scope: undefined },
    { method: "POST", path: "/session", scope: undefined },
    { method: "POST", path: "/session/end", scope: undefined },
  ];
  const paged = routes.filter(({ dialect }) => dialect === undefined);
  const api = paged.map(({ method, path, scope }): Shot => {
    const filled = path.replaceAll(/:\w+/g, (name) => values[name] ?? name).replace("*", "0/000.p/1");
    return { method, path: `/api${filled}`, scope };
  });
  return [...own, ...api];
}

function bodyOf({ desk, hash }: Target, path: string): object {
  if (path === "/session") return { key: desk.keys["bob"] };
  if (path.endsWith("/approve")) return { hash };
  if (path.endsWith("/deny")) return { hash, comment: "no" };
  return {};
}

/** Sends a forged request to each route, and asserts that each is refused. */
async function forge(
  desk: Desk,
  method: Shot["method"],
  forgeries: readonly Headers[],
  code = "wrong-origin",
): Promise<void> {
  const target = await aim(desk);
  const shots = shotsAt(target).filter((shot) => shot.method === method);
  for (const headers of forgeries) {
    for (const { path, scope } of shots) {
      const body = method === "POST" ? { body: bodyOf(target, path) } : {};
      const answer = await target.pageFor(scope)(path, { headers, ...body });
      assert.equal(answer.json?.code, code, `${method} ${path} ${JSON.stringify(headers)}: ${answer.text}`);
      assert.equal(answer.headers["set-cookie"], undefined);
      assert.equal(answer.headers["access-control-allow-origin"], undefined);
    }
  }
  await target.assertUnchanged();
}

const evil = "https://evil.example";
const refusalFor = "ConsoleDoor.refusalFor";

runScenarios("forged requests from another origin: no change of state, for each route", [
  {
    rule: "CSRF: a POST with another Origin is refused",
    run: (desk) =>
      forge(desk, "POST", [
        { origin: evil, "sec-fetch-site": "cross-site" },
        { origin: evil },
        { origin: "null" },
        { origin: "http://127.0.0.1:1" },
        { origin: `${desk.address}.evil.example` },
        { origin: undefined },
        { origin: [desk.address, evil] },
      ]),
    defect: { within: refusalFor, find: "headers.origin === origin", put: "true" },
  },
  {
    rule: "CSRF: a POST whose Sec-Fetch-Site is not same-origin is refused",
    run: (desk) =>
      forge(
        desk,
        "POST",
        ["cross-site", "same-site", "none", undefined].map((site) => ({ "sec-fetch-site": site })),
      ),
    defect: { within: refusalFor, find: 'site !== "same-origin"', put: "false" },
  },
  {
    rule: "CSRF: a POST without the header X-Svc-Console is refused",
    run: (desk) => forge(desk, "POST", [{ "x-svc-console": undefined }, { "x-svc-console": "0" }]),
    defect: { within: refusalFor, find: 'headers["x-svc-console"] !== "1"', put: "false" },
  },
  {
    rule: "CSRF: a POST with the content type of a form is refused",
    run: (desk) =>
      forge(
        desk,
        "POST",
        ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", undefined].map(
          (type) => ({ "content-type": type }),
        ),
        "unsupported-media-type",
      ),
    defect: { within: "isJson", first: "return true;" },
  },
  {
    rule: "CSRF: a GET of another site, or without the header X-Svc-Console, reads nothing",
    run: (desk) =>
      forge(desk, "GET", [
        ...["cross-site", "same-site", "none"].map((site) => ({ "sec-fetch-site": site })),
        { "x-svc-console": undefined },
      ]),
    defect: { within: refusalFor, find: 'site === undefined || site === "same-origin"', put: "true" },
  },
  {
    rule: "a preflight of another origin allows nothing",
    run: async (desk) => {
      const target = await aim(desk);
      const { host } = new URL(desk.address);
      const headers = { host, origin: evil, "access-control-request-method": "POST" };
      for (const { path } of shotsAt(target)) {
        const answer = await sendPlain(desk, `/console${path}`, { method: "OPTIONS", headers });
        assert.equal(answer.status, 401, path);
        assert.equal(answer.headers["access-control-allow-origin"], undefined, path);
      }
      await target.assertUnchanged();
    },
    defect: {
      within: "sendRefusal",
      first: 'if (exchange.request.method === "OPTIONS") exchange.headers["access-control-allow-origin"] = "*";',
    },
  },
] satisfies readonly Scenario[]);

const ourHosts = ({ address }: Desk): readonly string[] => {
  const { port } = new URL(address);
  return ["127.0.0.1", "localhost", "LOCALHOST", "LocalHost", "127.0.0.2", "[::1]"].map((name) => `${name}:${port}`);
};

const strangeHosts = ({ address }: Desk): readonly string[] => {
  const { port } = new URL(address);
  const withPort = ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "localhost.", "127.1", "0"];
  const strange = [
    "0.0.0.0",
    "10.0.0.1",
    "[::]",
    "x@localhost",
    "[::ffff:127.0.0.1]",
    "[::ffff:10.0.0.1]",
    "2130706433",
  ];
  return [
    ...[...withPort, ...strange].map((name) => `${name}:${port}`),
    "evil.example",
    "localhost",
    "127.0.0.1",
    "[::1]",
    "localhost:1",
    "localhost:0",
    `localhost:0${port}`,
    `localhost:${port}/`,
    `localhost:${port}?`,
    `localhost:${port},evil.example`,
    `evil.example,localhost:${port}`,
  ];
};

runScenarios("pages of other hosts", [
  {
    rule: "DNS rebinding: a host that is not a name of the gate gets no page, no session and no data",
    run: async (desk) => {
      const target = await aim(desk);
      for (const host of strangeHosts(desk)) {
        const headers = { host, origin: `http://${host}` };
        for (const path of ["", "/", "/approvals/x", "/assets/0/console/main.js"]) {
          const page = await sendPlain(desk, `/console${path}`, { headers: { host } });
          assert.equal(page.json?.code, "wrong-host", `${host} ${path}: ${page.text}`);
        }
        assert.equal((await sendPlain(desk, "/", { headers: { host, accept: "text/html" } })).status, 401, host);
        for (const { method, path, scope } of shotsAt(target)) {
          const body = method === "POST" ? { body: bodyOf(target, path) } : {};
          const { json, text } = await target.pageFor(scope)(path, { headers, ...body });
          assert.equal(json?.code, "wrong-host", `${host} ${method} ${path}: ${text}`);
        }
      }
      const forwarded = {
        host: "evil.example",
        "x-forwarded-host": new URL(desk.address).host,
        forwarded: "host=localhost",
      };
      assert.equal((await target.pageFor("approve")("/session", { headers: forwarded })).json.code, "wrong-host");
      await target.assertUnchanged();
    },
    defect: { within: "OwnNames.originOf", find: "isLoopbackUrl(named) && port === socket.localPort", put: "true" },
  },
  {
    rule: "the gate is open under each of its own names, and the origin must be the same name",
    run: async (desk) => {
      const anna = await signIn(desk, desk.keys["anna"] ?? "");
      for (const host of ourHosts(desk)) {
        assert.equal((await sendPlain(desk, "/console", { headers: { host } })).status, 200, host);
        const { status, headers: sent } = await sendPlain(desk, "/", { headers: { host, accept: "text/html,*/*" } });
        assert.deepEqual([status, sent["location"]], [302, "/console"]);
        assert.equal((await sendPlain(desk, "/", { headers: { host, accept: "*/*" } })).status, 401, host);
        assert.equal((await anna("/session", { headers: { host } })).status, 200, host);
        const body = { key: desk.keys["bob"] };
        const origin = `http://${host.toLowerCase()}`;
        assert.equal((await sendAsPage(desk, "/session", { headers: { host, origin }, body })).status, 200, host);
        const other = { host, origin: "http://evil.example" };
        assert.equal((await sendAsPage(desk, "/session", { headers: other, body })).json.code, "wrong-origin", host);
      }
    },
    defect: { within: "OwnNames.originOf", find: "headers.host?.toLowerCase()", put: "headers.host" },
  },
  {
    rule: "two Host headers, a whole URL as target, and HTTP/1.0 without Host open nothing",
    run: async (desk) => {
      const { cookie, secret } = await signIn(desk, desk.keys["anna"] ?? "");
      const { host, origin, port } = new URL(desk.address);
      const session = [`Cookie: ${cookie}`, `X-Svc-Session: ${secret}`, "X-Svc-Console: 1", "Connection: close"];
      const sends = async (line: string, ...hosts: readonly string[]): Promise<string> => {
        const head = [line, ...hosts.map((name) => `Host: ${name}`), ...session];
        return (await exchange(Number(port), `${head.join("\r\n")}\r\n\r\n`)).slice("HTTP/1.1 ".length, 12);
      };
      assert.equal(await sends("GET /console/session HTTP/1.1", host), "200");
      assert.equal(await sends("GET /console/session HTTP/1.0", host), "200");
      assert.equal(await sends("GET /console/session HTTP/1.1", host, "evil.example"), "400");
      assert.equal(await sends("GET /console/session HTTP/1.1", "evil.example", host), "421");
      assert.equal(await sends("GET /console/session HTTP/1.1", ""), "421");
      assert.equal(await sends("GET /console/session HTTP/1.0"), "421");
      assert.equal(await sends(`GET http://evil.example/console/session HTTP/1.1`, host), "421");
      assert.equal(await sends(`GET ${origin}/console/session HTTP/1.1`, host), "421");
    },
    defect: { within: "OwnNames.originOf", find: 'url?.startsWith("/") !== true', put: "false" },
  },
  {
    rule: "clickjacking: no page may show the console in a frame, and the page runs only its own scripts",
    run: async (desk) => {
      const { host } = new URL(desk.address);
      for (const path of ["", "/", "/approvals/apr_1", "/keys"]) {
        const { status, headers, text } = await sendPlain(desk, `/console${path}`, { headers: { host } });
        assert.equal(status, 200);
        const policy = String(headers["content-security-policy"]).split("; ");
        for (const rule of ["frame-ancestors 'none'", "default-src 'none'", "script-src 'self'", "base-uri 'none'"])
          assert.ok(policy.includes(rule), `${path}: ${rule}`);
        assert.equal(headers["x-frame-options"], "DENY");
        assert.equal(headers["cross-origin-opener-policy"], "same-origin");
        assert.equal(headers["cross-origin-resource-policy"], "same-origin");
        assert.equal(headers["x-content-type-options"], "nosniff");
        assert.equal(headers["referrer-policy"], "no-referrer");
        assert.equal(headers["cache-control"], "no-store");
        assert.doesNotMatch(text, /<script>|<style>| on\w+=| style=/);
      }
    },
    defect: { within: "pageHeaders", text: "frame-ancestors 'none'; ", put: "" },
  },
  {
    rule: "no browser stores or sniffs an answer with data, and no other origin may embed it",
    run: async (desk) => {
      const target = await aim(desk);
      for (const { method, path, scope } of shotsAt(target)) {
        if (path === "/api/events" || method === "POST") continue;
        const { headers } = await target.pageFor(scope)(path);
        assert.equal(headers["cache-control"], "no-store", path);
        assert.equal(headers["x-content-type-options"], "nosniff", path);
        assert.equal(headers["cross-origin-resource-policy"], "same-origin", path);
      }
    },
    defect: { within: "keepNothing", find: 'reply.header("cache-control", "no-store");', put: ";" },
  },
] satisfies readonly Scenario[]);

runScenarios("requests that only read", [
  {
    rule: "GET of every route changes no row",
    run: async (desk) => {
      const target = await aim(desk);
      const shots = shotsAt(target);
      const { cookie, secret } = target.pageFor("approve");
      const own = { cookie, "x-svc-session": secret, "x-svc-console": "1" };
      (await openStream(desk, "", { path: "/console/api/events?after=0", own })).close();
      for (const { path, scope } of shots.filter((shot) => shot.path !== "/api/events")) {
        const { status, text } = await target.pageFor(scope)(path);
        const isRead = shots.some((shot) => shot.method === "GET" && shot.path === path);
        const expected = path.startsWith("/api/tile") ? [200, 404] : [isRead ? 200 : 404];
        assert.ok(expected.includes(status), `${path}: ${status} ${text}`);
      }
      await target.assertUnchanged();
    },
    defect: {
      within: "showSession",
      first: "void service.keys.append(() => good(endOfSessions(openedBy(request).key, null)));",
    },
  },
  {
    rule: "no other method changes a row",
    run: async (desk) => {
      const target = await aim(desk);
      for (const method of ["HEAD", "PUT", "PATCH", "DELETE", "TRACE"]) {
        for (const { path, scope } of shotsAt(target)) {
          const { status } = await target.pageFor(scope)(path, { method, headers: { origin: desk.address } });
          assert.ok(status === 401 || status === 404, `${method} ${path}: ${status}`);
        }
      }
      await target.assertUnchanged();
    },
    defect: {
      within: "addConsole",
      find: "server.route({ method, url, config: { console: access }, bodyLimit: limits.signInBodyBytesMax, handler });",
      put: 'server.route({ method: url.endsWith("/end") ? [method, "PUT"] : method, url, config: { console: access }, handler });',
    },
  },
  {
    rule: "a path that is written in another way opens no route",
    run: async (desk) => {
      const { pageFor } = await aim(desk);
      const anna = pageFor("approve");
      assert.equal((await anna("/api/receipts")).status, 200);
      for (const path of [
        "/api/../receipts",
        "/api/./receipts",
        "/api//receipts",
        "//api/receipts",
        "/api/receipts/",
        "/API/receipts",
        "/api",
        "/api/",
        "/api/nothing",
        "/api/%72eceipts",
        "/%61pi/receipts",
        "/..%2freceipts",
        "/api/receipts;x",
        "/session/",
        "/session/end",
        "/assets/../../../../etc/passwd",
        "/assets/x/..%2f..%2fpackage.json",
      ]) {
        const { json, text } = await anna(path);
        assert.equal(json?.receipts, undefined, path);
        assert.ok(json === undefined ? text.startsWith("<!doctype html>") : json.status >= 400, `${path}: ${text}`);
        assert.equal(/^\/(?:api|session)(?:\/|$)/.test(path) && json === undefined, false, `${path} shows the page`);
      }
    },
    defect: { within: "sendPage", find: "if (/^(?:api|session)(?:\\/|$)/.test(path)) $then", put: ";" },
  },
] satisfies readonly Scenario[]);
