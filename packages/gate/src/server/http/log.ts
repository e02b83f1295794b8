import type { FastifyReply } from "fastify";
import { parseTilePath } from "../../../../core/src/record/tree/mod.ts";
import { refuse } from "../../../../core/src/wire/mod.ts";
import { readQuery } from "./query.ts";
import { refuseWith } from "./refusing.ts";
import type { RouteCall } from "./route.ts";

/**
 * Handles GET /checkpoint: returns the latest signed head, or with `cosigned=1` the latest head that a quorum of
 * witnesses has cosigned. With /tile, this makes the ledger a transparency log of C2SP tlog-tiles.
 */
export async function checkpoint({ gate, request, reply }: RouteCall): Promise<FastifyReply> {
  const isOne = (value: string): string | undefined => (value === "1" ? undefined : '"cosigned" must be 1');
  const query = readQuery(request, { cosigned: isOne });
  const note = !query.has("cosigned") ? await gate.ledger.checkpoint() : gate.anchors?.cosigned?.note;
  if (note === undefined)
    return refuseWith(
      reply,
      refuse("not-found", "no quorum of witnesses has cosigned a head yet (SVC_WITNESS_POLICY)"),
    );
  return reply.header("content-type", "text/plain; charset=utf-8").header("cache-control", "no-cache").send(note);
}

/** Handles GET /tile: returns a tile of hashes or a bundle of leaves. The content of a path never changes. */
export async function tile({ gate, request, reply }: RouteCall): Promise<FastifyReply> {
  const { "*": path } = request.params as { readonly "*": string };
  const wanted = parseTilePath(`tile/${path}`);
  const bytes = wanted && (await gate.ledger.tile(wanted));
  if (bytes === undefined)
    return refuseWith(reply, refuse("not-found", "the signed head has no such tile; its size is in GET /checkpoint"));
  return reply
    .header("content-type", "application/octet-stream")
    .header("cache-control", "private, max-age=31536000, immutable")
    .send(bytes);
}
