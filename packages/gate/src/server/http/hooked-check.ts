/** Checks a call that a hook describes in the form of its host, and names the tools of MCP servers. */
import { cardPath, statusAt } from "../../../../core/src/approvals/mod.ts";
import { bad, good, type Result } from "../../../../core/src/wire/mod.ts";
import type { ProposedCall } from "../dialects/dialect.ts";
import { waitFor } from "./approvals.ts";
import { answerCheck, arrivalOf } from "./check.ts";
import type { Exchange } from "./exchange.ts";
import type { RouteCall } from "./route.ts";

/** The members of a gate's own answer that the hook needs. */
export interface Answer {
  readonly verdict: "ALLOW" | "BLOCK" | "ESCALATE";
  readonly reason: string;
  readonly mode: "assist" | "enforce" | "observe";
  readonly receipt: { readonly seq: number; readonly hash: string };
  readonly approval?: { readonly id: string | null; readonly next: string };
}

/** Says why a call does not run: if a person decides, also where, and what the model can do. */
export function refusalOf({ service, tenant }: RouteCall, { verdict, reason, approval }: Answer): string {
  if (verdict !== "ESCALATE") return reason;
  const origin = typeof approval?.id === "string" ? service.consoleOrigin : undefined;
  const place = origin === undefined ? "" : ` at ${origin}${cardPath(approval?.id ?? "", tenant)}`;
  return `${reason}; a person decides${place}: ask again after the decision`;
}

/** Checks the call, waits for a person if the caller wants it, and checks again with an approval that a person gave. */
export async function checkAndWait(
  call: RouteCall,
  question: ProposedCall,
  body: Buffer,
  seconds: number,
): Promise<Result<Answer, string>> {
  const first = await check(call, question, body);
  if (!first.ok || first.value.verdict !== "ESCALATE") return first;
  const id = first.value.approval?.id ?? undefined;
  if (id === undefined) return first;
  if (first.value.approval?.next === "check") return check(call, question, body, { approval: id });
  if (seconds === 0) return first;
  const status = await waitForStatus(call, id, seconds);
  if (status === "approved") return check(call, question, body, { approval: id });
  // After a denial the gate says the person's words.
  return status === "denied" ? check(call, question, body) : first;
}

async function waitForStatus(call: RouteCall, id: string, seconds: number): Promise<string> {
  const approval = await call.gate.approvals.find(id);
  if (approval === undefined) return "unknown";
  const latest = await waitFor(call, approval, seconds);
  return latest.ok && !call.reply.raw.destroyed ? statusAt(latest.value, Date.now()) : "unknown";
}

export async function check(
  { service, gate, tenant, request }: RouteCall,
  { tool, session, input, facts }: ProposedCall,
  body: Buffer,
  { approval, unreadFor }: { readonly approval?: string; readonly unreadFor?: string } = {},
): Promise<Result<Answer, string>> {
  const exchange = request.exchange as Exchange;
  // The key may have been revoked while a person decided.
  exchange.key = exchange.credential();
  if (exchange.key === undefined) return bad("Svc: the API key was revoked; the action is blocked");
  const members = [
    `"tool_name":${JSON.stringify(tool)}`,
    `"tool_input":${input}`,
    ...(session === undefined ? [] : [`"session_id":${JSON.stringify(session)}`]),
    ...(facts === undefined ? [] : [`"platform_state":${JSON.stringify(facts)}`]),
    ...(approval === undefined ? [] : [`"approval":${JSON.stringify({ id: approval })}`]),
  ];
  const text = Buffer.from(`{${members.join(",")}}`);
  const answered = await answerCheck({
    service,
    gate,
    tenant,
    exchange,
    body: text,
    received: arrivalOf(body),
    unreadFor,
  });
  if (!answered.ok) return bad(`Svc: ${answered.problem.detail}; the action is blocked`);
  return good(JSON.parse(answered.value) as Answer);
}
