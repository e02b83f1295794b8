import type { FastifyReply } from "fastify";
import {
  bad,
  Decimal,
  good,
  readPath,
  refuse,
  type Json,
  type JsonObject,
  type Refusal,
  type Result,
} from "../../wire/mod.ts";
import type { Key } from "../keys/keys.ts";
import { grantJson, type GrantDecided, type GrantSource, type ShownGrant } from "../approvals/grant-desk.ts";
import type { AskedGrant } from "../approvals/grants.ts";
import { readMembers, sendJson } from "../request/body.ts";
import { badQuery, queryOf } from "./query.ts";
import { inPlace } from "./reading.ts";
import { refuseWith } from "./refusing.ts";
import type { ReadCall, RouteCall } from "./route.ts";

const grantMembers = ["until", "uses", "any_session", "pins", "free", "amounts"];
const pinsMax = 32;

/** Handles GET /grants: the grants in force, and those that need more persons. */
export async function listGrants({ gate, key, read, reply, request }: ReadCall): Promise<FastifyReply> {
  const problem = badQuery(queryOf(request), []);
  if (problem !== undefined) return refuseWith(reply, refuse("invalid-query", problem));
  const now = Date.now();
  const all = key?.scopes.has("receipts") === true;
  const mayRead = ({ grant }: ShownGrant): boolean =>
    all || gate.approvals.mayDecide(key?.name ?? "", { asking: grant }, now);
  const grants: string[] = [];
  for await (const shown of gate.grants.list(now)) {
    if (mayRead(shown)) grants.push(JSON.stringify(grantJson(shown)));
    await read.next();
  }
  return sendJson(reply, `{"grants":[${grants.join(",")}]}`);
}

/** Handles POST /grants. With `preview` it only says what the grant would have let through. */
export async function createGrant(call: RouteCall): Promise<unknown> {
  const { gate, key, reply, request } = call;
  const body = readMembers(request.body, ["approval", "hash", "preview", ...grantMembers]);
  if (!body.ok) return refuseWith(reply, body.problem);
  const source = sourceOf(body.value);
  if (!source.ok) return refuseWith(reply, source.problem);
  const asked = askedGrant(body.value);
  if (!asked.ok) return refuseWith(reply, asked.problem);
  const preview = body.value.get("preview") ?? false;
  if (typeof preview !== "boolean") return refuseWith(reply, invalid('"preview" must be true or false'));
  const { name } = key as Key;
  const desk = gate.grants;
  if (preview)
    return inPlace(call, "short", async (read) => {
      const previewed = await desk.preview(name, source.value, asked.value, read);
      if (!previewed.ok) return refuseWith(reply, previewed.problem);
      const { covered, of } = previewed.value;
      return sendJson(reply, JSON.stringify({ covers: covered.length, of, receipts: covered }));
    });
  const made = await desk.create(name, source.value, asked.value);
  if (!made.ok) return refuseWith(reply, made.problem);
  return sendJson(reply.code(201), JSON.stringify(await boundJson(gate, made.value)));
}

/** Handles POST /grants/{id}/approve. */
export async function approveGrant({ gate, key, reply, request }: RouteCall): Promise<FastifyReply> {
  const body = readMembers(request.body, ["hash"]);
  if (!body.ok) return refuseWith(reply, body.problem);
  const hash = body.value.get("hash");
  if (!isHash(hash)) return refuseWith(reply, invalid(`"hash" must be ${hashText}`));
  const { id } = request.params as { readonly id: string };
  const decided = await gate.grants.approve((key as Key).name, id, hash);
  if (!decided.ok) return refuseWith(reply, decided.problem);
  return sendJson(reply, JSON.stringify(await boundJson(gate, decided.value)));
}

/** Handles POST /grants/{id}/revoke. */
export async function revokeGrant({ gate, key, reply, request }: RouteCall): Promise<FastifyReply> {
  const body = readMembers(request.body, []);
  if (!body.ok) return refuseWith(reply, body.problem);
  const { id } = request.params as { readonly id: string };
  const revoked = await gate.grants.revoke((key as Key).name, id);
  if (!revoked.ok) return refuseWith(reply, revoked.problem);
  return sendJson(reply, JSON.stringify({ ...decidedJson(revoked.value), status: "revoked" }));
}

