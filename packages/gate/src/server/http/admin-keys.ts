import type { FastifyReply } from "fastify";
import { sendJson } from "../request/body.ts";
import { addPerson, changeKey, listKeys, listPersons, type KeyAdmin, type KeyRequest } from "../keys/keys.ts";
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
export function create(call: CallWithoutGate): Promise<FastifyReply> {
  return change(call, { act: "create", body: call.request.body });
}

/** Handles POST /admin/keys/{name}/rotate. */
export function rotate(call: CallWithoutGate): Promise<FastifyReply> {
  return change(call, { act: "rotate", name: nameOf(call), body: call.request.body });
}

/** Handles POST /admin/keys/{name}/revoke. */
export function revoke(call: CallWithoutGate): Promise<FastifyReply> {
  return change(call, { act: "revoke", name: nameOf(call), body: call.request.body });
}

/** Handles POST /admin/keys/{name}/update. */
export function update(call: CallWithoutGate): Promise<FastifyReply> {
  return change(call, { act: "update", name: nameOf(call), body: call.request.body });
}

/** Handles GET /admin/persons. */
export async function showPersons(call: CallWithoutGate): Promise<FastifyReply> {
  const persons = await listPersons(call.service.keys, adminOf(call));
  return sendJson(call.reply, JSON.stringify({ persons }));
}

/** Handles POST /admin/persons. */
export async function createPerson(call: CallWithoutGate): Promise<FastifyReply> {
  const { reply, request, service } = call;
  return sendResult(reply.code(201), await addPerson(service.keys, adminOf(call), request.body));
}

async function change(call: CallWithoutGate, request: KeyRequest): Promise<FastifyReply> {
  const { reply, service } = call;
  const changed = await changeKey(service.keys, adminOf(call), request);
  return sendResult(reply.code(request.act === "create" ? 201 : 200), changed);
}

function adminOf({ key, tenant }: CallWithoutGate): KeyAdmin {
  if (key === undefined) throw new Error("a route of scope admin was opened without a key");
  return { by: key, tenant };
}

function nameOf({ request }: CallWithoutGate): string {
  return (request.params as { readonly name: string }).name;
}
