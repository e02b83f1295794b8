import type { FastifyReply } from "fastify";
import { sendJson } from "../request/body.ts";
import { addPerson, changeKey, listKeys, listPeople, type KeyAdmin } from "../keys/keys.ts";
import { sendResult } from "./refusing.ts";
import type { CallWithoutGate, ReadWithoutGate } from "./route.ts";

/** Handles GET /admin/keys. */
export async function list(call: ReadWithoutGate): Promise<FastifyReply> {
  const texts: string[] = [];
  for (const key of await listKeys(call.service.keys, adminOf(call))) {
    texts.push(JSON.stringify(key));
    await call.read.next();
  }
  return sendJson(call.reply, `{"keys":[${texts.join(",")}]}`);
}

/** Handles POST /admin/keys. The key is only in this answer and nowhere else. */
export async function create(call: CallWithoutGate): Promise<FastifyReply> {
  const { reply, request, service } = call;
  const created = await changeKey(service.keys, adminOf(call), { act: "create", body: request.body });
  return sendResult(reply.code(201), created);
}

/** Returns the handler of POST /admin/keys/{name}/{act}. A new key is only in its answer. */
export function change(act: "revoke" | "rotate" | "update"): (call: CallWithoutGate) => Promise<FastifyReply> {
  return async (call) => {
    const { reply, request, service } = call;
    const { name } = request.params as { readonly name: string };
    return sendResult(reply, await changeKey(service.keys, adminOf(call), { act, name, body: request.body }));
  };
}

/** Handles GET /admin/persons. */
export async function showPeople(call: CallWithoutGate): Promise<FastifyReply> {
  const people = await listPeople(call.service.keys, adminOf(call));
  return sendJson(call.reply, JSON.stringify({ persons: people }));
}

/** Handles POST /admin/persons. */
export async function createPerson(call: CallWithoutGate): Promise<FastifyReply> {
  const { reply, request, service } = call;
  return sendResult(reply.code(201), await addPerson(service.keys, adminOf(call), request.body));
}

function adminOf({ key, tenant }: CallWithoutGate): KeyAdmin {
  if (key === undefined) throw new Error("a route of scope admin was opened without a key");
  return { by: key, tenant };
}
