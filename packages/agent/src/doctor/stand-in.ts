import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { listening, type Listening } from "../listening.ts";

/** How the doctor's gate answers the next calls. */
export type Behaviour = "allow" | "block" | "broken" | "closed" | "empty";

/** The doctor's own gate: it has no contract and no ledger, and answers each hook in one way. */
export interface StandIn extends Listening {
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
      const { tool, event } = describedIn(body);
      if (event === "PreToolUse") asked.push(tool);
      const isAuthorized = request.headers.authorization === `Bearer ${key}`;
      const status = !isAuthorized ? 401 : behaviour === "broken" ? 500 : 200;
      const headers = {
        "content-type": "application/json",
        "svc-request": createHash("sha256").update(body).digest("hex"),
      };
      response.writeHead(status, headers).end(status === 200 ? outputOf(behaviour, event) : "{}");
    });
  });
  const { url, stop } = await listening(server);
  return {
    url,
    key,
    asked,
    behave: async (next) => {
      const isClosed = behaviour === "closed";
      behaviour = next;
      if (next === "closed" && !isClosed) await stop();
      if (next !== "closed" && isClosed) await listening(server, Number(new URL(url).port));
    },
    stop,
  };
}

function outputOf(behaviour: Behaviour, event: string): string {
  if (behaviour === "empty") return "";
  if (event !== "PreToolUse") return JSON.stringify({ hookSpecificOutput: { hookEventName: event } });
  const permissionDecision = behaviour === "allow" ? "allow" : "deny";
  const permissionDecisionReason = `Svc: the doctor's gate answers ${behaviour === "allow" ? "ALLOW" : "BLOCK"}`;
  return JSON.stringify({ hookSpecificOutput: { hookEventName: event, permissionDecision, permissionDecisionReason } });
}

function describedIn(body: Buffer): { readonly tool: string; readonly event: string } {
  try {
    const input = JSON.parse(body.toString("utf8")) as {
      readonly tool_name?: unknown;
      readonly hook_event_name?: unknown;
    };
    return { tool: String(input.tool_name), event: String(input.hook_event_name) };
  } catch {
    return { tool: "", event: "" };
  }
}
