// Which tool calls pass LiteLLM although its guardrail blocks them: node litellm-streamed.mjs /path/to/bin/litellm
//
// A model on this machine calls the tool `pay`, and a guardrail blocks each answer with a tool call. The script asks LiteLLM through
// three APIs, unstreamed and streamed, while the guardrail allows, blocks, and does not answer. For each it prints whether the client
// got the call. To install LiteLLM (760 MB): python3 -m venv v && v/bin/pip install 'litellm[proxy]'
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";

const program = process.argv[2] ?? "litellm";
const folder = mkdtempSync(join(tmpdir(), "litellm-"));

/** Starts a server, and returns its port. */
async function serve(answer) {
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const piece of request) text += piece;
    answer(request, response, text === "" ? {} : JSON.parse(text));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server.address().port;
}

const called = { name: "pay", arguments: '{"amount":900}' };
const toolCall = { index: 0, id: "call_1", type: "function", function: called };
const custom = { index: 0, id: "call_1", type: "custom", custom: { name: "pay", input: "amount 900" } };

/** What the model says to a user who says this. */
const messages = {
  pay: { tool_calls: [toolCall] },
  "pay as a custom tool": { tool_calls: [custom] },
  "pay as a function": { function_call: called },
};

/** The chat completions of OpenAI. The arguments of a tool call come in many pieces, as from a real model. */
function model(_request, response, { stream = false, messages: [said] = [{ content: "pay" }] }) {
  const text = typeof said.content === "string" ? said.content : said.content[0].text;
  const message = { role: "assistant", content: null, ...messages[text] };
  const last = text === "pay as a function" ? "function_call" : "tool_calls";
  const common = { id: "c", created: 1, model: "m" };
  if (!stream) {
    const choices = [{ index: 0, message, finish_reason: last }];
    response.writeHead(200, { "content-type": "application/json" });
    return response.end(JSON.stringify({ ...common, object: "chat.completion", choices }));
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  const say = (delta, finish_reason = null) => {
    const chunk = { ...common, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] };
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  if (text === "pay") {
    say({ ...message, tool_calls: [{ ...toolCall, function: { ...called, arguments: "" } }] });
    for (const piece of called.arguments.split("")) say({ tool_calls: [{ index: 0, function: { arguments: piece } }] });
  } else say(message);
  say({}, last);
  return response.end("data: [DONE]\n\n");
}

/** The generic guardrail API, below a path that says its answer. It blocks each answer of the model with a tool call. */
function guardrail({ url }, response, { input_type, tool_calls }) {
  const isCall = input_type === "response" && (tool_calls ?? []).length > 0;
  const answer =
    isCall && url.startsWith("/blocks") ? { action: "BLOCKED", blocked_reason: "900 is too much" } : { action: "NONE" };
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
}

const [modelPort, guardPort] = [await serve(model), await serve(guardrail)];
const settings = {
  "as installed": {},
  "streaming_buffer_until_moderated: true": { streaming_buffer_until_moderated: true },
};
const guard = `http://127.0.0.1:${guardPort}`;
const guards = { allows: `${guard}/allows`, blocks: `${guard}/blocks`, "is down": "http://127.0.0.1:4" };
const key = `sk-${"0".repeat(64)}`;
const parameters = { type: "object" };
const saying = (content) => ({ model: "m", messages: [{ role: "user", content }] });
const anthropicTools = [{ name: "pay", input_schema: parameters }];
const responsesTools = [{ type: "function", name: "pay", parameters }];
const questions = [
  { path: "/v1/chat/completions", kind: "tool call", body: saying("pay") },
  { path: "/v1/chat/completions", kind: "function_call", body: saying("pay as a function") },
  { path: "/v1/chat/completions", kind: "custom tool", body: saying("pay as a custom tool") },
  { path: "/v1/messages", kind: "tool call", body: { ...saying("pay"), max_tokens: 9, tools: anthropicTools } },
  { path: "/v1/responses", kind: "tool call", body: { model: "d", input: "pay", tools: responsesTools } },
];

/** The text of an answer, also if its stream breaks off. */
async function textOf({ body }) {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const piece of body) text += decoder.decode(piece, { stream: true });
  } catch {
    text += "\n(the stream broke off)";
  }
  return text;
}

async function run(setting, kindOfGuard) {
  const probe = await serve(() => {});
  const port = probe + 1;
  const guarded = {
    guardrail_name: "gate",
    litellm_params: {
      guardrail: "generic_guardrail_api",
      mode: "post_call",
      default_on: true,
      api_base: guards[kindOfGuard],
      unreachable_fallback: "fail_closed",
      ...settings[setting],
    },
  };
  const own = { api_base: `http://127.0.0.1:${modelPort}/v1`, api_key: "none" };
  // LiteLLM asks the first one for chat completions also for /v1/messages, and the second one also for /v1/responses.
  const models = [
    { model_name: "m", litellm_params: { model: "hosted_vllm/m", ...own } },
    { model_name: "d", litellm_params: { model: "deepseek/d", ...own } },
  ];
  const router_settings = { disable_cooldowns: true };
  const config = { router_settings, model_list: models, guardrails: [guarded] };
  writeFileSync(join(folder, "config.yaml"), JSON.stringify(config));
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    LITELLM_MASTER_KEY: key,
    LITELLM_LOCAL_MODEL_COST_MAP: "True",
    HTTPS_PROXY: "http://127.0.0.1:4",
    NO_PROXY: "127.0.0.1",
  };
  const words = [
    "--config",
    join(folder, "config.yaml"),
    "--host",
    "127.0.0.1",
    "--port",
    String(port),
    "--telemetry",
    "False",
  ];
  const child = spawn(program, words, { env, stdio: ["ignore", "ignore", "pipe"] });
  let errors = "";
  child.stderr.on("data", (piece) => (errors += piece));
  child.on("exit", (code) => {
    if (code === null) return;
    console.error(errors.slice(-2000));
    process.exit(1);
  });
  const url = `http://127.0.0.1:${port}`;
  while (
    !(await fetch(`${url}/health/liveliness`).then(
      ({ ok }) => ok,
      () => false,
    ))
  )
    await setTimeout(300);
  for (const { path, kind, body } of questions)
    for (const stream of [false, true]) {
      const headers = { "content-type": "application/json", authorization: `Bearer ${key}` };
      const asked = { method: "POST", headers, body: JSON.stringify({ ...body, stream }) };
      const answer = await fetch(`${url}${path}`, asked);
      // The arguments come in pieces, so their digits may have other text between them.
      const text = (await textOf(answer)).replaceAll("900 is too much", "");
      const isCall = /"(?:tool_calls|tool_use|function_call)"/.test(text) && /9.*0.*0/s.test(text);
      const how = stream ? "streamed" : "unstreamed";
      const row = [
        setting,
        `guardrail ${kindOfGuard}`,
        path,
        kind,
        how,
        answer.status,
        isCall ? "GOT THE CALL" : "no call",
      ];
      console.log(row.join(" | "));
    }
  child.kill("SIGKILL");
}

for (const setting of Object.keys(settings)) for (const kind of Object.keys(guards)) await run(setting, kind);
rmSync(folder, { recursive: true, force: true });
process.exit();
