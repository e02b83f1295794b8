import type { FastifyReply } from "fastify";
import { parseTilePath } from "../../ledger/mod.ts";
import { refuse } from "../../wire/mod.ts";
import { refuseWith } from "./refusing.ts";
import type { Asked } from "./route.ts";

/** The ledger as a transparency log of C2SP tlog-tiles: the head that was signed last. */
export async function checkpoint({ gate, reply }: Asked): Promise<FastifyReply> {
  const note = await gate.checkpoint();
  return reply.header("content-type", "text/plain; charset=utf-8").header("cache-control", "no-cache").send(note);
}

/** A tile of hashes, or a bundle of leaves; what stands under a path never changes. */
export async function tile({ gate, request, reply }: Asked): Promise<FastifyReply> {
  const { "*": path } = request.params as { readonly "*": string };
  const wanted = parseTilePath(`tile/${path}`);
  const bytes = wanted && (await gate.tile(wanted));
  if (bytes === undefined)
    return refuseWith(reply, refuse("not-found", "the signed head has no such tile; its size is in GET /checkpoint"));
  return reply
    .header("content-type", "application/octet-stream")
    .header("cache-control", "private, max-age=31536000, immutable")
    .send(bytes);
}
