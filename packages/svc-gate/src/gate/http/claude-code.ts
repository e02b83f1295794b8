import { hash } from "node:crypto";
import type { FastifyReply } from "fastify";
import { bad, good, limits, readJson, type JsonDocument, type JsonObject, type Result } from "../../wire/mod.ts";
import { textOf } from "./body.ts";
import { escaped, settled, type Question } from "./hooked-check.ts";
import { badValue, queryOf, waitProblem } from "./query.ts";
import type { RouteCall } from "./route.ts";

/** The rest of an ESCALATE: `deny` refuses at once, `wait` holds the answer, `defer` parks a headless run. */
type OnEscalate = "defer" | "deny" | "wait";

/** A call as the hook describes it. */
interface HookedCall extends Question {
  readonly session: string;
  /** The id of the call in the host: only to find the receipt when the tool has run. */
  readonly useId: string;
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
