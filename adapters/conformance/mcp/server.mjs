/**
 * An MCP server on the SDK's second generation, which serves both generations of the protocol. Without arguments it
 * speaks over stdio; with `http` it listens on a free port of 127.0.0.1 and prints its address.
 */
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { setTimeout } from "node:timers/promises";
import { createMcpHandler, fromJsonSchema, inputRequired, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const object = (properties, required = Object.keys(properties)) =>
  fromJsonSchema({ type: "object", properties, required, additionalProperties: false });
const number = { type: "number" };

function makeServer() {
  const server = new McpServer(
    { name: "second-generation", version: "1.0.0" },
    { capabilities: { tools: { listChanged: true }, logging: {} }, instructions: "Add numbers." },
  );
  server.registerTool(
    "add",
    { description: "Adds.", inputSchema: object({ a: number, b: number }), outputSchema: object({ sum: number }) },
    ({ a, b }) => ({ content: [{ type: "text", text: String(a + b) }], structuredContent: { sum: a + b } }),
  );
  server.registerTool(
    "confirm",
    { description: "Asks the user first.", inputSchema: object({ what: { type: "string" } }) },
    confirm,
  );
  server.registerTool("sample", { description: "Asks the model.", inputSchema: object({}) }, sample);
  server.registerTool("seen", { description: "Says that a step was seen.", inputSchema: object({}) }, () => {
    seen.resolve();
    return { content: [] };
  });
  server.registerTool("steps", { description: "Reports progress.", inputSchema: object({ count: number }) }, steps);
  server.registerTool("wait", { description: "Waits until it is cancelled.", inputSchema: object({}) }, wait);
  server.registerResource("open", "file:///open", { mimeType: "text/plain" }, () => ({
    contents: [{ uri: "file:///open", text: "open" }],
  }));
  server.registerPrompt("greet", { description: "Greets." }, () => ({
    messages: [{ role: "user", content: { type: "text", text: "hello" } }],
  }));
  return server;
}

function confirm({ what }, { mcpReq }) {
  const answer = mcpReq.inputResponses?.sure;
  if (answer !== undefined)
    return { content: [{ type: "text", text: `${what}: ${answer.action} ${answer.content?.word}` }] };
  const requestedSchema = { type: "object", properties: { word: { type: "string" } }, required: ["word"] };
  return inputRequired({
    requestState: `state of ${what}`,
    inputRequests: { sure: inputRequired.elicit({ message: `Really ${what}?`, requestedSchema }) },
  });
}

function sample(_, { mcpReq }) {
  const answer = mcpReq.inputResponses?.text;
  if (answer !== undefined) return { content: [{ type: "text", text: `the model said ${answer.content.text}` }] };
  const messages = [{ role: "user", content: { type: "text", text: "Say a word." } }];
  return inputRequired({ inputRequests: { text: inputRequired.createMessage({ messages, maxTokens: 10 }) } });
}

/** How long a step waits until its client has seen it. */
const stepMs = 5000;
let seen = Promise.withResolvers();

/** Both clients lose progress that comes together with the result, so each step waits for a call of `seen`. */
async function steps({ count }, { mcpReq }) {
  const progressToken = mcpReq["_meta"]?.progressToken;
  for (let progress = 1; progress <= count; progress += 1) {
    if (progressToken === undefined) continue;
    seen = Promise.withResolvers();
    await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: count } });
    await Promise.race([seen.promise, setTimeout(stepMs, undefined, { ref: false })]);
  }
  return { content: [{ type: "text", text: `${count} steps` }] };
}

function wait(_, { mcpReq }) {
  return new Promise((_resolve, reject) => {
    mcpReq.signal.addEventListener("abort", () => {
      process.stderr.write("wait was cancelled\n");
      reject(new Error("cancelled"));
    });
  });
}

if (process.argv[2] === "http") {
  const handler = createMcpHandler(makeServer);
  const server = createServer((request, response) => {
    const stop = new AbortController();
    response.on("close", () => stop.abort());
    const hasBody = request.method === "POST";
    const init = { method: request.method, headers: request.headers, signal: stop.signal, duplex: "half" };
    const asked = new Request(`http://${request.headers.host}${request.url}`, {
      ...init,
      ...(hasBody && { body: Readable.toWeb(request) }),
    });
    void handler.fetch(asked).then((answer) => {
      response.writeHead(answer.status, Object.fromEntries(answer.headers));
      if (answer.body === null) response.end();
      else
        Readable.fromWeb(answer.body)
          .on("error", () => response.destroy())
          .pipe(response);
    });
  });
  server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/mcp`));
} else {
  serveStdio(makeServer);
}
