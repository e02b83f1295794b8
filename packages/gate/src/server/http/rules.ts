import type { FastifyReply } from "fastify";
import { exampleCall } from "../../../../core/src/contract/ir.ts";
import { jsonText, quote, refuse } from "../../../../core/src/wire/mod.ts";
import { sendJson } from "../request/body.ts";
import { anyText, readQuery } from "./query.ts";
import { refuseWith } from "./refusing.ts";
import type { RouteCall } from "./route.ts";

/** Handles GET /rules: returns the contracts in force, or with `contract` those of a receipt. */
export async function rules({ gate, request, reply }: RouteCall): Promise<FastifyReply> {
  const named = readQuery(request, { contract: badDigest }).get("contract");
  const { contract, policySet } = gate.policy;
  const digest = named?.slice("sha256:".length) ?? contract;
  const text = digest === contract ? policySet.text : await gate.ledger.rows.contractText(digest);
  if (text === undefined) return refuseWith(reply, refuse("not-found", "no receipt was decided under this contract"));
  const etag = `"${digest}"`;
  reply.header("etag", etag).header("cache-control", "no-cache");
  const known = request.headers["if-none-match"]?.split(",").map((tag) => tag.trim().replace(/^W\//, "")) ?? [];
  if (known.includes(etag) || known.includes("*")) return reply.code(304).send();
  return reply.header("content-type", "text/plain; charset=utf-8").send(text);
}

function badDigest(value: string): string | undefined {
  if (/^sha256:[0-9a-f]{64}$/.test(value)) return undefined;
  return '"contract" must be the value from a receipt, `sha256:` and 64 hex digits';
}

/** Handles GET /rules/example: the tools in force, and a call of one of them from which a person can start. */
export async function rulesExample({ gate, request, reply }: RouteCall): Promise<FastifyReply> {
  const query = readQuery(request, { tool: anyText });
  const { documents, tools } = gate.policy.policySet;
  const names = [...tools.keys()];
  const tool = query.get("tool") ?? names[0];
  if (tool !== undefined && !tools.has(tool))
    return refuseWith(reply, refuse("not-found", `no contract in force has the tool ${quote(tool)}`));
  const call = tool === undefined ? "null" : jsonText(exampleCall(documents, tool));
  return sendJson(reply, `{"tools":${JSON.stringify(names)},"call":${call}}`);
}
