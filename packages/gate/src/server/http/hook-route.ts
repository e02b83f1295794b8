import { hash } from "node:crypto";
import type { FastifyReply } from "fastify";
import { bad, good, limits, readJson, type JsonDocument, type Result } from "../../../../core/src/wire/mod.ts";
import { sendJson, readBodyText } from "../request/body.ts";
import { refusalOf, checkAndWait } from "./hooked-check.ts";
import { badValue, queryOf, waitProblem, type Query } from "./query.ts";
import type { RouteCall } from "./route.ts";
import {
  serversProblem,
  type HookDecision,
  type HookDialect,
  type HookedCall,
  type HookedRun,
} from "../dialects/dialect.ts";

/** The rest of an ESCALATE: `deny` refuses at once, `wait` waits for a person, `defer` parks a headless run. */
type OnEscalate = "defer" | "deny" | "wait";

/** A request, with the dialect of its host. */
interface HookRouteCall extends RouteCall {
  readonly dialect: HookDialect;
  readonly body: Buffer;
}

/**
 * Returns the handler of POST /hooks/HOST: the body is the input of the host's hooks, and the answer is in the form of
 * their output.
 *
 * Hosts run a tool after a 200 that they cannot read. So every request with a valid key gets a decision here, also if the
 * gate cannot judge it: then the decision is `deny`, with a reason. Only an ALLOW in assist or enforce mode is `allow`.
 */
export function hookRoute(dialect: HookDialect): (call: RouteCall) => Promise<FastifyReply> {
  return async (call) => {
    const body = Buffer.isBuffer(call.request.body) ? call.request.body : Buffer.alloc(0);
    call.reply.header("svc-request", hash("sha256", body, "hex")); // the command hook compares it with what it sent
    return answer({ ...call, dialect, body });
  };
}

async function answer(hooked: HookRouteCall): Promise<FastifyReply> {
  const { dialect, body, reply } = hooked;
  const document = readBody(body);
  if (!document.ok) return sendDecision(hooked, "deny", document.problem);
  const event = dialect.eventOf(document.value.members);
  if (event === undefined)
    return sendDecision(hooked, "deny", `Svc: the gate reads only the hooks ${dialect.events}; remove the others`);
  const query = queryOf(hooked.request);
  const problem = badValue(query, parametersOf(dialect));
  if (problem !== undefined) return sendDecision(hooked, "deny", `Svc: the address of the hook is wrong: ${problem}`);
  const call = readCall(document.value, dialect, query);
  if (!call.ok) return sendDecision(hooked, "deny", call.problem);
  if (event === "asks") return decide(hooked, call.value, query);
  reportRun(hooked, call.value, event);
  return sendJson(reply, JSON.stringify(dialect.reported(document.value.members)));
}

async function decide(hooked: HookRouteCall, call: HookedCall, query: Query): Promise<FastifyReply> {
  const onEscalate = (query.parameters.get("on_escalate") ?? "deny") as OnEscalate;
  const seconds = Number(query.parameters.get("wait") ?? limits.waitSecondsMax);
  const answered = await checkAndWait(hooked, call, hooked.body, onEscalate === "wait" ? seconds : 0);
  if (!answered.ok) return sendDecision(hooked, "deny", answered.problem);
  const { verdict, reason, mode, approval } = answered.value;
  if (verdict === "ALLOW") {
    hooked.service.hookedCalls.add(identifyCall(hooked, call), answered.value.receipt);
    // The host's own rules decide while the gate observes, so that it lets nothing run that they would not.
    return sendDecision(hooked, mode === "observe" ? "none" : "allow", reason);
  }
  if (verdict === "BLOCK") return sendDecision(hooked, "deny", reason);
  if (typeof approval?.id === "string") hooked.reply.header("svc-approval", approval.id);
  if (onEscalate === "defer" && approval?.next === "wait") return sendDecision(hooked, "defer", reason);
  return sendDecision(hooked, "deny", refusalOf(hooked, answered.value));
}

