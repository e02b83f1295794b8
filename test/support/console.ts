/**
 * A page of the console without a browser. `node:http` sends the header fields that `fetch` sets itself, so that a test
 * can also forge them.
 */
import assert from "node:assert/strict";
import { request, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http";

export interface ConsoleAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** Undefined if the text is not JSON. */
  readonly json: any;
}

export interface ConsoleRequest {
  /** By default GET without a body, and POST with one. */
  readonly method?: string;
  /** Header fields to add or to replace; undefined removes one. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** An object is sent as JSON. */
  readonly body?: object | string;
  /** The address of this machine that sends it, such as 127.0.0.2. */
  readonly from?: string;
}

/** A page that has signed in. Call it with a path below the console, such as `/api/approvals` or `/session`. */
export interface ConsolePage {
  (path: string, init?: ConsoleRequest): Promise<ConsoleAnswer>;
  /** The name and value of the cookie, as the browser sends them. */
  readonly cookie: string;
  /** The secret that the page's origin stores. */
  readonly secret: string;
  /** The answer to the sign-in. */
  readonly signedIn: ConsoleAnswer;
}

export interface ConsoleOptions {
  readonly tenant?: string;
  /** The code of the first sign-in. */
  readonly code?: string;
  /** The origin that the browser sees; by default the gate's address. */
  readonly origin?: string;
}

/** Anything with the address of a gate, base path included. */
export interface Reached {
  readonly address: string;
}

/** Signs a key in, and returns the page. Fails if the gate refuses. */
export async function signIn(gate: Reached, key: string, options: ConsoleOptions = {}): Promise<ConsolePage> {
  const answer = await trySignIn(gate, key, options);
  assert.equal(answer.status, 200, answer.text);
  const cookie = cookieIn(answer) ?? assert.fail("the sign-in set no cookie");
  return pageOf(gate, { cookie, secret: answer.json.session, signedIn: answer }, options);
}

/** Signs a key in, and returns the answer. */
export function trySignIn(gate: Reached, key: string, options: ConsoleOptions = {}): Promise<ConsoleAnswer> {
  const { code } = options;
  return sendAsPage(gate, "/session", { body: { key, ...(code !== undefined && { code }) } }, options);
}

/** A page with a cookie and a secret, wherever they come from. */
export function pageOf(
  gate: Reached,
  session: Pick<ConsolePage, "cookie" | "secret" | "signedIn">,
  options: ConsoleOptions = {},
): ConsolePage {
  const send = (path: string, { headers, ...init }: ConsoleRequest = {}): Promise<ConsoleAnswer> => {
    const own = { cookie: session.cookie, "x-svc-session": session.secret };
    return sendAsPage(gate, path, { ...init, headers: { ...own, ...headers } }, options);
  };
  return Object.assign(send, session);
}

/** Sends a request with the header fields that a browser and the console's page add, without a session. */
export function sendAsPage(
  gate: Reached,
  path: string,
  { headers, ...init }: ConsoleRequest = {},
  { tenant, origin = new URL(gate.address).origin }: ConsoleOptions = {},
): Promise<ConsoleAnswer> {
  const isPost = (init.method ?? (init.body === undefined ? "GET" : "POST")) !== "GET";
  const browser = {
    host: new URL(origin).host,
    "sec-fetch-site": "same-origin",
    "sec-fetch-mode": "cors",
    ...(isPost && { origin }),
  };
  const page = { "x-svc-console": "1", ...(isPost && { "content-type": "application/json" }) };
  const below = tenant === undefined ? "" : `/t/${tenant}`;
  return sendPlain(gate, `${below}/console${path}`, { ...init, headers: { ...browser, ...page, ...headers } });
}

/** Sends a request with only the given header fields. The path is below the gate's address. */
export function sendPlain(
  { address }: Reached,
  path: string,
  { method, headers = {}, body, from }: ConsoleRequest = {},
): Promise<ConsoleAnswer> {
  const { hostname, port, pathname } = new URL(address);
  const text = typeof body === "object" ? JSON.stringify(body) : body;
  const given = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
  const options = {
    host: hostname.replace(/^\[(.*)\]$/, "$1"),
    port,
    ...(from !== undefined && { localAddress: from }),
    path: pathname.replace(/\/$/, "") + path, // a URL would resolve `..`
    method: method ?? (text === undefined ? "GET" : "POST"),
    headers: {
      ...given,
      ...(text !== undefined && { "content-length": Buffer.byteLength(text) }),
    } as OutgoingHttpHeaders,
    agent: false,
  } as const;
  return new Promise((resolve, reject) => {
    const sent = request(options, (response) => {
      let received = "";
      response.setEncoding("utf8");
      response.on("data", (piece: string) => (received += piece));
      response.on("error", reject);
      response.on("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text: received,
          json: parsed(received),
        }),
      );
    });
    sent.on("error", reject);
    sent.end(text);
  });
}

/** The name and value of the last cookie that an answer sets; undefined if it sets none. */
export function cookieIn({ headers }: Pick<ConsoleAnswer, "headers">): string | undefined {
  return headers["set-cookie"]?.at(-1)?.split(";")[0];
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
