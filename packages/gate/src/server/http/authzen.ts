/**
 * The AuthZEN Authorization API 1.0 (OpenID Foundation) as a dialect of POST /check. An evaluation is a check: it has a
 * receipt, and counters count it. docs/guides/authzen.md has the mapping and its limits.
 */
import type { FastifyReply } from "fastify";
import {
  bad,
  good,
  jsonText,
  limits,
  quote,
  readJson,
  refusals,
  refuse,
  typeName,
  type Json,
  type JsonObject,
  type Refusal,
  type Result,
} from "../../../../core/src/wire/mod.ts";
import { OwnNames } from "../../../../console/src/server/mod.ts";
import { invalid, requireValue, sendJson, readBodyText } from "../request/body.ts";
import { answerCheck, arrivalOf } from "./check.ts";
import type { Exchange } from "./exchange.ts";
import { noKey, refusalForRate } from "./key-refusals.ts";
import { inDialect, noteRefusal, refuseWith } from "./refusing.ts";
import type { RouteCall } from "./route.ts";

/** Handles POST /access/v1/evaluation. */
export async function evaluation(call: RouteCall): Promise<FastifyReply> {
  return sendOne(call, requireValue(readBody(call.request.body)));
}

/** Handles POST /access/v1/evaluations. A request without evaluations is one evaluation. */
export async function evaluations(call: RouteCall): Promise<FastifyReply> {
  const { reply, request } = call;
  const members = requireValue(readBody(request.body));
  const items = members.get("evaluations");
  if (items === undefined || (Array.isArray(items) && items.length === 0)) return sendOne(call, members);
  const batch = requireValue(batchOf(members, items));
  const decided = await decideAll({ ...call, digest: arrivalOf(request.body as Buffer).digest }, batch);
  reply.headers((request.exchange as Exchange).headers); // Each evaluation was charged to the key's rate.
  return sendJson(reply, `{"evaluations":[${decided.map(({ text }) => text).join(",")}]}`);
}

/**
 * Handles GET /.well-known/authzen-configuration, below a tenant's path and where the standard looks for a tenant's
 * document. It names only what the gate has.
 */
export async function configuration(call: RouteCall): Promise<FastifyReply> {
  const { reply } = call;
  const point = decisionPoint(call);
  if (point === undefined) return refuseWith(reply, wrongHost);
  const document = {
    policy_decision_point: point,
    access_evaluation_endpoint: `${point}/access/v1/evaluation`,
    access_evaluations_endpoint: `${point}/access/v1/evaluations`,
  };
  return sendJson(reply, JSON.stringify(document));
}

/** The gate's address for callers. A Host header is believed only if it is a name of this machine. */
function decisionPoint({ request, service }: RouteCall): string | undefined {
  const { tenant } = request.params as { readonly tenant?: string };
  const { publicUrl } = service;
  if (publicUrl !== undefined) return tenant === undefined ? publicUrl : `${publicUrl}/t/${tenant}`;
  const [path = ""] = request.url.split("?");
  const origin = new OwnNames(undefined).originOf(request.raw);
  return origin === undefined ? undefined : origin + path.replace("/.well-known/authzen-configuration", "");
}

const wrongHost = refuse(
  "wrong-host",
  "the Host header is not a name of this gate: set SVC_PUBLIC_URL to the address under which callers reach it",
);

/** A call, and the SHA-256 of its whole body, which each of its receipts has. */
interface EvaluationCall extends RouteCall {
  readonly digest: string;
}

interface EvaluationResponse {
  readonly decision: boolean;
  /** The decision in JSON. */
  readonly text: string;
}

async function sendOne(call: RouteCall, members: JsonObject): Promise<FastifyReply> {
  const { reply, request } = call;
  const check = requireValue(toCheck(members));
  const { digest } = arrivalOf(request.body as Buffer);
  const decided = await decide({ ...call, digest }, request.exchange as Exchange, check);
  return sendJson(reply, requireValue(decided).text);
}

