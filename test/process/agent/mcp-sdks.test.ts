/**
 * Goal: everything that is allowed comes through the proxy unchanged. Method: clients of both generations of the
 * official SDK do the same with servers of both generations, over both transports, with and without the proxy; what
 * they see must be equal. The gate records each call.
 */
import assert from "node:assert/strict";
import { suite, test, type TestContext } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { freePort } from "../../support/free-port.ts";
import { ask, startGate } from "../../support/gate.ts";
import {
  connect,
  everything,
  sdkServer,
  startListener,
  throughProxy,
  type Generation,
  type Reach,
  type SdkClient,
} from "../../support/mcp/sdk.ts";

const generations: readonly Generation[] = ["v1", "v2 legacy", "v2 auto"];

type Seen = Record<string, unknown>;

/** An error is seen by its message. */
const settled = (promise: Promise<unknown>): Promise<unknown> =>
  promise.catch((error: any) => ({ error: String(error?.message) }));

/** The generations differ in where the options are. */
function caller(
  { client }: SdkClient,
  generation: Generation,
): (name: string, input?: object, options?: object) => Promise<unknown> {
  return (name, input = {}, options = {}) => {
    const params = { name, arguments: input };
    return settled(
      generation === "v1" ? client.callTool(params, undefined, options) : client.callTool(params, options),
    );
  };
}

async function seesSecond(sdk: SdkClient, generation: Generation): Promise<Seen> {
  const { client } = sdk;
  const call = caller(sdk, generation);
  const progress: unknown[] = [];
  const onprogress = (step: unknown): void => {
    progress.push(step);
    void call("seen");
  };
  const stop = new AbortController();
  const waiting = call("wait", {}, { signal: stop.signal });
  await pause(300);
  stop.abort("enough");
  return {
    capabilities: client.getServerCapabilities(),
    instructions: client.getInstructions(),
    tools: await settled(client.listTools()),
    add: await call("add", { a: 1, b: 2 }),
    wrong: await call("add", { a: "one" }),
    steps: await call("steps", { count: 3 }, { onprogress }),
    progress,
    confirm: await call("confirm", { what: "this" }),
    sample: await call("sample", {}),
    parallel: await Promise.all([1, 2, 3, 4].map((a) => call("add", { a, b: 1 }))),
    cancelled: await waiting,
    resources: await settled(client.listResources()),
    resource: await settled(client.readResource({ uri: "file:///open" })),
    missing: await settled(client.readResource({ uri: "file:///missing" })),
    prompts: await settled(client.listPrompts()),
    prompt: await settled(client.getPrompt({ name: "greet" })),
  };
}

async function seesEverything(sdk: SdkClient, generation: Generation): Promise<Seen> {
  const { client, logs } = sdk;
  const call = caller(sdk, generation);
  return {
    capabilities: client.getServerCapabilities(),
    instructions: client.getInstructions(),
    tools: await settled(client.listTools()),
    echo: await call("echo", { message: "h\u00e9llo \u2028" }),
    structured: await call("get-structured-content", { location: "Chicago" }),
    links: await call("get-resource-links", { count: 3 }),
    reference: await call("get-resource-reference", { resourceType: "Text", resourceId: 1 }),
    image: await call("get-tiny-image"),
    annotated: await call("get-annotated-message", { messageType: "error", includeImage: true }),
    long: await call("trigger-long-running-operation", { duration: 0.4, steps: 2 }),
    sampling: await call("trigger-sampling-request", { prompt: "hi", maxTokens: 5 }),
    elicitation: await call("trigger-elicitation-request"),
    roots: await call("get-roots-list"),
    task: await call("simulate-research-query", { topic: "bees", ambiguous: false }),
    resources: await settled(client.listResources()),
    templates: await settled(client.listResourceTemplates()),
    resource: await settled(client.readResource({ uri: "demo://resource/dynamic/text/1" })),
    prompts: await settled(client.listPrompts()),
    prompt: await settled(client.getPrompt({ name: "args-prompt", arguments: { city: "Rome" } })),
    completion: await settled(
      client.complete({
        ref: { type: "ref/prompt", name: "completable-prompt" },
        argument: { name: "department", value: "S" },
      }),
    ),
    subscribed: await settled(client.subscribeResource({ uri: "demo://resource/dynamic/text/1" })),
    ping: await settled(client.ping()),
    level: await settled(client.setLoggingLevel("debug")),
    hasLogs: logs.length > 0,
    taskStream: generation === "v1" ? await taskOf(client) : [],
  };
}

