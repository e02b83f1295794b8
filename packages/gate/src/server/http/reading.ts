import type { FastifyReply, FastifyRequest } from "fastify";
import { refuse } from "../../../../core/src/wire/mod.ts";
import type { SlicedRead, ReadKind } from "../admission/reads.ts";
import type { ValidKey } from "../keys/keys.ts";
import { letGo, untilGone } from "./connection.ts";
import type { Exchange } from "./exchange.ts";
import { refuseWith } from "./refusing.ts";
import type { CallWithoutGate, ReadCall, HttpRoute, RouteCall } from "./route.ts";

/**
 * Answers a request that reads, once it has a place.
 *
 * @param work gets the read. Its place is free when the answer is made. If the client has left, it is free when this has ended
 */
export async function inPlace(
  { key, reply, request, service }: CallWithoutGate,
  kind: ReadKind,
  work: (read: SlicedRead) => unknown,
): Promise<unknown> {
  const exchange = request.exchange as Exchange;
  const gone = untilGone(reply.raw);
  const entered = await service.reads.enter(kind, key as ValidKey, gone);
  if (!entered.ok) return refuseWith(reply, entered.problem);
  const read = entered.value;
  exchange.read = read;
  letGo(exchange); // If the connection is needed for a call, nothing of a read is lost.
  try {
    if (read.signal.aborted) return reply.hijack();
    if (exchange.credential()?.id !== key?.id)
      return refuseWith(reply, refuse("unauthorized", "the key was revoked while the request waited"));
    return await work(read);
  } catch (error) {
    if (!read.signal.aborted || error !== read.signal.reason) throw error;
    return reply.hijack(); // Nobody waits for the answer.
  } finally {
    read.end();
  }
}

/** The hook `onSend` of routes that read: a handler settles only after its answer is sent, but the read has ended. */
export function endRead(request: FastifyRequest, _reply: FastifyReply, payload: unknown, done: OnSendCallback): void {
  request.exchange?.read?.end();
  done(null, payload);
}

type OnSendCallback = (error: null, payload: unknown) => void;

/** Answers a request of a route: a read once it has a place. @param call has a gate, unless the route needs none */
export function answer({ handle, isApart, reads }: HttpRoute, call: CallWithoutGate | RouteCall): unknown {
  const answerCall = handle as (call: CallWithoutGate | ReadCall) => unknown;
  if (reads === undefined) return answerCall(call);
  return inPlace(call, reads, (read) => {
    const answerRead = (): unknown => answerCall({ ...call, read });
    return isApart === true ? answerRead() : read.run(answerRead);
  });
}
