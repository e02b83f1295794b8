import type { FastifyReply } from "fastify";
import { refuse } from "../../wire/mod.ts";
import type { AnchoredCheck } from "../anchors.ts";
import { isSound, shownDeep, type DeepCheck } from "../deep.ts";
import { sendJson } from "./body.ts";
import { badQuery, queryOf } from "./query.ts";
import { refuseWith } from "./refusing.ts";
import type { Asked } from "./route.ts";

/** The walk over the chain; with `deep=1` every check is decided again too, and the counters are folded again. */
export async function verify({ service, gate, tenant, request, reply }: Asked): Promise<FastifyReply> {
  const query = queryOf(request);
  const deep = query.parameters.get("deep");
  const problem = badQuery(query, ["deep"]) ?? (deep === null || deep === "1" ? undefined : '"deep" must be 1');
  if (problem !== undefined) return refuseWith(reply, refuse("invalid-query", problem));
  if (deep === null) return sendJson(reply, JSON.stringify(shown(await gate.verify())));
  const found = await service.deep.verify(tenant, gate);
  return found.ok ? sendJson(reply, JSON.stringify(shown(found.value))) : refuseWith(reply, found.problem);
}

function shown(check: AnchoredCheck & Partial<DeepCheck>): object {
  const { rows, head, broken, anchored = null, anchors, deep } = check;
  const { seq, hash } = head;
  const found =
    broken === undefined
      ? { ok: deep === undefined || isSound(deep), rows, head: { seq, hash } }
      : { ok: false, rows, first_broken: broken };
  const note =
    anchored === null
      ? { note: "nothing outside the data folder anchors this ledger: set SVC_PIN, SVC_SINKS or SVC_WITNESS_POLICY" }
      : {};
  return {
    ...found,
    anchored,
    anchors,
    ...("deep" in check ? { deep: deep === undefined ? null : shownDeep(deep) } : {}),
    ...note,
  };
}
