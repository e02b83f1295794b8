import type { IncomingMessage, ServerResponse } from "node:http";
import { bad, good, limits, type Refusal, type Result } from "../../../../core/src/wire/mod.ts";
import type { ValidKey } from "../keys/keys.ts";
import type { Service } from "../service/service.ts";
import type { Gate } from "../service/gate.ts";
import { answerCheck } from "./check.ts";
import { keep } from "./connection.ts";
import type { Connections } from "./connections.ts";
import { startExchange, type Exchange } from "./exchange.ts";
import { refusalForBody, refusalForHead } from "./head.ts";
import { noKey, refusalForLoad, refusalForRate } from "./key-refusals.ts";
import { sendRefusal, sendText, toRefusal, type RefusalOutlet } from "./refusing.ts";

export interface PlainCheckOptions {
  readonly service: Service;
  readonly basePath: string;
  readonly outlet: RefusalOutlet;
  readonly connections: Connections;
}

/**
 * Handles plain checks without Fastify's lifecycle, which costs more CPU than the decision. A check is plain if nothing
 * about its head is unusual and its key opens the path.
 *
 * Every other request is left unread for Fastify, so one part makes all refusals for a request's head. Refusals after
 * that point come from functions that both ways share.
 */
export class PlainChecks {
  readonly #options: PlainCheckOptions;

  constructor(options: PlainCheckOptions) {
    this.#options = options;
  }

  /** @returns false if the check is not plain; then Fastify must handle it */
  handle(request: IncomingMessage, response: ServerResponse): boolean {
    const { service, connections, outlet } = this.#options;
    const tenant = tenantOf(request, this.#options);
    if (tenant === undefined || !isPlain(request)) return false;
    const key = service.keys.known.find(request.headers.authorization);
    if (key === undefined || key.tenant !== tenant || !key.scopes.has("check")) return false;
    connections.shows(request.socket, key);
    const exchange = startExchange(request, response);
    exchange.key = key;
    exchange.tenant = tenant ?? undefined;
    const refusal = refusalForRate(exchange, service) ?? refusalForLoad(exchange, service);
    if (refusal === undefined) readBody(request, (body) => answer({ service, tenant, exchange, body, outlet }));
    else sendRefusal(exchange, refusal, outlet);
    return true;
  }
}

/** Returns the tenant in the path of a check, null for the root, and undefined for any other path. */
function tenantOf(
  { method, url = "" }: IncomingMessage,
  { service, basePath }: PlainCheckOptions,
): string | null | undefined {
  const end = url.length - checkPath.length;
  if (method !== "POST" || !url.startsWith(basePath) || !url.endsWith(checkPath)) return undefined;
  if (end === basePath.length) return null;
  const isTenant = service.tenants !== undefined && url.startsWith(tenantPath, basePath.length);
  return isTenant ? url.slice(basePath.length + tenantPath.length, end) : undefined;
}

const checkPath = "/check";
const tenantPath = "/t/";

function isPlain(request: IncomingMessage): boolean {
  const { headers, httpVersion } = request;
  const length = headers["content-length"] ?? "";
  return (
    httpVersion === "1.1" &&
    /^[1-9][0-9]{0,5}$/.test(length) &&
    Number(length) <= limits.bodyBytesMax &&
    headers["transfer-encoding"] === undefined &&
    headers.expect === undefined &&
    headers.upgrade === undefined &&
    refusalForHead(request) === undefined &&
    refusalForBody(request) === undefined
  );
}

/** Calls a function with the whole body. If the connection breaks before, the function is never called. */
function readBody(request: IncomingMessage, then: (body: Buffer) => void): void {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => then(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
}

interface ArrivedCheck {
  readonly service: Service;
  readonly tenant: string | null;
  readonly exchange: Exchange;
  readonly body: Buffer;
  readonly outlet: RefusalOutlet;
}

function answer(check: ArrivedCheck): void {
  const { service, exchange, outlet } = check;
  if (!keep(exchange)) return;
  decideCheck(check).then(
    (answered) => {
      if (answered.ok)
        sendText(exchange, { status: 200, text: answered.value, type: "application/json; charset=utf-8" });
      else sendRefusal(exchange, answered.problem, outlet);
    },
    (error: unknown) => sendRefusal(exchange, toRefusal(error, exchange, service.log), outlet),
  );
}

async function decideCheck(check: ArrivedCheck): Promise<Result<string, Refusal>> {
  const gate = await gateFor(check);
  return gate.ok ? answerCheck({ ...check, gate: gate.value }) : gate;
}

/** Returns the gate of the path. A key that was revoked while the body arrived opens nothing more. */
async function gateFor({ service, tenant, exchange }: ArrivedCheck): Promise<Result<Gate, Refusal>> {
  const { keys, root, tenants } = service;
  const { request, response } = exchange;
  if (!keys.known.isUnchanged(exchange.key as ValidKey)) {
    exchange.key = keys.known.find(request.headers.authorization);
    if (exchange.key === undefined) return bad(noKey);
  }
  if (tenant === null || tenants === undefined) return good(root);
  return tenants.gateFor(tenant, response);
}
