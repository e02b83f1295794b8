import type { FastifyReply } from "fastify";
import { bad, refuse } from "../../../../core/src/wire/mod.ts";
import { sendJson } from "../request/body.ts";
import { check, refusalOf, checkAndWait } from "./hooked-check.ts";
import { escapeName } from "../dialects/dialect.ts";
import { readMcpMessage, type McpMessage } from "./mcp-message.ts";
import { badQuery, queryOf } from "./query.ts";
import { refuseWith } from "./refusing.ts";
import type { RouteCall } from "./route.ts";

/**
 * Handles POST /hooks/envoy/:server: the question of Envoy's filter ext_authz before an MCP server. The body is the
 * message that the client sent.
 *
 * Envoy reads only the status. It sends the message on after a 200, and refuses it with this body after a 403. So 200 is
 * only for an ALLOW, and for messages that carry no call. While the gate observes, it answers ALLOW to each call. Then
 * it also records each message that it would refuse, and lets it pass.
 */
export async function envoyCheck(call: RouteCall): Promise<FastifyReply> {
  const { reply, request } = call;
  const { server } = request.params as { readonly server: string };
  const query = queryOf(request);
  if (escapeName(server) !== server || badQuery(query, []) !== undefined)
    return refuseWith(reply, refuse("not-found", "the path ends with the server's name: letters, digits, - and _"));
  const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
  const message = readMcpMessage(server, body, request.headers);
  // Envoy itself sets this header, also if the client sent one. Without it, the body is not in the question.
  const isWhole = request.headers["x-envoy-auth-partial-body"] === "false";
  const judged = isWhole ? message.call : bad("Envoy did not send the whole body: set with_request_body");
  const session = request.headers["mcp-session-id"]?.toString();
  // The row has no session, because a session id that is too long may be the reason.
  const refuseUnjudged = async (reason: string): Promise<FastifyReply> => {
    const observed = { tool: `${server}.mcp.refused`, input: JSON.stringify({ reason }) };
    if (call.gate.policy.mode !== "observe") return refuseMessage(reply, message, reason);
    const answer = await check(call, { ...observed, session: undefined, facts: undefined }, body, {
      unreadFor: server,
    });
    // Only the row's own mode counts: another replica may have changed it, and a stop enforces.
    if (answer.ok && answer.value.mode === "observe") return pass(reply);
    const isStopped = answer.ok && call.gate.policy.mode === "observe";
    return refuseMessage(reply, message, isStopped ? answer.value.reason : reason);
  };
  if (!judged.ok) return refuseUnjudged(`Svc: ${judged.problem}.`);
  if (judged.value === undefined) return pass(reply);
  const question = { ...judged.value, session, facts: undefined };
  const answer = await checkAndWait(call, question, body, 0);
  if (!answer.ok) return refuseUnjudged(answer.problem);
  const { verdict, approval } = answer.value;
  if (verdict === "ALLOW") return pass(reply);
  if (typeof approval?.id === "string") reply.header("svc-approval", approval.id);
  return refuseMessage(reply, message, refusalOf(call, answer.value));
}

function pass(reply: FastifyReply): FastifyReply {
  return sendJson(reply, "{}");
}

/** Refuses in the form of an answer of the server, so that a client can show it to the model. */
function refuseMessage(reply: FastifyReply, { id, method }: McpMessage, reason: string): FastifyReply {
  const isCall = method === "tools/call" && id !== null;
  const result = { resultType: "complete", content: [{ type: "text", text: reason }], isError: true };
  const answer = isCall ? { result } : { error: { code: refusedCode, message: reason } };
  return sendJson(reply.code(403), JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
}

/** For refusals of the gate: outside the range that JSON-RPC reserves. The proxy has the same. */
const refusedCode = -31999;
