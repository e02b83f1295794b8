import { once } from "node:events";
import { request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { connect, type TLSSocket } from "node:tls";
import { hasKeyForm, looksLikeKey, readOperatorFile } from "../server/mod.ts";
import { whyNot } from "../server/errors.ts";
import { visible } from "../../../core/src/wire/mod.ts";
import { io } from "./io.ts";
import { locateOffline } from "./offline-ledger.ts";
import { BadInput, readText } from "./outcome.ts";

/**
 * The gate of an operator's command: the one that serves a local data folder, or one at a URL, with a key of scope
 * admin.
 */
export interface GateLocation {
  readonly dataDir: string;
  readonly url?: string | undefined;
  readonly keyFile?: string | undefined;
}

/** The options that every operator's command has. */
export interface OperatorOptions extends GateLocation {
  readonly tenant?: string | undefined;
  readonly json: boolean;
}

/** The response of a gate. */
export interface GateAnswer {
  readonly status: number;
  /** A JSON object, for a refusal too. */
  readonly body: Readonly<Record<string, unknown>>;
  /** The text of the body, in which numbers have their characters. */
  readonly text?: string;
}

/** A gate that is serving, or that this process has opened, and a key to it. */
export interface GateDoor {
  ask(method: "GET" | "POST", path: string, body?: object): Promise<GateAnswer>;
}

/**
 * Finds the gate of a command.
 *
 * @returns undefined if no gate serves the data folder. A killed gate leaves a file there; it may lead to no program,
 *   or to another program
 * @param limitMinutes how long to wait for each answer
 * @throws {BadInput} if a URL is given without a key, or if the program at the data folder's address accepts the
 *   question but does not answer: it may be a gate that hangs
 */
export async function findGate(
  { dataDir, url, keyFile }: GateLocation,
  limitMinutes: number = answerMinutes,
): Promise<GateDoor | undefined> {
  if (url !== undefined) {
    const missing = "a gate needs a key of scope admin: name its file with --key-file";
    const key = await keyIn(keyFile, "SVC_ADMIN_KEY", missing);
    return doorAt({ url, key, certificate: null }, limitMinutes);
  }
  const operator = await servingIn(dataDir, limitMinutes);
  return operator && doorAt(operator, limitMinutes);
}

/** Where the gate that serves a data folder listens, and the operator's key to it; undefined if no gate answers there. */
async function servingIn(dataDir: string, limitMinutes: number): Promise<GateAccess | undefined> {
  const operator = await readOperatorFile(dataDir);
  if (operator === undefined) return undefined;
  try {
    const { status } = await doorAt(operator, limitMinutes).ask("GET", "/admin/keys");
    return status === 200 ? operator : undefined;
  } catch (error) {
    if (error instanceof BadInput && !(error instanceof Silent)) return undefined;
    throw error;
  }
}

/** Where a command works: through the gate that is named, or in a ledger that no gate serves. */
export interface WorkTarget extends GateLocation {
  readonly tenant?: string | undefined;
  /** The root's head pin, for a ledger that no gate serves. */
  readonly pin?: string | undefined;
  /** In a database without a gate, the root's ledger may be created. */
  readonly mayCreate?: boolean;
  /** The file of endpoints, for a command about them in a ledger that no gate serves. */
  readonly notify?: string | undefined;
}

/** Asks the gate that serves the ledger. If no gate serves it, opens the ledger and answers as a gate would. */
export async function withGate<Value>(target: WorkTarget, work: (gate: GateDoor) => Promise<Value>): Promise<Value> {
  const gate = await findGate(target);
  return gate === undefined ? inLedger(target, undefined, work) : work(gate);
}

/** Asks one question of that gate. @throws {BadInput} if the gate refuses the request */
export function askGate(
  target: WorkTarget,
  method: "GET" | "POST",
  path: string,
  body?: object,
): Promise<GateAnswer["body"]> {
  return withGate(target, async (gate) => requireAccepted(await gate.ask(method, path, body)));
}

/**
 * Does the same for a person with a key of their own. The operator's key decides nothing.
 *
 * @param askForKey asks the person for the key, if neither the option nor the environment names one
 * @throws {BadInput} if neither the option nor the environment names a key
 */
export async function withGateFor<Value>(
  { dataDir, url, keyFile, tenant }: Omit<WorkTarget, "mayCreate" | "pin">,
  work: (gate: GateDoor) => Promise<Value>,
  askForKey?: () => Promise<string>,
): Promise<Value> {
  const missing = "a person decides with a key of their own: name its file with --key-file";
  const key = await keyIn(keyFile, "SVC_APPROVER_KEY", askForKey ?? missing);
  if (url !== undefined) return work(doorAt({ url, key, certificate: null }, answerMinutes));
  const serving = await servingIn(dataDir, answerMinutes);
  if (serving === undefined) return inLedger({ dataDir, tenant }, key, work);
  return work(doorAt({ ...serving, key }, answerMinutes));
}

async function inLedger<Value>(
  { dataDir, tenant, pin, mayCreate = false, notify }: WorkTarget,
  key: string | undefined,
  work: (gate: GateDoor) => Promise<Value>,
): Promise<Value> {
  const { openUnserved } = await import("../server/start/mod.ts");
  return openUnserved({ ...locateOffline(dataDir, tenant ?? null, pin), mayCreate, notify }, (ask) =>
    work({
      async ask(method, path, body) {
        const { status, text } = await ask({ method, path, key, body: body && JSON.stringify(body) });
        return { status, body: readObject(text), text };
      },
    }),
  );
}

/** The start of a tenant's paths; empty for the root. */
export function tenantPath(tenant: string | undefined): string {
  return tenant === undefined ? "" : `/t/${encodeURIComponent(tenant)}`;
}

export function adminPath(tenant: string | undefined, route: string): string {
  return `${tenantPath(tenant)}/admin/${route}`;
}

/** Returns the body of a gate's answer. @throws {BadInput} if the gate refused the request */
export function requireAccepted({ status, body }: GateAnswer): GateAnswer["body"] {
  if (status !== 200 && status !== 201) throw new BadInput(refusalOf({ status, body }));
  return body;
}

/** The gate's refusal, as a sentence. */
export function refusalOf({ status, body }: GateAnswer): string {
  const { detail } = body;
  return typeof detail === "string" ? detail : `the gate answered ${status} without a detail`;
}

interface GateAccess {
  readonly url: string;
  readonly key: string;
  /** The SHA-256 of the only trusted certificate; null trusts the system's authorities. */
  readonly certificate: string | null;
}

/** A reload waits for tests of contracts, an erasure for the file to be rewritten. */
const answerMinutes = 2;

/** The gate seems to have accepted the request, but does not answer. */
class Silent extends BadInput {}

function doorAt({ url, key, certificate }: GateAccess, limitMinutes: number): GateDoor {
  const base = readUrl(url);
  return {
    async ask(method, path, body) {
      const at = new URL(base.href.replace(/\/$/, "") + path);
      const text = body === undefined ? undefined : JSON.stringify(body);
      const signal = AbortSignal.timeout(limitMinutes * 60_000);
      try {
        const answer = await exchange(at, certificate, text, {
          method,
          signal,
          headers: {
            authorization: `Bearer ${key}`,
            connection: "close",
            ...(text !== undefined && { "content-type": "application/json" }),
          },
        });
        const received = Buffer.concat(await answer.toArray()).toString("utf8");
        return { status: answer.statusCode ?? 0, body: readObject(received), text: received };
      } catch (error) {
        if (signal.aborted) throw new Silent(silentText(base.origin, limitMinutes, method));
        throw new BadInput(`${base.origin} does not answer (${visible(whyNot(error))}): is a gate listening there?`);
      }
    },
  };
}

function silentText(origin: string, limitMinutes: number, method: "GET" | "POST"): string {
  const act = method === "POST" ? "it may still execute the request; " : "";
  return `${origin} does not answer within ${limitMinutes} minutes: ${act}check the gate, and try again`;
}

function readUrl(url: string): URL {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new BadInput(`${visible(url)} is not a gate's address, such as http://127.0.0.1:8787`);
  return new URL(url);
}

async function exchange(
  at: URL,
  certificate: string | null,
  body: string | undefined,
  options: RequestOptions & { readonly signal: AbortSignal },
): Promise<IncomingMessage> {
  const socket = certificate === null ? undefined : await pinnedSocket(at, certificate, options.signal);
  const send = at.protocol === "https:" && socket === undefined ? httpsRequest : httpRequest;
  const target = socket === undefined ? at : new URL(at.href.replace(/^https:/, "http:"));
  const outgoing = send(target, { ...options, ...(socket === undefined ? {} : { createConnection: () => socket }) });
  outgoing.end(body);
  const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
  return answer;
}

/** Compares the certificate before anything is sent, instead of checking its issuer and its host name. */
async function pinnedSocket({ hostname, port }: URL, certificate: string, signal: AbortSignal): Promise<TLSSocket> {
  const host = hostname.replace(/^\[|\]$/g, "");
  const socket = connect({ host, port: Number(port || 443), rejectUnauthorized: false });
  try {
    await once(socket, "secureConnect", { signal });
  } catch (error) {
    socket.destroy();
    throw error;
  }
  if (socket.getPeerCertificate().fingerprint256 === certificate) return socket;
  socket.destroy();
  throw new Error("another certificate");
}

function readObject(text: string): GateAnswer["body"] {
  try {
    const found: unknown = JSON.parse(text);
    return typeof found === "object" && found !== null ? (found as GateAnswer["body"]) : {};
  } catch {
    return {};
  }
}

async function keyIn(
  file: string | undefined,
  variable: string,
  missing: string | (() => Promise<string>),
): Promise<string> {
  const given = io().env[variable];
  if (file !== undefined) return requireKey((await readText(file)).trim(), file);
  if (given !== undefined) return requireKey(given, variable);
  if (typeof missing === "string") throw new BadInput(missing);
  return requireKey(await missing(), "your answer");
}

function requireKey(key: string, place: string): string {
  if (!/^[\x21-\x7e]+$/.test(key))
    throw new BadInput(`${place} does not contain an API key: visible ASCII characters on one line`);
  if (hasKeyForm(key) && !looksLikeKey(key)) throw new BadInput("the key is mistyped: its checksum is wrong");
  return key;
}
