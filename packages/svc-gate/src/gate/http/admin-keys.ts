import type { FastifyReply } from "fastify";
import type { Refusal, Result } from "../../wire/mod.ts";
import { sendJson } from "./body.ts";
import { createKey, listKeys, revokeKey, rotateKey, type ActedKey, type DeskAsking } from "../admin/keys/keys.ts";
import { refuseWith } from "./refusing.ts";
import type { Asked } from "./route.ts";

/** GET /admin/keys */
export async function list(asked: Asked): Promise<FastifyReply> {
  const keys = await listKeys(asked.service.keys, askingOf(asked));
  return sendJson(asked.reply, JSON.stringify({ keys }));
}

/** POST /admin/keys: the answer is the only place where the key ever stands. */
export async function create(asked: Asked): Promise<FastifyReply> {
  const { request, reply, service } = asked;
  return answer(reply, await createKey(service.keys, askingOf(asked), request.body), 201);
}

/** POST /admin/keys/{name}/rotate */
export async function rotate(asked: Asked): Promise<FastifyReply> {
  const { request, reply, service } = asked;
  return answer(reply, await rotateKey(service.keys, askingOf(asked), nameOf(asked), request.body), 200);
}

/** POST /admin/keys/{name}/revoke */
export async function revoke(asked: Asked): Promise<FastifyReply> {
  const { request, reply, service } = asked;
  return answer(reply, await revokeKey(service.keys, askingOf(asked), nameOf(asked), request.body), 200);
}

function answer(reply: FastifyReply, acted: Result<ActedKey, Refusal>, status: number): FastifyReply {
  if (!acted.ok) return refuseWith(reply, acted.problem);
  return sendJson(reply.code(status), JSON.stringify(acted.value));
}

function askingOf({ key, tenant }: Asked): DeskAsking {
  if (key === undefined) throw new Error("a route of scope admin was opened without a key");
  return { by: key, tenant };
}

function nameOf({ request }: Asked): string {
  return (request.params as { readonly name: string }).name;
}
