import type { FastifyReply } from "fastify";
import { modes } from "../../../../core/src/wire/mod.ts";
import { inForceJson } from "../policy/reload-row.ts";
import { readBody, requireValue, BodyError } from "../request/body.ts";
import type { FoldedCounter } from "../service/counters.ts";
import { sendResult } from "./refusing.ts";
import type { CallWithoutGate } from "./route.ts";

/** Handles POST /admin/reload: puts the files in force. `mode` changes the mode. An empty body reloads only the files. */
export async function reload({ service, tenant, key, request, reply }: CallWithoutGate): Promise<FastifyReply> {
  const wanted = readBody(request.body, ["mode"], (members) => {
    const mode = members.get("mode");
    if (mode === undefined || typeof mode === "string") return mode;
    throw new BodyError(`"mode" must be one of ${modes.join(", ")}`);
  });
  const reloaded = await service.reload(tenant, requireValue(wanted), key?.id ?? "");
  return sendResult(reply, reloaded, ({ changed, before, now, folded, receipt = null }) => {
    return { changed, before: inForceJson(before), now: inForceJson(now), counters: folded.map(counterJson), receipt };
  });
}

/** Returns from when a counter counts: from the first receipt, after `unknown_through`, or from now on. */
function counterJson({
  counter,
  rows,
  events,
  unknownThrough,
  startsEmpty,
}: FoldedCounter): Readonly<Record<string, unknown>> {
  const counts = startsEmpty
    ? "from now on"
    : unknownThrough < 0
      ? "from the first receipt"
      : "after `unknown_through`";
  return { counter, counts, receipts: rows, events, unknown_through: unknownThrough < 0 ? null : unknownThrough };
}
