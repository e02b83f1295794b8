import { hash } from "node:crypto";
import type { FastifyReply } from "fastify";
import { statusAt } from "../../approvals/mod.ts";
import { bad, good, limits, readJson, type JsonDocument, type JsonObject, type Result } from "../../wire/mod.ts";
import { waitFor } from "./approvals.ts";
import { textOf } from "./body.ts";
import { answerCheck, arrivalOf } from "./check.ts";
import type { Exchange } from "./exchange.ts";
import { badValue, queryOf, waitProblem } from "./query.ts";
import type { RouteCall } from "./route.ts";

/** The rest of an ESCALATE: `deny` refuses at once, `wait` holds the answer, `defer` parks a headless run. */
type OnEscalate = "defer" | "deny" | "wait";

/** A call as the hook describes it. */
interface HookedCall {
  readonly tool: string;
  readonly session: string;
  /** The id of the call in the host: only to find the receipt when the tool has run. */
  readonly useId: string;
  /** The text of the arguments, as received. */
  readonly input: string;
  readonly facts: Readonly<Record<string, string>>;
}

/** The members of a gate's own answer that the hook needs. */
interface Answer {
  readonly verdict: "ALLOW" | "BLOCK" | "ESCALATE";
  readonly reason: string;
  readonly mode: "assist" | "enforce" | "observe";
  readonly receipt: { readonly seq: number; readonly hash: string };
  readonly approval?: { readonly id: string | null; readonly next: string };
}

const events = ["PreToolUse", "PostToolUse", "PostToolUseFailure"] as const;
type HookEvent = (typeof events)[number];

/**
 * Handles POST /hooks/claude-code: the body is the input of Claude Code's hooks, and the answer is in the form of their
 * output.
 *
 * Claude Code runs a tool after a 200 that it cannot read. So every request with a valid key gets a decision here, also
 * if the gate cannot judge it: then the decision is `deny`. Only an ALLOW in assist or enforce mode is `allow`.
 */
export async function claudeCodeHook(call: RouteCall): Promise<FastifyReply> {
  const { reply, request } = call;
  const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
  reply.header("svc-request", hash("sha256", body, "hex")); // the command hook compares it with what it sent
  const document = readBody(body);
  if (!document.ok) return sendDecision(reply, "deny", document.problem);
  const event = eventOf(document.value.members);
  if (event === undefined)
    return sendDecision(reply, "deny", `Svc: the gate reads only the hooks ${events.join(", ")}; remove the others`);
  const hooked = readCall(document.value);
  if (!hooked.ok) return sendDecision(reply, "deny", hooked.problem);
  if (event !== "PreToolUse") {
    reportRun(call, hooked.value, event);
    return sendOutput(reply, { hookEventName: event });
  }
  return decide(call, hooked.value, body);
}

async function decide(call: RouteCall, hooked: HookedCall, body: Buffer): Promise<FastifyReply> {
  const { reply } = call;
  const query = queryOf(call.request);
  const problem = badValue(query, parameters);
  if (problem !== undefined) return sendDecision(reply, "deny", `Svc: the address of the hook is wrong: ${problem}`);
  const onEscalate = (query.parameters.get("on_escalate") ?? "deny") as OnEscalate;
  const seconds = Number(query.parameters.get("wait") ?? limits.waitSecondsMax);
  const answer = await settled(call, hooked, body, onEscalate === "wait" ? seconds : 0);
  if (!answer.ok) return sendDecision(reply, "deny", answer.problem);
  const { verdict, reason, mode, approval } = answer.value;
  if (verdict === "ALLOW") {
    call.service.hookedCalls.add(placeOf(call, hooked), answer.value.receipt);
    // The host's own rules decide while the gate observes, so that it lets nothing run that they would not.
    return mode === "observe"
      ? sendOutput(reply, { hookEventName: "PreToolUse" })
      : sendDecision(reply, "allow", reason);
  }
  if (verdict === "BLOCK") return sendDecision(reply, "deny", reason);
  if (typeof approval?.id === "string") reply.header("svc-approval", approval.id);
  if (onEscalate === "defer" && approval?.next === "wait") return sendDecision(reply, "defer", reason);
  return sendDecision(reply, "deny", `${reason}; a person decides: ask again after the decision`);
}

const parameters = {
  on_escalate: (value: string) =>
    ["defer", "deny", "wait"].includes(value) ? undefined : '"on_escalate" must be deny, wait or defer',
  wait: waitProblem,
};

/** Checks the call, waits for a person if asked to, and checks again with an approval that a person gave. */
async function settled(
  call: RouteCall,
  hooked: HookedCall,
  body: Buffer,
  seconds: number,
): Promise<Result<Answer, string>> {
  const first = await check(call, hooked, body, undefined);
  if (!first.ok || first.value.verdict !== "ESCALATE") return first;
  const id = first.value.approval?.id ?? undefined;
  if (id === undefined) return first;
  if (first.value.approval?.next === "check") return check(call, hooked, body, id);
  if (seconds === 0) return first;
  const status = await waited(call, id, seconds);
  if (status === "approved") return check(call, hooked, body, id);
  // After a denial the gate says the person's words.
  return status === "denied" ? check(call, hooked, body, undefined) : first;
}

async function waited(call: RouteCall, id: string, seconds: number): Promise<string> {
  const approval = await call.gate.approvals.find(id);
  if (approval === undefined) return "unknown";
  const latest = await waitFor(call, approval, seconds);
  return latest.ok && !call.reply.raw.destroyed ? statusAt(latest.value, Date.now()) : "unknown";
}

