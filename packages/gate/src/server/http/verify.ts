import type { FastifyReply } from "fastify";
import type { VerifiedJson } from "../../../../core/src/wire/mod.ts";
import type { AnchoredCheck } from "../anchoring/mod.ts";
import { sendJson } from "../request/body.ts";
import { readQuery } from "./query.ts";
import type { ReadCall } from "./route.ts";

/** Handles GET /ledger/verify. */
export async function verify({ gate, read, request, reply }: ReadCall): Promise<FastifyReply> {
  readQuery(request);
  return sendJson(reply, JSON.stringify(checkJson(await gate.verify(read.turns))));
}

function checkJson(check: AnchoredCheck): VerifiedJson {
  const { rows, head, broken, anchored, anchors } = check;
  const { seq, hash } = head;
  const found =
    broken === undefined ? { ok: true, rows, head: { seq, hash } } : { ok: false, rows, first_broken: broken };
  const note =
    anchored === undefined
      ? {
          note: "nothing outside the data folder vouches for this ledger: set SVC_PIN, SVC_SINKS or SVC_WITNESS_POLICY",
        }
      : {};
  return { ...found, anchored: anchored ?? null, anchors, ...note };
}
