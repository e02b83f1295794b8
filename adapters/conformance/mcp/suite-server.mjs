/**
 * A server that passes the official conformance suite: it has the tools, resources and prompts that the suite asks for,
 * on the first generation of the SDK, with sessions and streams that can be resumed. It prints its address.
 */
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import * as types from "@modelcontextprotocol/sdk/types.js";

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const silence = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const say = (text) => ({ type: "text", text });
const image = { type: "image", data: pixel, mimeType: "image/png" };
const embedded = (uri, text, mimeType = "text/plain") => ({ type: "resource", resource: { uri, mimeType, text } });
const texts = (...names) => Object.fromEntries(names.map((name) => [name, { type: "string" }]));

const addressSchema = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: { address: { type: "object", properties: texts("street", "city") } },
  properties: { name: { type: "string" }, address: { $ref: "#/$defs/address" } },
  additionalProperties: false,
};

const defaults = {
  name: { type: "string", default: "John Doe" },
  age: { type: "integer", default: 30 },
  score: { type: "number", default: 95.5 },
  status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
  verified: { type: "boolean", default: true },
};

const options = ["option1", "option2", "option3"];
const titled = (word) =>
  ["First", "Second", "Third"].map((each, index) => ({ const: `value${index + 1}`, title: `${each} ${word}` }));
const enums = {
  untitledSingle: { type: "string", enum: options },
  titledSingle: { type: "string", oneOf: titled("Option") },
  legacyEnum: {
    type: "string",
    enum: ["opt1", "opt2", "opt3"],
    enumNames: ["Option One", "Option Two", "Option Three"],
  },
  untitledMulti: { type: "array", items: { type: "string", enum: options } },
  titledMulti: { type: "array", items: { anyOf: titled("Choice") } },
};

/** Each tool returns its content. `extra` is the SDK's context of the request. */
const tools = {
  test_simple_text: () => [say("This is a simple text response for testing.")],
  test_image_content: () => [image],
  test_audio_content: () => [{ type: "audio", data: silence, mimeType: "audio/wav" }],
  test_embedded_resource: () => [embedded("test://embedded-resource", "This is an embedded resource content.")],
  test_multiple_content_types: () => [
    say("Multiple content types test:"),
    image,
    embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
  ],
  test_tool_with_logging: async (_, extra) => {
    for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
      await extra.sendNotification({ method: "notifications/message", params: { level: "info", data } });
      await pause(50);
    }
    return [say("logged")];
  },
  test_tool_with_progress: async (_, extra) => {
    const progressToken = extra["_meta"]?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined)
        await extra.sendNotification({
          method: "notifications/progress",
          params: { progressToken, progress, total: 100 },
        });
      await pause(50);
    }
    return [say(String(progressToken))];
  },
  test_error_handling: () => {
    throw new Error("This tool intentionally returns an error for testing");
  },
  test_sampling: async ({ prompt }, extra) => {
    const messages = [{ role: "user", content: say(prompt) }];
    const request = { method: "sampling/createMessage", params: { messages, maxTokens: 100 } };
    const { content } = await extra.sendRequest(request, types.CreateMessageResultSchema);
    return [say(`LLM response: ${content.text}`)];
  },
  test_elicitation: ({ message }, extra) => elicited(extra, message, texts("username", "email"), "User response"),
  test_elicitation_sep1034_defaults: (_, extra) => elicited(extra, "Check these", defaults),
  test_elicitation_sep1330_enums: (_, extra) => elicited(extra, "Choose", enums),
  test_reconnection: async (_, extra) => {
    extra.closeSSEStream?.();
    await pause(200);
    return [say("Reconnection test completed")];
  },
  json_schema_2020_12_tool: () => [say("ok")],
};

async function elicited(extra, message, properties, title = "Elicitation completed") {
  const request = {
    method: "elicitation/create",
    params: { message, requestedSchema: { type: "object", properties } },
  };
  const { action, content } = await extra.sendRequest(request, types.ElicitResultSchema);
  return [say(`${title}: action=${action}, content=${JSON.stringify(content ?? {})}`)];
}

const inputs = {
  test_sampling: texts("prompt"),
  test_elicitation: texts("message"),
};

function listed(name) {
  const properties = inputs[name] ?? {};
  const inputSchema =
    name === "json_schema_2020_12_tool"
      ? addressSchema
      : { type: "object", properties, required: Object.keys(properties) };
  return { name, description: `The suite's tool ${name}.`, inputSchema };
}

const resources = {
  "test://static-text": { mimeType: "text/plain", text: "This is the content of the static text resource." },
  "test://static-binary": { mimeType: "image/png", blob: pixel },
  "test://watched-resource": { mimeType: "text/plain", text: "watched" },
};

