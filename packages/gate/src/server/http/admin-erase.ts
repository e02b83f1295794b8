import type { FastifyReply } from "fastify";
import type { ErasureResult } from "../erasure/eraser.ts";
import { readErase } from "../erasure/request.ts";
import { requireValue } from "../request/body.ts";
import { sendResult } from "./refusing.ts";
import type { CallWithoutGate } from "./route.ts";

/** Handles POST /admin/erase: erases parts of receipts in the ledger of the path, and records who did it and why. */
export async function erase({ service, tenant, key, request, reply }: CallWithoutGate): Promise<FastifyReply> {
  const call = requireValue(readErase(request.body));
  const erased = await service.workOn(tenant, (gate) => gate.eraser.erase(call, key?.id ?? ""));
  return sendResult(reply, erased, erasedJson);
}

function erasedJson({ receipts, ...erased }: ErasureResult): object {
  return { ...erased, receipts: receipts.map(({ seq, hash }) => ({ seq, hash })) };
}