/** A call that the server runs as a task, which the client follows to its end. */
async function taskOf(client: any): Promise<unknown> {
  const seen: unknown[] = [];
  const params = { name: "simulate-research-query", arguments: { topic: "bees", ambiguous: true } };
  for await (const { type, task, result, error } of client.experimental.tasks.callToolStream(params)) {
    const step = [type, task?.status, result ?? error?.message];
    if (JSON.stringify(step) !== JSON.stringify(seen.at(-1))) seen.push(step);
  }
  return seen;
}

/** Times, and ids that a server draws. */
function withoutChance(seen: Seen): unknown {
  const text = JSON.stringify(seen, null, 1);
  return JSON.parse(
    text.replaceAll(/\d{1,2}:\d\d:\d\d (?:AM|PM)|\d{4}-\d\d-\d\dT[\d:.]+Z|[0-9a-f]{32}|[0-9a-f-]{36}/g, "-"),
  );
}

async function startAllowing(
  t: TestContext,
  name: string,
  tools: readonly string[],
): Promise<{ readonly address: string }> {
  const judged = ["sampling", "elicitation", "resources.read", "prompts.get", "completion"].map(
    (channel) => `${name}.mcp.${channel}`,
  );
  const names = [...tools.flatMap((tool) => [`${name}.${tool}`, `${name}.${tool}.mcp.responses`]), ...judged];
  const lines = names.map(
    (each) => `  ${each}: { input: { type: object, additionalProperties: true }, otherwise: ALLOW }\n`,
  );
  return startGate(t, { contracts: { "all.yaml": `contract: all\ntools:\n${lines.join("")}` } });
}

interface Server {
  readonly name: string;
  readonly start: (t: TestContext, transport: "stdio" | "http") => Promise<Reach>;
  readonly sees: (client: SdkClient, generation: Generation) => Promise<Seen>;
  /** Calls of tools that the gate must have recorded. */
  readonly calls: number;
}

const servers: readonly Server[] = [
  {
    name: "second",
    start: async (t, transport) =>
      transport === "stdio" ? { command: [sdkServer] } : startListener(t, [sdkServer, "http"]),
    sees: seesSecond,
    calls: 9,
  },
  {
    name: "everything",
    start: async (t, transport) => {
      if (transport === "stdio") return { command: [everything] };
      return startListener(t, [everything, "streamableHttp"], { PORT: String(await freePort()) });
    },
    sees: seesEverything,
    calls: 10,
  },
];

suite("svc-gate mcp with the official SDKs", { concurrency: 2 }, () => {
  for (const server of servers) {
    for (const transport of ["stdio", "http"] as const) {
      for (const generation of generations) {
        test(`client ${generation} sees the same of server ${server.name} over ${transport} with and without the proxy`, async (t) => {
          const reach = await server.start(t, transport);
          const direct = await connect(t, generation, reach);
          const { tools } = await direct.client.listTools();
          const gate = await startAllowing(
            t,
            server.name,
            tools.map(({ name }: { readonly name: string }) => name),
          );
          const proxied = await connect(
            t,
            generation,
            await throughProxy(t, { reach, gate: gate.address, name: server.name }),
          );
          const expected = withoutChance(await server.sees(direct, generation));
          assert.deepEqual(withoutChance(await server.sees(proxied, generation)), expected);
          const { json } = await ask(gate, "/receipts?limit=1000");
          const recorded = json.receipts.filter(
            ({ tool_name }: { readonly tool_name: string }) => !tool_name.includes(".mcp."),
          );
          assert.ok(recorded.length >= server.calls, `${recorded.length} calls`);
        });
      }
    }
  }
});