/** With what the grant leaves free: each member that may differ. */
async function boundJson(
  { grants }: RouteCall["gate"],
  made: GrantDecided,
): Promise<Readonly<Record<string, unknown>>> {
  const shown = await grants.find(made.grant.row, Date.now());
  return { ...decidedJson(made), free: shown === undefined ? [] : grantJson(shown)["free"] };
}

function decidedJson({ grant, quorum, receipt }: GrantDecided): Readonly<Record<string, unknown>> {
  const { id, status, until, uses, needs, has } = grantJson({ grant, quorum, source: undefined });
  return { id, status, until, uses, needs, has, receipt: receipt ?? null };
}

function sourceOf(body: JsonObject): Result<GrantSource, Refusal> {
  const [id, hash] = [body.get("approval"), body.get("hash")];
  if (typeof id !== "string")
    return bad(invalid('"approval" must be the id of the approval that the grant is made from'));
  if (!isHash(hash)) return bad(invalid(`"hash" must be ${hashText}`));
  return good({ id, hash });
}

const hashText = "the hash of the row that was shown, 64 hex digits";

function isHash(value: Json | undefined): value is string {
  return typeof value === "string" && /^[0-9a-f]{64}$/.test(value);
}

/** Reads the member `grant` of an approval's body. */
export function readGrant(value: Json | undefined): Result<AskedGrant, Refusal> {
  if (!(value instanceof Map)) return bad(invalid('"grant" must be an object'));
  const members: JsonObject = value;
  const stranger = members.keys().find((name) => !grantMembers.includes(name));
  if (stranger !== undefined) return bad(invalid(`a grant has no member ${JSON.stringify(stranger)}`));
  return askedGrant(members);
}

function askedGrant(members: JsonObject): Result<AskedGrant, Refusal> {
  const [until, uses, anySession = false, pins = [], free = [], amounts = new Map<string, Json>()] = grantMembers.map(
    (name) => members.get(name),
  );
  if (until !== undefined && !isCount(until)) return bad(invalid('"until" must be milliseconds since the epoch'));
  if (uses !== undefined && !isCount(uses)) return bad(invalid('"uses" must be a whole number from 1'));
  if (typeof anySession !== "boolean") return bad(invalid('"any_session" must be true or false'));
  const pinned = pathsIn(pins);
  if (pinned === undefined)
    return bad(invalid(`"pins" must be a list of at most ${pinsMax} members of the input, such as "input.payee"`));
  const freed = pathsIn(free)?.filter((path) => path.startsWith("input."));
  if (freed === undefined || freed.length < (free as readonly Json[]).length)
    return bad(invalid(`"free" must be a list of at most ${pinsMax} members of the input that the call lacks`));
  if (!(amounts instanceof Map)) return bad(invalid('"amounts" must be an object with a number for each member'));
  const read = [...(amounts as JsonObject)].map(
    ([name, amount]) => [readPath(name) ?? name, amountText(amount)] as const,
  );
  if (read.some(([, amount]) => amount === undefined))
    return bad(invalid('each of the "amounts" must be a number that is not negative, with at most 15 digits'));
  return good({
    until,
    uses,
    anySession,
    pins: pinned,
    free: freed,
    amounts: Object.fromEntries(read) as Record<string, string>,
  });
}

function isCount(value: Json): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0;
}

/** Members of the input and facts, each as the gate spells it; undefined if one is neither, or if they are too many. */
function pathsIn(list: Json): readonly string[] | undefined {
  if (!Array.isArray(list) || list.length > pinsMax) return undefined;
  const paths = (list as readonly Json[]).flatMap((each) => (typeof each === "string" ? (readPath(each) ?? []) : []));
  return paths.length === list.length && paths.every((path) => /^(?:input|platform)\./.test(path)) ? paths : undefined;
}

/** A number as a decimal without an exponent; undefined if it is negative or too long. */
function amountText(value: Json): string | undefined {
  const text = value instanceof Decimal ? value.text : typeof value === "number" ? String(value) : "";
  return /^(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?$/.test(text) ? text : undefined;
}

function invalid(sentence: string): Refusal {
  return refuse("invalid-request", sentence);
}
