import type { FastifyReply } from "fastify";
import { sendJson } from "./body.ts";
import { changeKey, listKeys, type KeyAdmin, type KeyRequest } from "../admin/keys/keys.ts";
import { refuseWith } from "./refusing.ts";
import type { Asked } from "./route.ts";

/** GET /admin/keys */
export async function list(asked: Asked): Promise<FastifyReply> {
  const keys = await listKeys(asked.service.keys, adminOf(asked));
  return sendJson(asked.reply, JSON.stringify({ keys }));
}

/** POST /admin/keys: the answer is the only place where the key ever stands. */
export function create(asked: Asked): Promise<FastifyReply> {
  return change(asked, { act: "create", body: asked.request.body });
}

/** POST /admin/keys/{name}/rotate */
export function rotate(asked: Asked): Promise<FastifyReply> {
  return change(asked, { act: "rotate", name: nameOf(asked), body: asked.request.body });
}

/** POST /admin/keys/{name}/revoke */
export function revoke(asked: Asked): Promise<FastifyReply> {
  return change(asked, { act: "revoke", name: nameOf(asked), body: asked.request.body });
}

async function change(asked: Asked, request: KeyRequest): Promise<FastifyReply> {
  const { reply, service } = asked;
  const changed = await changeKey(service.keys, adminOf(asked), request);
  if (!changed.ok) return refuseWith(reply, changed.problem);
  return sendJson(reply.code(request.act === "create" ? 201 : 200), JSON.stringify(changed.value));
}

function adminOf({ key, tenant }: Asked): KeyAdmin {
  if (key === undefined) throw new Error("a route of scope admin was opened without a key");
  return { by: key, tenant };
}

function nameOf({ request }: Asked): string {
  return (request.params as { readonly name: string }).name;
}
