import type { FastifyReply } from "fastify";
import { modes, refuse, type Refusal } from "../../wire/mod.ts";
import { readMembers, sendJson } from "../request/body.ts";
import type { FoldedCounter } from "../service/counters.ts";
import { refuseWith } from "./refusing.ts";
import type { CallWithoutGate } from "./route.ts";
import type { InForce } from "../../ledger/mod.ts";

/** Handles POST /admin/reload: puts the files in force. `mode` changes the mode. */
export async function reload({ service, tenant, key, request, reply }: CallWithoutGate): Promise<FastifyReply> {
  const mode = modeAsked(request.body);
  if (typeof mode === "object") return refuseWith(reply, mode);
  const reloaded = await service.reload(tenant, mode, key?.id ?? "");
  if (!reloaded.ok) return refuseWith(reply, reloaded.problem);
  const { changed, before, now, folded, receipt = null } = reloaded.value;
  return sendJson(
    reply,
    JSON.stringify({
      changed,
      before: inForceJson(before),
      now: inForceJson(now),
      counters: folded.map(counterJson),
      receipt,
    }),
  );
}

/** Reads the mode in the body. An empty body reloads only the files. */
function modeAsked(body: unknown): string | undefined | Refusal {
  const read = readMembers(body, ["mode"]);
  if (!read.ok) return read.problem;
  const mode = read.value.get("mode");
  if (mode === undefined || typeof mode === "string") return mode;
  return refuse("invalid-request", `"mode" must be one of ${modes.join(", ")}`);
}

function inForceJson({ contract, mode }: InForce): Readonly<Record<string, string>> {
  return { contract: `sha256:${contract}`, mode };
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
