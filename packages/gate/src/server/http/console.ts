import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from "fastify";
import {
  good,
  limits,
  refuse,
  type Json,
  type JsonObject,
  type OpenedJson,
  type Refusal,
  type Result,
  type SessionJson,
  type SignedInJson,
  type SignInMethods,
} from "../../../../core/src/wire/mod.ts";
import type { Service } from "../service/service.ts";
import { endOfSessions, type ValidKey } from "../keys/keys.ts";
import { tenantId } from "../settings/tenants-file.ts";
import {
  consoleAssets,
  pageHeaders,
  pageText,
  sessionIdleMs,
  sessionMs,
  type Session,
} from "../../../../console/src/server/mod.ts";
import type { ConsoleDoor, SignedIn } from "./door.ts";
import { invalid, readBody, readFlag, requireValue, sendJson } from "../request/body.ts";
import { noSuchTenant } from "../service/tenants.ts";
import { untilGone } from "./connection.ts";
import { exchangeOf, type Exchange } from "./exchange.ts";
import { refuseWith, sendResult } from "./refusing.ts";

export interface ConsoleRoutes {
  readonly door: ConsoleDoor;
  readonly service: Service;
  readonly basePath: string;
}

/** How a route of the console is opened: without a session, by the page that signs in, or by a session. */
export type ConsoleAccess = "page" | "sign-in" | "session";

/**
 * Adds the page, its files and its sessions. `server.ts` adds the routes of the API below `console/api`, with the
 * session as credential.
 */
export function addConsole(server: FastifyInstance, parts: ConsoleRoutes): void {
  const { basePath, service } = parts;
  const add = (method: "GET" | "POST", url: string, access: ConsoleAccess, handle: Handle): void => {
    const handler: RouteOptions["handler"] = (request, reply) => handle({ ...parts, request, reply });
    server.route({ method, url, config: { console: access }, bodyLimit: limits.signInBodyBytesMax, handler });
  };
  add("GET", `${filesOf(basePath)}/:digest/*`, "page", sendAsset);
  const prefixes = service.tenants === undefined ? [""] : ["", "/t/:tenant"];
  for (const prefix of prefixes) {
    const at = `${basePath}${prefix}/console`;
    add("GET", at, "page", sendPage);
    add("GET", `${at}/*`, "page", sendPage);
    add("POST", `${at}/session`, "sign-in", signIn);
    add("GET", `${at}/methods`, "sign-in", showMethods);
    add("POST", `${at}/oidc`, "sign-in", startOidc);
    add("GET", `${at}/session`, "session", showSession);
    add("POST", `${at}/session/end`, "session", endSession);
  }
}