function parametersOf({ canDefer, namesServers }: HookDialect): Parameters<typeof badValue>[1] {
  const ways = canDefer ? ["deny", "wait", "defer"] : ["deny", "wait"];
  return {
    on_escalate: (value) => (ways.includes(value) ? undefined : `"on_escalate" must be ${ways.join(" or ")}`),
    wait: waitProblem,
    ...(namesServers ? {} : { servers: serversProblem }),
  };
}

function readBody(body: Buffer): Result<JsonDocument, string> {
  const text = readBodyText(body);
  if (typeof text !== "string") return bad(`Svc: the hook's input is not UTF-8: ${text.detail}`);
  const read = readJson(text);
  if (read.ok) return read;
  const { line, column, sentence } = read.problem;
  return bad(`Svc: the hook's input is not strict JSON: line ${line}, column ${column}: ${sentence}`);
}

/** The host adds members with each version, so unknown ones are ignored. */
function readCall(document: JsonDocument, dialect: HookDialect, query: Query): Result<HookedCall, string> {
  const { members } = document;
  const names = dialect.members;
  const text = (name: string): string | undefined => {
    const value = members.get(name);
    return typeof value === "string" ? value : undefined;
  };
  const [name, session] = [text(names.tool), text(names.session)];
  const input = inputOf(document, dialect, name ?? "");
  if (name === undefined || session === undefined || input === undefined)
    return bad(`Svc: the hook's input lacks ${names.tool}, ${names.input} or ${names.session}; the action is blocked`);
  const servers = query.parameters.get("servers")?.split(",") ?? [];
  const tool = dialect.gateName(name, members, servers);
  if (!tool.ok) return bad(`Svc: ${tool.problem}; the action is blocked`);
  const facts = dialect.facts.flatMap((fact) => {
    const value = text(fact);
    return value === undefined ? [] : [[fact, value] as const];
  });
  return good({
    tool: tool.value,
    session,
    // Equal calls without ids are taken for one another: each has a receipt, and both have run.
    useId: (names.useId === undefined ? undefined : text(names.useId)) ?? input,
    input,
    facts: Object.fromEntries(facts),
  });
}

/** The text of the arguments as an object; undefined if they are none. */
function inputOf(
  document: JsonDocument,
  { members: names, textMembers }: HookDialect,
  tool: string,
): string | undefined {
  const [given, text] = [document.members.get(names.input), document.source(names.input)];
  if (given instanceof Map) return text;
  const textMember = textMembers?.get(tool);
  return typeof given === "string" && textMember !== undefined ? `{${JSON.stringify(textMember)}:${text}}` : undefined;
}

/** Reports what became of a call, without delaying the host. The row may be missing if another replica decided. */
function reportRun(hooked: HookRouteCall, call: HookedCall, run: HookedRun): void {
  const { gate, key, service } = hooked;
  const receipt = service.hookedCalls.take(identifyCall(hooked, call));
  if (receipt === undefined) return;
  // After an error nobody knows how far the tool came.
  const status = run === "done" ? "done" : "unknown";
  const outcome = { ...receipt, status, amount: undefined, ref: undefined } as const;
  gate.outcomes.report({ name: key?.name ?? "", mayLower: false }, outcome).catch((error: unknown) => {
    service.log.error({ err: error }, "the outcome of a hooked call was not recorded");
  });
}

/** With the tool's name at the gate: a host may give tools of two servers one name, and a model two calls one id. */
function identifyCall({ key, tenant, dialect }: HookRouteCall, { session, tool, useId }: HookedCall): string {
  return JSON.stringify([tenant, key?.id, dialect.host, session, tool, useId]);
}

function sendDecision({ reply, dialect }: HookRouteCall, decision: HookDecision, reason: string): FastifyReply {
  return sendJson(reply, JSON.stringify(dialect.decided(decision, reason)));
}