async function check(
  { service, gate, tenant, request }: RouteCall,
  { tool, session, input, facts }: HookedCall,
  body: Buffer,
  approval: string | undefined,
): Promise<Result<Answer, string>> {
  const exchange = request.exchange as Exchange;
  // The key may have been revoked while a person decided.
  exchange.key = exchange.credential();
  if (exchange.key === undefined) return bad("Svc: the API key was revoked; the action is blocked");
  const members = [
    `"tool_name":${JSON.stringify(tool)}`,
    `"tool_input":${input}`,
    `"session_id":${JSON.stringify(session)}`,
    `"platform_state":${JSON.stringify(facts)}`,
    ...(approval === undefined ? [] : [`"approval":${JSON.stringify({ id: approval })}`]),
  ];
  const text = Buffer.from(`{${members.join(",")}}`);
  const answered = await answerCheck({ service, gate, tenant, exchange, body: text, received: arrivalOf(body) });
  if (!answered.ok) return bad(`Svc: ${answered.problem.detail}; the action is blocked`);
  return good(JSON.parse(answered.value) as Answer);
}

function readBody(body: Buffer): Result<JsonDocument, string> {
  const text = textOf(body);
  if (typeof text !== "string") return bad(`Svc: the hook's input is not UTF-8: ${text.detail}`);
  const read = readJson(text);
  if (read.ok) return read;
  const { line, column, sentence } = read.problem;
  return bad(`Svc: the hook's input is not strict JSON: line ${line}, column ${column}: ${sentence}`);
}

function eventOf(members: JsonObject): HookEvent | undefined {
  return events.find((each) => each === members.get("hook_event_name"));
}

/** The host adds members with each version, so unknown ones are ignored. */
function readCall(document: JsonDocument): Result<HookedCall, string> {
  const { members } = document;
  const text = (name: string): string | undefined => {
    const value = members.get(name);
    return typeof value === "string" ? value : undefined;
  };
  const [name, session, input] = [text("tool_name"), text("session_id"), members.get("tool_input")];
  if (name === undefined || session === undefined || !(input instanceof Map))
    return bad("Svc: the hook's input lacks tool_name, tool_input or session_id; the action is blocked");
  const tool = gateName(name, members.get("mcp_server") as JsonObject | undefined);
  if (tool === undefined) return bad("Svc: the hook's input does not say which MCP server has the tool");
  const facts = factNames.flatMap((fact) => {
    const value = text(fact);
    return value === undefined ? [] : [[fact, value] as const];
  });
  return good({
    tool,
    session,
    useId: text("tool_use_id") ?? "",
    input: document.source("tool_input") ?? "",
    facts: Object.fromEntries(facts),
  });
}

/** The members of the input that rules may read as facts, if a contract lists them under `host_facts`. */
const factNames = ["cwd", "permission_mode", "agent_id", "agent_type"] as const;

/**
 * The tool's name at the gate: a built-in tool keeps its name, and a tool of an MCP server is `server.tool`.
 *
 * The host replaces characters in `mcp__server__tool`, so the server's own name comes from `mcp_server`. A server that a
 * project's file may have named is `project:server`, because anyone who can write the project can choose its name.
 *
 * @returns undefined if the name does not belong to the server
 */
function gateName(name: string, server: JsonObject | undefined): string | undefined {
  if (!name.startsWith("mcp__")) return name.includes(".") ? undefined : name;
  const owner = server instanceof Map ? server.get("name") : undefined;
  if (typeof owner !== "string") return undefined;
  const prefix = `mcp__${owner.replaceAll(/[^a-zA-Z0-9_-]/g, "_")}__`;
  if (!name.startsWith(prefix)) return undefined;
  const scope = ownSources.includes((server as JsonObject).get("source") as string) ? "" : "project:";
  return `${scope}${escaped(owner)}.${escaped(name.slice(prefix.length))}`;
}

/** Where only the user, the machine's administrator or the program that starts the host names servers. */
const ownSources: readonly string[] = ["claudeai", "dynamic", "enterprise", "local", "managed", "sdk", "user"];

/**
 * Escapes what could separate scope, server and tool, so that two of them never have one name. Every program that names
 * tools of MCP servers has this rule: adapters/README.md.
 */
function escaped(part: string): string {
  const percent = (text: string): string => Buffer.from(text).toString("hex").toUpperCase().replaceAll(/../g, "%$&");
  return part.replaceAll(/__+|[^A-Za-z0-9_-]/gu, percent);
}

/** Reports what became of a call, without delaying the host. The row may be missing if another replica decided. */
function reportRun(call: RouteCall, hooked: HookedCall, event: HookEvent): void {
  const { gate, key, service } = call;
  const receipt = service.hookedCalls.take(placeOf(call, hooked));
  if (receipt === undefined) return;
  // After an error nobody knows how far the tool came.
  const status = event === "PostToolUse" ? "done" : "unknown";
  const outcome = { ...receipt, status, amount: undefined, ref: undefined } as const;
  gate.outcomes.report({ name: key?.name ?? "", mayLower: false }, outcome).catch((error: unknown) => {
    service.log.error({ err: error }, "the outcome of a hooked call was not recorded");
  });
}

function placeOf({ key, tenant }: RouteCall, { session, useId }: HookedCall): string {
  return JSON.stringify([tenant, key?.id, session, useId]);
}

function sendDecision(reply: FastifyReply, permissionDecision: string, reason: string): FastifyReply {
  return sendOutput(reply, {
    hookEventName: "PreToolUse",
    permissionDecision,
    permissionDecisionReason: reason,
  });
}

function sendOutput(reply: FastifyReply, hookSpecificOutput: Readonly<Record<string, string>>): FastifyReply {
  reply.header("content-type", "application/json; charset=utf-8").header("cache-control", "no-store");
  return reply.send(JSON.stringify({ hookSpecificOutput }));
}
