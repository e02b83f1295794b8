import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { listenLocally, type LocalServer } from "../listening.ts";

/** How the doctor's gate answers the next calls. */
export type Behaviour = "allow" | "block" | "broken" | "closed" | "empty";

/** The doctor's own gate: it has no contract and no ledger, and answers each hook in one way. */
export interface StandIn extends LocalServer {
  readonly key: string;
  /** The tools of the calls that a hook has asked about, in order. */
  readonly asked: readonly string[];
  readonly behave: (behaviour: Behaviour) => Promise<void>;
}

/** Starts the gate on a free port of this machine. */
export async function startStandIn(key: string): Promise<StandIn> {
  const asked: string[] = [];
  let behaviour: Behaviour = "block";
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const body = Buffer.concat(pieces);
      const question = questionIn(request.url ?? "", body);
      if (question.asks) asked.push(question.tool);
      const isAuthorized = request.headers.authorization === `Bearer ${key}`;
      const status = !isAuthorized ? 401 : behaviour === "broken" ? 500 : 200;
      const digest = createHash("sha256").update(body).digest("hex");
      const headers = { "content-type": "application/json", "svc-request": digest };
      const output = behaviour === "empty" ? "" : JSON.stringify(outputOf(behaviour, question, digest));
      response.writeHead(status, headers).end(status === 200 ? output : "{}");
    });
  });
  const { url, port, stop } = await listenLocally(server);
  return {
    url,
    port,
    key,
    asked,
    behave: async (next) => {
      const isClosed = behaviour === "closed";
      behaviour = next;
      if (next === "closed" && !isClosed) await stop();
      if (next !== "closed" && isClosed) await listenLocally(server, port);
    },
    stop,
  };
}

/** A question of a host or an adapter. */
interface StandInQuestion {
  /** The route, such as `/hooks/codex` or `/check`. */
  readonly route: string;
  readonly event: string;
  /** False for a report after a call, which needs no decision. */
  readonly asks: boolean;
  readonly tool: string;
}

function questionIn(path: string, body: Buffer): StandInQuestion {
  const route = path.replace(/\?.*$/, "");
  try {
    const input = JSON.parse(body.toString("utf8")) as Readonly<Record<string, unknown>>;
    const { hook_event_name, tool_name, toolName, toolResult, error } = input;
    const event = String(hook_event_name);
    const isBefore =
      hook_event_name === undefined ? toolResult === undefined && error === undefined : before.has(event);
    return { route, event, asks: isBefore && route !== "/outcomes", tool: String(tool_name ?? toolName) };
  } catch {
    return { route, event: "", asks: false, tool: "" };
  }
}

const before = new Set(["BeforeTool", "PreToolUse"]);

function outputOf(behaviour: Behaviour, { route, event, asks }: StandInQuestion, request: string): object {
  const isAllowed = behaviour === "allow";
  const reason = `Svc: the doctor's gate answers ${isAllowed ? "ALLOW" : "BLOCK"}`;
  const decision = isAllowed ? "allow" : "deny";
  if (route === "/check")
    return {
      verdict: isAllowed ? "ALLOW" : "BLOCK",
      rule: "doctor.doctor",
      reason,
      mode: "enforce",
      receipt: { seq: 1, hash: "0".repeat(64), request },
    };
  if (route === "/hooks/gemini-cli")
    return asks ? { decision, reason } : { hookSpecificOutput: { hookEventName: event } };
  if (route === "/hooks/copilot-cli")
    return asks ? { permissionDecision: decision, permissionDecisionReason: reason } : { decision: "none" };
  if (!asks) return { hookSpecificOutput: { hookEventName: event } };
  const answer = { permissionDecision: decision, permissionDecisionReason: reason };
  return { hookSpecificOutput: { hookEventName: event, ...answer } };
}
