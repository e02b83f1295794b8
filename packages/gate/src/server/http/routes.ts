import type { FastifyReply } from "fastify";
import { refuse } from "../../../../core/src/wire/mod.ts";
import { reload } from "./admin.ts";
import { erase } from "./admin-erase.ts";
import { replay, showEndpoints } from "./admin-notify.ts";
import { change, create, createPerson, list, showPeople } from "./admin-keys.ts";
import { approve, cancel, decideMany, deny, listApprovals, showApproval } from "./approvals.ts";
import { configuration, evaluation, evaluations } from "./authzen.ts";
import { sendJson } from "../request/body.ts";
import { envoyCheck } from "./envoy.ts";
import { events } from "./events.ts";
import { explain } from "./explain.ts";
import { sendHealth, sendMetrics, sendReadiness } from "./ops.ts";
import { reportOutcome } from "./outcomes.ts";
import { approveGrant, createGrant, listGrants, revokeGrant } from "./grants.ts";
import { checkpoint, tile } from "./log.ts";
import { receipts } from "./receipts.ts";
import { refuseWith } from "./refusing.ts";
import { report } from "./report.ts";
import type { ReadCall, RouteCall, HttpRoute } from "./route.ts";
import { rules, rulesExample } from "./rules.ts";
import { answerCheck } from "./check.ts";
import { claudeCode } from "../dialects/claude-code.ts";
import { codex } from "../dialects/codex.ts";
import { copilotCli } from "../dialects/copilot-cli.ts";
import { geminiCli } from "../dialects/gemini-cli.ts";
import { hookRoute } from "./hook-route.ts";
import { lift, showStops, stop } from "./stop.ts";
import type { Exchange } from "./exchange.ts";
import { verify } from "./verify.ts";

const ofAdmin = { scope: "admin", withoutGate: true } as const;
const ofHost = { scope: "check", forHosts: true } as const;
const ofPeople = { scope: "approve", orScopes: ["receipts"] } as const;
const authzen = { scope: "check", dialect: "authzen" } as const;