/** Has a check decided. Its answer is the context of the decision, and only ALLOW permits. */
async function decide(
  call: EvaluationCall,
  exchange: Exchange,
  check: string,
): Promise<Result<EvaluationResponse, Refusal>> {
  const { service, gate, tenant, digest } = call;
  const body = Buffer.from(check);
  const answered = await answerCheck({
    service,
    gate,
    tenant,
    exchange,
    body,
    received: { bytes: body.length, digest },
  });
  if (!answered.ok) return answered;
  const { verdict } = JSON.parse(answered.value) as { readonly verdict: string };
  const decision = verdict === "ALLOW";
  return good({ decision, text: `{"decision":${decision},"context":${answered.value}}` });
}

const semantics = ["execute_all", "deny_on_first_deny", "permit_on_first_permit"] as const;

interface Batch {
  /** The checks in order. One that cannot be judged does not stop the others. */
  readonly checks: readonly Result<string, Refusal>[];
  readonly semantic: (typeof semantics)[number];
}

/** Decides all checks in one batch of the ledger, or one after another up to the first that ends the request. */
async function decideAll(call: EvaluationCall, { checks, semantic }: Batch): Promise<readonly EvaluationResponse[]> {
  if (semantic === "execute_all") return Promise.all(checks.map((check, index) => decideItem(call, check, index)));
  const last = semantic === "permit_on_first_permit";
  const decided: EvaluationResponse[] = [];
  for (const [index, check] of checks.entries()) {
    decided.push(await decideItem(call, check, index));
    if (decided.at(-1)?.decision === last) break;
  }
  return decided;
}

/** Decides one of several. A refusal denies, because the others may have been decided and recorded already. */
async function decideItem(
  call: EvaluationCall,
  check: Result<string, Refusal>,
  index: number,
): Promise<EvaluationResponse> {
  const { reply, request, service } = call;
  const shared = request.exchange as Exchange;
  // The key may have been revoked meanwhile. Each evaluation has a trace of its own.
  const exchange: Exchange = { ...shared, key: shared.credential(), trace: undefined };
  // The request itself was charged to the key's rate, so the first evaluation was too.
  const refused = exchange.key === undefined ? noKey : index > 0 && refusalForRate(exchange, service);
  const readable = refused ? bad(refused) : check;
  const decided = readable.ok ? await decide(call, exchange, readable.value) : readable;
  if (decided.ok) return decided.value;
  const refusal = inDialect(decided.problem, "authzen");
  noteRefusal(exchange, refusal, reply.server.refusalOutlet);
  const { code, detail: message } = refusal;
  const error = { status: refusals[code].status, code, message };
  return { decision: false, text: JSON.stringify({ decision: false, context: { error } }) };
}

/** Reads the evaluations of a request. Its own subject, action, resource, context and session apply to each of them. */
function batchOf(members: JsonObject, items: Json): Result<Batch, Refusal> {
  if (!Array.isArray(items) || items.length > limits.evaluationsMax)
    return invalid(`"evaluations" must be a list of at most ${limits.evaluationsMax} evaluations`);
  const semantic = semanticOf(members.get("options"));
  if (semantic === undefined)
    return invalid(`"options" must be an object, and its "evaluations_semantic" one of ${semantics.join(", ")}`);
  const defaults = [...members].filter(([name]) => inherited.includes(name));
  const wrong = entityProblem(new Map(defaults), true);
  if (wrong !== undefined) return invalid(wrong);
  let rest = limits.bodyBytesMax;
  const checks: Result<string, Refusal>[] = [];
  for (const item of items as readonly Json[]) {
    const check =
      item instanceof Map
        ? toCheck(new Map<string, Json>([...defaults, ...(item as JsonObject)]))
        : invalid(`an evaluation must be an object, not ${typeName(item)}`);
    if (check.ok) rest -= Buffer.byteLength(check.value);
    // Otherwise one request could make the gate read and record its defaults many times.
    if (rest < 0)
      return bad(refuse("body-too-large", `the evaluations with their defaults exceed ${limits.bodyBytesMax} bytes`));
    checks.push(check);
  }
  return good({ checks, semantic });
}