const prompts = {
  test_simple_prompt: { arguments: [], messages: () => [say("This is a simple prompt for testing.")] },
  test_prompt_with_arguments: {
    arguments: ["arg1", "arg2"],
    messages: ({ arg1, arg2 }) => [say(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
  },
  test_prompt_with_embedded_resource: {
    arguments: ["resourceUri"],
    messages: ({ resourceUri }) => [
      embedded(resourceUri, "Embedded resource content for testing."),
      say("Please process the embedded resource above."),
    ],
  },
  test_prompt_with_image: { arguments: [], messages: () => [image, say("Please analyze the image above.")] },
};

function makeServer() {
  const capabilities = {
    tools: { listChanged: true },
    resources: { subscribe: true, listChanged: true },
    prompts: { listChanged: true },
    logging: {},
    completions: {},
  };
  const server = new Server({ name: "suite", version: "1.0.0" }, { capabilities });
  server.setRequestHandler(types.ListToolsRequestSchema, () => ({ tools: Object.keys(tools).map(listed) }));
  server.setRequestHandler(types.CallToolRequestSchema, async ({ params }, extra) => {
    try {
      return { content: await tools[params.name](params.arguments ?? {}, extra) };
    } catch (error) {
      return { isError: true, content: [say(error.message)] };
    }
  });
  addResources(server);
  addPrompts(server);
  server.setRequestHandler(types.SetLevelRequestSchema, () => ({}));
  return server;
}

function addResources(server) {
  const name = (uri) => uri.split("//")[1];
  server.setRequestHandler(types.ListResourcesRequestSchema, () => ({
    resources: Object.keys(resources).map((uri) => ({
      uri,
      name: name(uri),
      description: name(uri),
      mimeType: resources[uri].mimeType,
    })),
  }));
  server.setRequestHandler(types.ListResourceTemplatesRequestSchema, () => ({
    resourceTemplates: [{ uriTemplate: "test://template/{id}/data", name: "template", mimeType: "application/json" }],
  }));
  server.setRequestHandler(types.ReadResourceRequestSchema, ({ params: { uri } }) => {
    const [, id] = /^test:\/\/template\/([^/]+)\/data$/.exec(uri) ?? [];
    if (id === undefined && !Object.hasOwn(resources, uri)) throw new types.McpError(-32002, "no such resource");
    const text = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` });
    return { contents: [{ uri, ...(id === undefined ? resources[uri] : { mimeType: "application/json", text }) }] };
  });
  server.setRequestHandler(types.SubscribeRequestSchema, () => ({}));
  server.setRequestHandler(types.UnsubscribeRequestSchema, () => ({}));
}

function addPrompts(server) {
  server.setRequestHandler(types.ListPromptsRequestSchema, () => ({
    prompts: Object.entries(prompts).map(([name, prompt]) => ({
      name,
      description: `The suite's prompt ${name}.`,
      arguments: prompt.arguments.map((each) => ({ name: each, required: true })),
    })),
  }));
  server.setRequestHandler(types.GetPromptRequestSchema, ({ params }) => ({
    messages: prompts[params.name].messages(params.arguments ?? {}).map((content) => ({ role: "user", content })),
  }));
  server.setRequestHandler(types.CompleteRequestSchema, () => ({
    completion: { values: [], total: 0, hasMore: false },
  }));
}

/** Keeps the events of each stream, so that a client can take it up again. */
class Events {
  #events = [];

  async storeEvent(stream, message) {
    this.#events.push({ stream, message });
    return `${this.#events.length - 1}-${stream}`;
  }

  async getStreamIdForEventId(id) {
    return this.#events[Number.parseInt(id, 10)]?.stream;
  }

  async replayEventsAfter(id, { send }) {
    const last = Number.parseInt(id, 10);
    const { stream } = this.#events[last];
    for (const [index, event] of this.#events.entries()) {
      if (index > last && event.stream === stream && event.message.jsonrpc !== undefined)
        await send(`${index}-${stream}`, event.message);
    }
    return stream;
  }
}

const sessions = new Map();

async function transportOf(id) {
  if (id !== undefined) return sessions.get(id);
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    eventStore: new Events(),
    retryInterval: 500,
    onsessioninitialized: (session) => void sessions.set(session, transport),
  });
  await makeServer().connect(transport);
  return transport;
}

const listener = createServer((request, response) => {
  const { host = "", origin = `http://${host}` } = request.headers;
  const isLocal = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/;
  if (!isLocal.test(host) || !isLocal.test(origin.replace(/^http:\/\//, ""))) {
    response.writeHead(403).end();
    return;
  }
  void transportOf(request.headers["mcp-session-id"]).then((transport) => {
    if (transport === undefined) response.writeHead(404).end();
    else transport.handleRequest(request, response);
  });
});
listener.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${listener.address().port}/mcp`));