export const routes: readonly HttpRoute[] = [
  { method: "POST", path: "/check", ...ofHost, handle: check },
  ...[claudeCode, codex, geminiCli, copilotCli].map((dialect): HttpRoute => ({
    method: "POST",
    path: `/hooks/${dialect.host}`,
    ...ofHost,
    handle: hookRoute(dialect),
  })),
  { method: "POST", path: "/hooks/envoy/:server", ...ofHost, handle: envoyCheck },
  { method: "POST", path: "/access/v1/evaluation", ...authzen, forHosts: true, handle: evaluation },
  { method: "POST", path: "/access/v1/evaluations", ...authzen, forHosts: true, handle: evaluations },
  { method: "GET", path: "/.well-known/authzen-configuration", ...authzen, handle: configuration },
  {
    method: "GET",
    path: "/.well-known/authzen-configuration/t/:tenant",
    ...authzen,
    ofRoot: true,
    handle: configuration,
  },
  // Only a key of the tenant gets the tenant's own state. Everyone else gets the same answer for each id, whether or not the
  // tenant exists.
  { method: "GET", path: "/health", scope: undefined, handle: sendHealth },
  { method: "GET", path: "/rules", reads: "short", scope: "rules", handle: rules },
  { method: "GET", path: "/rules/example", reads: "short", scope: "rules", handle: rulesExample },
  { method: "POST", path: "/explain", readsItself: "explanation", scope: "rules", handle: explain },
  { method: "GET", path: "/receipts", reads: "short", scope: "receipts", handle: receipts },
  { method: "GET", path: "/receipts/:seq", reads: "short", scope: "receipts", handle: receipt },
  { method: "GET", path: "/report", reads: "long", scope: "receipts", handle: report },
  { method: "GET", path: "/ledger/verify", reads: "long", isApart: true, scope: "receipts", handle: verify },
  { method: "GET", path: "/checkpoint", reads: "short", scope: "receipts", orScopes: ["metrics"], handle: checkpoint },
  { method: "GET", path: "/tile/*", reads: "short", scope: "receipts", handle: tile },
  {
    method: "GET",
    path: "/metrics",
    reads: "short",
    isApart: true,
    scope: "metrics",
    ofRoot: true,
    handle: sendMetrics,
  },
  { method: "GET", path: "/ready", scope: "metrics", ofRoot: true, handle: sendReadiness },
  { method: "GET", path: "/approvals", reads: "short", ...ofPeople, handle: listApprovals },
  {
    method: "GET",
    path: "/approvals/:id",
    readsItself: "short",
    scope: "approve",
    orScopes: ["receipts", "check"],
    forHosts: true,
    handle: showApproval,
  },
  { method: "POST", path: "/approvals/:id/approve", scope: "approve", handle: approve },
  { method: "POST", path: "/approvals/:id/deny", scope: "approve", handle: deny },
  { method: "POST", path: "/approvals/:id/cancel", scope: "approve", orScopes: ["check"], handle: cancel },
  { method: "POST", path: "/approvals/decide", scope: "approve", handle: decideMany },
  { method: "GET", path: "/grants", reads: "short", ...ofPeople, handle: listGrants },
  { method: "POST", path: "/grants", readsItself: "short", scope: "approve", handle: createGrant },
  { method: "POST", path: "/grants/:id/approve", scope: "approve", handle: approveGrant },
  { method: "POST", path: "/grants/:id/revoke", scope: "approve", handle: revokeGrant },
  { method: "GET", path: "/events", readsItself: "replay", scope: "receipts", orScopes: ["approve"], handle: events },
  { method: "POST", path: "/outcomes", scope: "outcome", orScopes: ["check"], forHosts: true, handle: reportOutcome },
  {
    method: "GET",
    path: "/stop",
    reads: "short",
    scope: "admin",
    orScopes: ["receipts", "approve"],
    handle: showStops,
  },
  { method: "POST", path: "/admin/stop", ...ofAdmin, orScopes: ["approve"], forEmergencies: true, handle: stop },
  { method: "POST", path: "/admin/stop/lift", ...ofAdmin, handle: lift },
  { method: "POST", path: "/admin/reload", ...ofAdmin, handle: reload },
  { method: "POST", path: "/admin/erase", ...ofAdmin, handle: erase },
  { method: "GET", path: "/admin/keys", reads: "short", ...ofAdmin, handle: list },
  { method: "POST", path: "/admin/keys", ...ofAdmin, handle: create },
  { method: "POST", path: "/admin/keys/:name/rotate", ...ofAdmin, handle: change("rotate") },
  { method: "POST", path: "/admin/keys/:name/revoke", ...ofAdmin, handle: change("revoke") },
  { method: "POST", path: "/admin/keys/:name/update", ...ofAdmin, handle: change("update") },
  { method: "GET", path: "/admin/persons", reads: "short", ...ofAdmin, handle: showPeople },
  { method: "POST", path: "/admin/persons", ...ofAdmin, handle: createPerson },
  { method: "GET", path: "/admin/notify", reads: "short", isApart: true, ...ofAdmin, handle: showEndpoints },
  { method: "POST", path: "/admin/notify/replay", ...ofAdmin, handle: replay },
];

async function check({ service, gate, tenant, request, reply }: RouteCall): Promise<FastifyReply> {
  const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
  const exchange = request.exchange as Exchange;
  const answer = await answerCheck({ service, gate, tenant, exchange, body });
  if (!answer.ok) return refuseWith(reply, answer.problem);
  return reply.header("content-type", "application/json; charset=utf-8").send(answer.value);
}

async function receipt({ gate, request, reply }: ReadCall): Promise<FastifyReply> {
  const { seq } = request.params as { readonly seq: string };
  if (!/^[1-9][0-9]{0,15}$/.test(seq))
    return refuseWith(reply, refuse("not-found", "a receipt's number must be a whole number from 1"));
  for await (const [row] of gate.ledger.rows.receipts({ before: Number(seq) + 1, limit: 1 })) {
    if (row?.seq === Number(seq)) return sendJson(reply, row.json);
  }
  return refuseWith(reply, refuse("not-found", `the receipt ${seq} does not exist`));
}
