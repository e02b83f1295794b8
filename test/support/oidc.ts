/**
 * A provider of OpenID Connect on this machine (`oidc-provider`), and a browser that signs in with it. A person signs in
 * there by their subject alone.
 */
import assert from "node:assert/strict";
import { generateKeyPairSync, sign, type KeyObject } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { Provider, type Configuration } from "oidc-provider";
import { sendAsPage, type ConsoleAnswer, type ConsoleOptions, type Reached } from "./console.ts";

type Claims = Readonly<Record<string, unknown>>;

export interface TestProvider {
  readonly issuer: string;
  /** The groups of each subject. */
  readonly groups: Map<string, readonly string[]>;
  /** Changes the claims of the next ID tokens, which are then signed again. */
  forge: ((claims: Claims) => Claims) | undefined;
  /** Signs the forged ID tokens with another key. */
  signer: KeyObject;
  /** Answers a request instead of the provider, if it returns true. */
  intercept: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined;
  /** Registers the gate. Call it once, before the first sign-in. */
  readonly register: (gate: Reached, options?: RegisterOptions) => void;
}

export interface RegisterOptions {
  readonly tenants?: readonly string[];
  /** True accepts flows without PKCE, and the same code again and again. */
  readonly isLax?: boolean;
  /** True registers the gate without a secret. */
  readonly isPublic?: boolean;
  /** True states the groups only at the address of user information. */
  readonly isBare?: boolean;
}

export const clientId = "the-gate";
const clientSecret = "a secret that only this test knows";
const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
export const otherKey: KeyObject = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
const keyName = "of-this-test";

/** Starts a provider, whose settings are open until a gate is registered. */
export async function startProvider(t: TestContext): Promise<TestProvider> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const provider: TestProvider = {
    issuer: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    groups: new Map(),
    forge: undefined,
    signer: privateKey,
    intercept: undefined,
    register: (gate, options) => {
      const handle = handlerOf(provider, gate, options);
      server.on("request", (request: IncomingMessage, response: ServerResponse) => {
        if (provider.intercept?.(request, response) !== true) handle(request, response);
      });
    },
  };
  return provider;
}

function handlerOf(
  of: TestProvider,
  { address }: Reached,
  { tenants = [], isLax = false, isBare = false, isPublic = false }: RegisterOptions = {},
): (request: IncomingMessage, response: ServerResponse) => void {
  const prefixes = ["", ...tenants.map((tenant) => `/t/${tenant}`)];
  const provider = new Provider(of.issuer, {
    ...settings,
    clients: [
      {
        client_id: clientId,
        ...(isPublic ? { token_endpoint_auth_method: "none" } : { client_secret: clientSecret }),
        redirect_uris: prefixes.map((prefix) => `${address}${prefix}/console/oidc/callback`),
      },
    ],
    conformIdTokenClaims: isBare,
    pkce: { required: () => !isLax },
    findAccount: (_context, accountId) => ({
      accountId,
      claims: () => Promise.resolve({ sub: accountId, groups: [...(of.groups.get(accountId) ?? [])] }),
    }),
    // The person has agreed to everything.
    loadExistingGrant: async ({ oidc }) => {
      const grant = new provider.Grant({ clientId, accountId: oidc.session?.accountId ?? "" });
      grant.addOIDCScope("openid groups");
      await grant.save();
      return grant;
    },
  });
  if (isLax) provider.AuthorizationCode.prototype.consume = () => Promise.resolve();
  provider.use(async (context, next) => {
    await next();
    if (context.path === "/token" && of.forge !== undefined) forgeIn(context.body as { id_token: string }, of);
  });
  const answer = provider.callback();
  return (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", of.issuer);
    const subject = searchParams.get("subject");
    const done =
      subject === null || !pathname.startsWith("/interaction/")
        ? answer(request, response)
        : provider.interactionFinished(request, response, { login: { accountId: subject } });
    done.catch(() => response.destroy());
  };
}

const settings: Configuration = {
  jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), kid: keyName, alg: "RS256", use: "sig" }] },
  cookies: { keys: ["a key of this test"] },
  claims: { openid: ["sub"], groups: ["groups"] },
  scopes: ["openid", "groups"],
  features: { devInteractions: { enabled: false } },
  interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
  ttl: { AccessToken: 60, AuthorizationCode: 60, Grant: 60, IdToken: 60, Interaction: 60, Session: 60 },
};

function forgeIn(body: { id_token: string }, { forge = (claims) => claims, signer }: TestProvider): void {
  const [, payload = ""] = body.id_token.split(".");
  const claims = forge(JSON.parse(Buffer.from(payload, "base64url").toString()) as Claims);
  const parts = [{ alg: "RS256", kid: keyName }, claims];
  const text = parts.map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
  body.id_token = `${text}.${sign("sha256", Buffer.from(text), signer).toString("base64url")}`;
}

/** Writes the file of SVC_OIDC. Each person is mapped to their key. */
export function oidcFile(folder: string, { issuer }: Pick<TestProvider, "issuer">, changes: object = {}): string {
  const file = join(folder, "oidc.json");
  const given = {
    issuer,
    client_id: clientId,
    client_secret: clientSecret,
    scopes: ["openid", "groups"],
    name: "the test",
    persons: [
      { subject: "subject of anna", key: "anna-laptop" },
      { subject: "subject of bob", key: "bob-laptop" },
    ],
    ...changes,
  };
  writeFileSync(file, JSON.stringify(given), { mode: 0o600 });
  return file;
}

/** What a page knows when the browser comes back from the provider. */
export interface Returned {
  readonly flow: string;
  /** The query of the page's address. */
  readonly answer: string;
  /** What the browser got with an earlier session. */
  readonly known?: string;
}

/** Starts a sign-in at the gate, and signs a subject in at the provider. */
export async function visitProvider(gate: Reached, subject: string, options: ConsoleOptions = {}): Promise<Returned> {
  const started = await sendAsPage(gate, "/oidc", { body: {} }, options);
  assert.equal(started.status, 200, started.text);
  const { location, flow } = started.json as { location: string; flow: string };
  return { flow, answer: (await browse(location, subject, gate)).search };
}

/** Follows redirects as a browser does, until one leads to the gate. */
async function browse(location: string, subject: string, gate: Reached): Promise<URL> {
  const cookies = new Map<string, string>();
  let next = new URL(location);
  for (let hops = 0; hops < 10; hops += 1) {
    const cookie = [...cookies].map((pair) => pair.join("=")).join("; ");
    const response = await fetch(next, { redirect: "manual", headers: { cookie } });
    for (const line of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      cookies.set(name, value);
    }
    const to = response.headers.get("location");
    if (to === null) assert.fail(`${next.href} answers ${response.status}: ${await response.text()}`);
    next = new URL(to, next);
    if (next.origin === new URL(gate.address).origin) return next;
    if (next.pathname.startsWith("/interaction/")) next.searchParams.set("subject", subject);
  }
  return assert.fail("the provider redirects forever");
}

/** Gives the gate what the page knows. */
export function returnToGate(gate: Reached, oidc: Returned, options: ConsoleOptions = {}): Promise<ConsoleAnswer> {
  return sendAsPage(gate, "/session", { body: { oidc } }, options);
}

/** Signs a subject in, and returns the gate's answer. */
export async function signInWith(gate: Reached, subject: string, options: ConsoleOptions = {}): Promise<ConsoleAnswer> {
  return returnToGate(gate, await visitProvider(gate, subject, options), options);
}
