/**
 * A model that says what a script says, on this machine: a host is driven with it without a real model. It is
 * stateless. A marker in the user's text picks the script, and the number of model turns in the request picks the turn.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { listenLocally, type LocalServer } from "../listening.ts";
import { anthropic } from "./anthropic.ts";
import { gemini } from "./gemini.ts";
import { openaiChat } from "./openai-chat.ts";
import { openaiResponses } from "./openai-responses.ts";
import type { ModelAnswer, OfferedTool, Protocol } from "./protocol.ts";
import { fillTurn, findPosition, turnAt, type ScriptPosition, type Scripts, type ToolResult } from "./script.ts";

/** What one request showed the model. It has no header, so no key. */
export interface ShownRequest extends ScriptPosition {
  /** The results of tools, oldest first. */
  readonly results: readonly ToolResult[];
  /** The tools that the host offered. */
  readonly tools: readonly OfferedTool[];
}

export interface ScriptedModel extends LocalServer {
  /** Every request so far, oldest first. */
  readonly shown: readonly ShownRequest[];
  /** Requests that are not in a known protocol, as `METHOD /path`. */
  readonly strange: readonly string[];
}

const protocols: readonly Protocol[] = [anthropic, openaiChat, openaiResponses, gemini];
const bodyMax = 64 * 1024 * 1024; // bytes: hosts send all their tools and instructions with each request

/** Starts the model on a free port of this machine. */
export async function startModel(scripts: Scripts): Promise<ScriptedModel> {
  const shown: ShownRequest[] = [];
  const strange: string[] = [];
  const server = createServer((request, response) => {
    answer(request, response, { scripts, shown, strange }).catch((error: unknown) => {
      if (!response.headersSent) response.writeHead(400, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { type: "invalid_request_error", message: String(error) } }));
    });
  });
  return { ...(await listenLocally(server)), shown, strange };
}

interface State {
  readonly scripts: Scripts;
  readonly shown: ShownRequest[];
  readonly strange: string[];
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { scripts, shown, strange }: State,
): Promise<void> {
  const path = (request.url ?? "/").replace(/\?.*$/, "");
  const protocol = request.method === "POST" ? protocols.find(({ accepts }) => accepts(path)) : undefined;
  if (protocol === undefined) return answerOther(request, response, path, strange);
  const body = JSON.parse(await textIn(request));
  const { messages, tools, isStreamed } = protocol.read(body, path);
  const position = findPosition(messages);
  const results = messages.flatMap((message) => message.results);
  shown.push({ ...position, results, tools });
  // A host that offers no tool asks for something else, such as a title.
  const says = tools.length === 0 ? "A conversation" : fillTurn(turnAt(scripts, position), results);
  const said: ModelAnswer = { ...position, says, model: String(body.model ?? "scripted") };
  if (!isStreamed) {
    response.writeHead(200, { "content-type": "application/json" }).end(protocol.whole(said));
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  for (const piece of protocol.streamed(said)) {
    response.write(piece);
    // Each event is a packet of its own, so that a host sees a half answer.
    await new Promise((resolve) => setImmediate(resolve));
  }
  response.end();
}

function answerOther(request: IncomingMessage, response: ServerResponse, path: string, strange: string[]): void {
  request.resume();
  const isCount = /:countTokens$|\/count_tokens$/.test(path);
  if (!isCount && path !== "/") strange.push(`${request.method} ${path}`);
  response.writeHead(isCount || path === "/" ? 200 : 404, { "content-type": "application/json" });
  response.end(isCount ? '{"input_tokens":1,"totalTokens":1}' : "{}");
}

async function textIn(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request) {
    parts.push(part);
    bytes += part.length;
    if (bytes > bodyMax) throw new Error(`the request is over ${bodyMax} bytes`);
  }
  return Buffer.concat(parts).toString("utf8");
}