interface ConsoleCall extends ConsoleRoutes {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

type Handle = (call: ConsoleCall) => Promise<FastifyReply>;

function filesOf(basePath: string): string {
  return `${basePath}/console/assets`;
}

/** Whether a person opens the gate's own address in a browser. Only the console can answer that: a program gets 401. */
export function isVisit({ is404, method, url, headers }: FastifyRequest, basePath: string): boolean {
  const isHome = is404 && method === "GET" && [basePath, `${basePath}/`].includes(url);
  return isHome && headers.authorization === undefined && /\btext\/html\b/.test(headers.accept ?? "");
}

async function sendPage({ basePath, request, reply }: ConsoleCall): Promise<FastifyReply> {
  const { tenant, "*": path = "" } = request.params as { readonly tenant?: string; readonly "*"?: string };
  // The page has the tenant's id in its text, whether or not the tenant exists.
  if (tenant !== undefined && !tenantId.test(tenant)) return refuseWith(reply, noTenant);
  if (/^(?:api|session)(?:\/|$)/.test(path)) return refuseWith(reply, noRoute);
  const assets = await consoleAssets();
  const base = `${basePath}${tenant === undefined ? "" : `/t/${tenant}`}/console`;
  return reply.headers(pageHeaders).send(pageText(base, `${filesOf(basePath)}/${assets.digest}`, assets));
}

const noTenant = refuse("not-found", "a tenant's id has small letters, digits and hyphens");

const noRoute = refuse("not-found", "the console has no data at this path, or not for this method");

/** The files of an older digest are gone after an upgrade: the page is then loaded again. */
async function sendAsset({ request, reply }: ConsoleCall): Promise<FastifyReply> {
  const { digest, "*": path } = request.params as { readonly digest: string; readonly "*": string };
  const assets = await consoleAssets();
  const asset = digest === assets.digest ? assets.files.get(path) : undefined;
  if (asset === undefined)
    return refuseWith(reply, refuse("not-found", "the console has no such file: load the page again"));
  const takesGzip = /\bgzip\b/.test(request.headers["accept-encoding"] ?? "");
  reply.headers({
    "content-type": asset.type,
    "cache-control": "public, max-age=31536000, immutable",
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
    vary: "accept-encoding",
    ...(takesGzip && { "content-encoding": "gzip" }),
  });
  return reply.send(takesGzip ? asset.gzip : asset.plain);
}

/** Handles POST /console/session. The key is only in this body, and nowhere in the answer. */
async function signIn({ door, request, reply }: ConsoleCall): Promise<FastifyReply> {
  const members = requireValue(readBody(request.body, ["key", "code", "oidc"], (each) => each));
  const signed = requireValue(await signInWith(members, request, untilGone(reply.raw).signal, door));
  const { cookie, key: opened, known, pageSecret, session } = signed;
  reply.header("set-cookie", cookie);
  const answer: OpenedJson = { session: pageSecret, known, ...signedInJson(opened, session) };
  return sendJson(reply, JSON.stringify(answer));
}

async function signInWith(
  members: JsonObject,
  request: FastifyRequest,
  signal: AbortSignal,
  door: ConsoleDoor,
): Promise<Result<SignedIn, Refusal>> {
  const tenant = tenantIn(request);
  const oidc = members.get("oidc");
  if (oidc !== undefined) {
    const [flow, answer, known] = ["flow", "answer", "known"].map((name) =>
      oidc instanceof Map ? (oidc.get(name) as Json | undefined) : undefined,
    );
    const isText = typeof flow === "string" && typeof answer === "string";
    if (members.size === 1 && isText && (known === undefined || typeof known === "string"))
      return door.finishOidc(request.raw, { tenant, flow, answer, known, signal });
    const wanted = 'the strings "flow" and "answer", and "known" if the browser has it';
    return invalid(`"oidc" must be alone, with ${wanted}`);
  }
  const [key, code = ""] = ["key", "code"].map((name) => members.get(name));
  if (typeof key === "string" && typeof code === "string") return door.signIn(request.raw, { tenant, key, code });
  return invalid('"key" must be a string, and "code" too if it is given');
}

/** Handles GET /console/methods: how a person can sign in, besides with a key. */
async function showMethods({ door, reply }: ConsoleCall): Promise<FastifyReply> {
  const name = await door.provider();
  const methods: SignInMethods = { oidc: name === undefined ? null : { name } };
  return sendJson(reply, JSON.stringify(methods));
}

/** Handles POST /console/oidc: the page then goes to the address in the answer, and keeps the flow. */
async function startOidc({ door, request, reply }: ConsoleCall): Promise<FastifyReply> {
  requireValue(readBody(request.body, [], () => undefined));
  return sendResult(reply, await door.startOidc(request.raw, tenantIn(request)));
}

/** Handles GET /console/session: who has signed in, as the keys say it now, and which ledger the pages show. */
async function showSession({ request, reply, service }: ConsoleCall): Promise<FastifyReply> {
  const { key, session } = openedBy(request);
  const tenant = tenantIn(request);
  const gate = tenant === null ? good(service.root) : await service.tenants?.gateFor(tenant, reply.raw);
  if (gate?.ok !== true) return refuseWith(reply, gate?.problem ?? noSuchTenant);
  const { name: ledger, verifiers } = gate.value.ledger;
  const vkeys = verifiers.map(({ text }) => text);
  const { mode } = gate.value.policy;
  const { hasApprover: approvers } = service.keys.known;
  const answer: SessionJson = { ...signedInJson(key, session), approvers, mode, ledger, vkeys };
  return sendJson(reply, JSON.stringify(answer));
}

/** Handles POST /console/session/end: ends this session, or with `all` each session of the key, on every replica. */
async function endSession({ door, request, reply, service }: ConsoleCall): Promise<FastifyReply> {
  const all = requireValue(readBody(request.body, ["all"], (members) => readFlag("all", members)));
  const { key, session } = openedBy(request);
  const receipt = requireValue(await service.keys.append(() => good(endOfSessions(key, all ? null : session))));
  reply.removeHeader("set-cookie").header("set-cookie", door.noCookie(request.raw, tenantIn(request)));
  return sendJson(reply, JSON.stringify({ receipt }));
}

function signedInJson({ name, person, groups, scopes, tenant }: ValidKey, { issued }: Session): SignedInJson {
  return {
    key: name,
    person: person ?? null,
    groups,
    scopes: [...scopes],
    tenant,
    ends: issued + sessionMs,
    idle_ms: sessionIdleMs,
  };
}

function openedBy(request: FastifyRequest): { readonly key: ValidKey; readonly session: Session } {
  const { key, session } = request.exchange as Exchange;
  if (key === undefined || session === undefined)
    throw new Error("a route of the console was opened without a session");
  return { key, session };
}

function tenantIn({ params }: FastifyRequest): string | null {
  return (params as { readonly tenant?: string }).tenant ?? null;
}

/** Finds the session of a request, and notes its key and its cookie on the exchange. */
export async function admitSession(
  door: ConsoleDoor,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Refusal | undefined> {
  const exchange = exchangeOf(request, reply);
  const admitted = await door.admit(request.raw, tenantIn(request));
  if (!admitted.ok) return admitted.problem;
  const { cookie, credential, session } = admitted.value;
  exchange.session = session;
  exchange.credential = credential;
  exchange.key = credential();
  if (cookie !== undefined) exchange.headers["set-cookie"] = cookie;
  return undefined;
}
