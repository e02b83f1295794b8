/** Gates that give no verdict: each listens on this machine and answers in one wrong way. */
import { createServer } from "node:http";
import type { BadGateKind } from "./case.ts";
import { listenLocally, type LocalServer } from "../../packages/agent/src/listening.ts";

/** A verdict as a gate would send it, for every route that a host may ask. */
const allow = {
  verdict: "ALLOW",
  reason: "Svc: fine",
  mode: "enforce",
  receipt: { seq: 1, hash: "0".repeat(64), request: "0".repeat(64) },
  hookSpecificOutput: {
    hookEventName: "PreToolUse",
    permissionDecision: "allow",
    permissionDecisionReason: "Svc: fine",
  },
};
const lowerCase = {
  ...allow,
  verdict: "allow",
  receipt: null,
  hookSpecificOutput: { ...allow.hookSpecificOutput, permissionDecision: "ALLOW" },
};

const answers: Readonly<Record<Exclude<BadGateKind, "closed" | "hangs">, readonly [status: number, body: string]>> = {
  "status-500": [500, JSON.stringify(allow)],
  empty: [200, ""],
  junk: [200, "<html><body>ALLOW</body></html>"],
  "lower-case": [200, JSON.stringify(lowerCase)],
  another: [200, JSON.stringify(allow)],
};

/** Starts a bad gate on a free port. */
export async function startBadGate(kind: BadGateKind): Promise<LocalServer> {
  const server = createServer((request, response) => {
    request.resume();
    if (kind === "closed" || kind === "hangs") return;
    const [status, text] = answers[kind];
    const body = inFormOf(request.url ?? "", text);
    response.writeHead(status, { "content-type": "application/json", "svc-request": "0".repeat(64) }).end(body);
  });
  const started = await listenLocally(server);
  // A port below the range of free ports, which nothing serves.
  return kind === "closed" ? { ...started, url: "http://127.0.0.1:4" } : started;
}

/** The hooks of these hosts read members of their own. */
function inFormOf(path: string, text: string): string {
  const word = /"permissionDecision":"(\w+)"/.exec(text)?.[1];
  if (word === undefined) return text;
  if (path.startsWith("/hooks/gemini-cli")) return JSON.stringify({ decision: word, reason: "Svc: fine" });
  return path.startsWith("/hooks/copilot-cli")
    ? JSON.stringify({ permissionDecision: word, permissionDecisionReason: "Svc: fine" })
    : text;
}
