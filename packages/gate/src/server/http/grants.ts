import type { FastifyReply } from "fastify";
import { Decimal, readPath, type Json, type JsonObject } from "../../../../core/src/wire/mod.ts";
import type { ValidKey } from "../keys/keys.ts";
import { grantJson, type GrantActResult, type GrantSource, type ShownGrant } from "../approvals/grant-desk.ts";
import type { GrantRequest } from "../approvals/grants.ts";
import { readBody, readFlag, readHash, requireValue, requireMembers, sendJson, BodyError } from "../request/body.ts";
import { readQuery } from "./query.ts";
import { inPlace } from "./reading.ts";
import { sendResult } from "./refusing.ts";
import type { ReadCall, RouteCall } from "./route.ts";

const grantMembers = ["until", "uses", "any_session", "pins", "free", "width", "amounts"];
const pinsMax = 32;

/** Handles GET /grants: the grants in force, and those that need more people. */
export async function listGrants({ gate, key, read, reply, request }: ReadCall): Promise<FastifyReply> {
  readQuery(request);
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
  const known = ["approval", "hash", "preview", ...grantMembers];
  const body = readBody(request.body, known, (members) => ({
    from: sourceIn(members),
    wanted: grantIn(members),
    isPreview: readFlag("preview", members),
  }));
  const { wanted, from, isPreview } = requireValue(body);
  const { name } = key as ValidKey;
  const desk = gate.grants;
  if (isPreview)
    return inPlace(call, "short", async (read) =>
      sendResult(reply, await desk.preview(name, from, wanted, read), ({ covered, of }) => {
        return { covers: covered.length, of, receipts: covered };
      }),
    );
  const made = await boundJson(gate, requireValue(await desk.create(name, from, wanted)));
  return sendJson(reply.code(201), JSON.stringify(made));
}

/** Handles POST /grants/{id}/approve. */
export async function approveGrant({ gate, key, reply, request }: RouteCall): Promise<FastifyReply> {
  const hash = requireValue(readBody(request.body, ["hash"], (members) => readHash(members.get("hash"))));
  const { id } = request.params as { readonly id: string };
  const decided = requireValue(await gate.grants.approve((key as ValidKey).name, id, hash));
  return sendJson(reply, JSON.stringify(await boundJson(gate, decided)));
}

/** Handles POST /grants/{id}/revoke. */
export async function revokeGrant({ gate, key, reply, request }: RouteCall): Promise<FastifyReply> {
  requireValue(readBody(request.body, [], () => undefined));
  const { id } = request.params as { readonly id: string };
  const revoked = await gate.grants.revoke((key as ValidKey).name, id);
  return sendResult(reply, revoked, (made) => ({ ...decidedJson(made), status: "revoked" }));
}

/** With what the grant leaves free: each member that may differ. */
async function boundJson(
  { grants }: RouteCall["gate"],
  made: GrantActResult,
): Promise<Readonly<Record<string, unknown>>> {
  const shown = await grants.find(made.grant.row, Date.now());
  return { ...decidedJson(made), free: shown === undefined ? [] : grantJson(shown).free };
}

function decidedJson({ grant, quorum, receipt }: GrantActResult): Readonly<Record<string, unknown>> {
  const { id, status, until, uses, needs, has } = grantJson({ grant, quorum, source: undefined });
  return { id, status, until, uses, needs, has, receipt: receipt ?? null };
}

function sourceIn(members: JsonObject): GrantSource {
  const id = members.get("approval");
  if (typeof id !== "string")
    throw new BodyError('"approval" must be the id of the approval that the grant is made from');
  return { id, hash: readHash(members.get("hash")) };
}

/** Reads the member `grant` of an approval's body. */
export function readGrant(value: Json | undefined): GrantRequest {
  if (!(value instanceof Map)) throw new BodyError('"grant" must be an object');
  requireMembers("a grant", value, grantMembers);
  return grantIn(value);
}

function grantIn(members: JsonObject): GrantRequest {
  const [until, uses, pins = [], free = [], amounts = new Map<string, Json>()] = [
    "until",
    "uses",
    "pins",
    "free",
    "amounts",
  ].map((name) => members.get(name));
  if (until !== undefined && !isCount(until)) throw new BodyError('"until" must be milliseconds since the epoch');
  if (uses !== undefined && !isCount(uses)) throw new BodyError('"uses" must be a whole number from 1');
  const width = members.get("width");
  if (width !== undefined && typeof width !== "string")
    throw new BodyError('"width" must be the name of a width, such as "texts": how far the command line may differ');
  const anySession = readFlag("any_session", members);
  const pinned = pathsIn(pins);
  if (pinned === undefined)
    throw new BodyError(`"pins" must be a list of at most ${pinsMax} members of the input, such as "input.payee"`);
  const freed = pathsIn(free)?.filter((path) => path.startsWith("input."));
  if (freed === undefined || freed.length < (free as readonly Json[]).length)
    throw new BodyError(`"free" must be a list of at most ${pinsMax} members of the input that the call lacks`);
  if (!(amounts instanceof Map)) throw new BodyError('"amounts" must be an object with a number for each member');
  const read = [...(amounts as JsonObject)].map(
    ([name, amount]) => [readPath(name) ?? name, amountOf(amount)] as const,
  );
  return { until, uses, anySession, pins: pinned, free: freed, width, amounts: Object.fromEntries(read) };
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

/** A number as a decimal without an exponent. */
function amountOf(value: Json): string {
  const text = value instanceof Decimal ? value.text : typeof value === "number" ? String(value) : "";
  if (/^(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?$/.test(text)) return text;
  throw new BodyError('each of the "amounts" must be a number that is not negative, with at most 15 digits');
}