function semanticOf(options: Json | undefined): Batch["semantic"] | undefined {
  if (options === undefined) return "execute_all";
  const named = options instanceof Map ? (options as JsonObject).get("evaluations_semantic") : null;
  return named === undefined ? "execute_all" : semantics.find((each) => each === named);
}

const inherited: readonly string[] = ["subject", "action", "resource", "context", "session_id"];

/**
 * Translates an evaluation to the body of a POST /check. Members that the standard and the gate do not know are ignored,
 * as the standard demands. Numbers keep their digits.
 */
function toCheck(members: JsonObject): Result<string, Refusal> {
  const problem = entityProblem(members, false) ?? sharedMember(members);
  if (problem !== undefined) return invalid(problem);
  const entity = (name: string, ...of: readonly string[]): JsonObject =>
    pickMembers(members.get(name) as JsonObject, of);
  const optional = pickMembers(members, ["session_id", "approval"]);
  const context = members.get("context");
  const check = new Map<string, Json>([
    ["tool_name", (members.get("action") as JsonObject).get("name") ?? null],
    [
      "tool_input",
      new Map([
        ["subject", entity("subject", "type", "id", "properties")],
        ["action", entity("action", "properties")],
        ["resource", entity("resource", "type", "id", "properties")],
      ]),
    ],
    ...(context === undefined ? [] : ([["platform_state", context]] as const)),
    ...optional,
  ]);
  return good(jsonText(check));
}

/** The entities of an evaluation, and the members that each must have. */
const entities = { subject: ["type", "id"], action: ["name"], resource: ["type", "id"] } as const;

/** Returns the first entity that is not as the standard says. */
function entityProblem(members: JsonObject, mayLack: boolean): string | undefined {
  for (const [name, wanted] of Object.entries(entities)) {
    const entity = members.get(name);
    if (entity === undefined && mayLack) continue;
    if (entity === undefined) return `"${name}" is missing; it must be an object`;
    if (!(entity instanceof Map)) return `"${name}" must be an object, not ${typeName(entity)}`;
    for (const member of wanted) {
      const value = (entity as JsonObject).get(member);
      if (value === undefined) return `"${member}" of "${name}" is missing; it must be a string`;
      if (typeof value !== "string") return `"${member}" of "${name}" must be a string, not ${typeName(value)}`;
    }
    const properties = (entity as JsonObject).get("properties");
    if (properties !== undefined && !(properties instanceof Map))
      return `"properties" of "${name}" must be an object, not ${typeName(properties)}`;
  }
  const context = members.get("context");
  return context === undefined || context instanceof Map
    ? undefined
    : `"context" must be an object, not ${typeName(context)}`;
}

/**
 * Facts come from the context alone. If a member of it is also a property, two readers could take different values for
 * the fact.
 */
function sharedMember(members: JsonObject): string | undefined {
  const context = (members.get("context") ?? new Map()) as JsonObject;
  for (const name of Object.keys(entities)) {
    const properties = ((members.get(name) as JsonObject).get("properties") ?? new Map()) as JsonObject;
    const shared = properties.keys().find((member) => context.has(member));
    if (shared !== undefined)
      return `${quote(shared)} is in "context" and in "properties" of "${name}": send it once, a fact in "context"`;
  }
  return undefined;
}

function pickMembers(object: JsonObject, names: readonly string[]): JsonObject {
  return new Map([...object].filter(([name]) => names.includes(name)));
}

function readBody(body: unknown): Result<JsonObject, Refusal> {
  const text = readBodyText(body);
  if (typeof text !== "string") return bad(text);
  const read = readJson(text);
  if (read.ok) return good(read.value.members);
  const { line, column, sentence } = read.problem;
  return bad(refuse("invalid-json", `line ${line}, column ${column}: ${sentence}`));
}
