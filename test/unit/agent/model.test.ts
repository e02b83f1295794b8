/**
 * Goal: the scripted model picks the turn from the request alone, and writes each protocol as its readers expect. Method: the
 * same script is requested over four protocols, whole and streamed; a small reader for each joins the streamed pieces, and both
 * must give the same calls. test/process/hosts reads the answers with real hosts and an official client.
 */
import assert from "node:assert/strict";
import { suite, test, type TestContext } from "node:test";
import { startModel, type ScriptedModel } from "../../../packages/agent/src/model/server.ts";
import { fillTurn, findPosition } from "../../../packages/agent/src/model/script.ts";

const calls = [
  { tool: "pay", arguments: '{"amount":5,"amount":900}' },
  { tool: "read", arguments: "{}" },
];
const scripts = { A: [calls, "fin"] };

interface Spoken {
  readonly calls: readonly { readonly tool: string; readonly arguments: string }[];
  readonly text: string;
}

interface Wire {
  readonly path: (isStreamed: boolean) => string;
  /** The request's body after `results` results of the first turn. */
  readonly body: (isStreamed: boolean, results: number) => object;
  readonly whole: (body: string) => Spoken;
  readonly streamed: (events: readonly any[]) => Spoken;
}

const schema = { type: "object", properties: { amount: { type: ["number", "null"] }, type: { type: "string" } } };
const tool = { name: "pay", description: "Pays.", parameters: schema };
const said = (found: Partial<Spoken>): Spoken => ({ calls: [], text: "", ...found });

/** As Gemini writes the schema. */
const inCapitals = { type: "OBJECT", properties: { amount: { type: ["number", "null"] }, type: { type: "STRING" } } };

/** Returns the text of the member `name` as it was written, for arguments that are not equal to what a parser makes of them. */
const rawMembers = (body: string, name: string): string[] =>
  [...body.matchAll(new RegExp(`"${name}":(\\{[^{}]*\\})`, "g"))].map(([, text = ""]) => text);

const wires: Readonly<Record<string, Wire>> = {
  "Anthropic Messages": {
    path: () => "/v1/messages?beta=true",
    body: (stream, results) => ({
      model: "m",
      stream,
      tools: [{ name: "pay", description: "Pays.", input_schema: schema }],
      messages: [
        { role: "user", content: [{ type: "text", text: "do [[A]]" }] },
        ...(results > 0
          ? [
              { role: "assistant", content: [{ type: "tool_use", id: "x", name: "pay", input: {} }] },
              { role: "user", content: [{ type: "tool_result", tool_use_id: "x", content: "paid [[B]]" }] },
            ]
          : []),
      ],
    }),
    whole: (body) => {
      const { content } = JSON.parse(body);
      const inputs = rawMembers(body, "input");
      return said({
        calls: content
          .filter(({ type }: any) => type === "tool_use")
          .map(({ name }: any, index: number) => ({ tool: name, arguments: inputs[index] })),
        text: content[0].text ?? "",
      });
    },
    streamed: (events) => {
      const starts = events.filter(({ type }) => type === "content_block_start");
      const joined = (index: number, member: string): string =>
        events
          .filter((each) => each.type === "content_block_delta" && each.index === index)
          .map(({ delta }) => delta[member] ?? "")
          .join("");
      const used = starts.filter(({ content_block }) => content_block.type === "tool_use");
      return said({
        calls: used.map(({ index, content_block }) => ({
          tool: content_block.name,
          arguments: joined(index, "partial_json"),
        })),
        text: joined(0, "text"),
      });
    },
  },
  "OpenAI Chat": {
    path: () => "/v1/chat/completions",
    body: (stream, results) => ({
      model: "m",
      stream,
      tools: [{ type: "function", function: tool }],
      messages: [
        { role: "user", content: "do [[A]]" },
        ...(results > 0
          ? [
              { role: "assistant", tool_calls: [] },
              { role: "tool", tool_call_id: "x", content: "paid [[B]]" },
            ]
          : []),
      ],
    }),
    whole: (body) => {
      const { message } = JSON.parse(body).choices[0];
      const made = message.tool_calls ?? [];
      return said({
        calls: made.map((each: any) => ({ tool: each.function.name, arguments: each.function.arguments })),
        text: message.content ?? "",
      });
    },
    streamed: (events) => {
      const deltas = events.flatMap(({ choices }) => choices.map(({ delta }: any) => delta));
      const made: { tool: string; arguments: string }[] = [];
      for (const { tool_calls: parts = [] } of deltas)
        for (const { index, function: part } of parts) {
          made[index] ??= { tool: part.name, arguments: "" };
          made[index].arguments += part.arguments;
        }
      return said({ calls: made, text: deltas.map(({ content }) => content ?? "").join("") });
    },
  },
  "OpenAI Responses": {
    path: () => "/v1/responses",
    body: (stream, results) => ({
      model: "m",
      stream,
      tools: [{ type: "function", ...tool }],
      input: [
        { role: "user", content: [{ type: "input_text", text: "do [[A]]" }] },
        ...(results > 0
          ? [
              { type: "function_call", call_id: "x", name: "pay", arguments: "{}" },
              { type: "function_call", call_id: "y", name: "pay", arguments: "{}" },
              { type: "function_call_output", call_id: "x", output: "paid [[B]]" },
            ]
          : []),
      ],
    }),
    whole: (body) => outputIn(JSON.parse(body).output),
    streamed: (events) => {
      const whole = outputIn(events.at(-1).response.output);
      const pieces = (type: string): string =>
        events
          .filter((each) => each.type === type)
          .map(({ delta }) => delta)
          .join("");
      assert.equal(
        pieces("response.function_call_arguments.delta"),
        whole.calls.map((call) => call.arguments).join(""),
      );
      assert.equal(pieces("response.output_text.delta"), whole.text);
      return whole;
    },
  },
  Gemini: {
    path: (isStreamed) => `/v1beta/models/m:${isStreamed ? "streamGenerateContent?alt=sse" : "generateContent"}`,
    body: (_, results) => ({
      tools: [{ functionDeclarations: [{ ...tool, parameters: inCapitals }] }],
      contents: [
        { role: "user", parts: [{ text: "do [[A]]" }] },
        ...(results > 0
          ? [
              { role: "model", parts: [{ functionCall: { name: "pay", args: {} } }] },
              { role: "user", parts: [{ functionResponse: { name: "pay", response: { output: "paid [[B]]" } } }] },
            ]
          : []),
      ],
    }),
    whole: (body) => partsIn(JSON.parse(body).candidates[0].content.parts, rawMembers(body, "args")),
    streamed: (events) =>
      partsIn(
        events.flatMap(({ candidates }) => candidates[0].content.parts),
        events.flatMap(({ raw }) => rawMembers(raw, "args")),
      ),
  },
};

function outputIn(output: readonly any[]): Spoken {
  const made = output.filter(({ type }) => type === "function_call");
  return said({
    calls: made.map((each) => ({ tool: each.name, arguments: each.arguments })),
    text: output[0].content?.[0].text ?? "",
  });
}

function partsIn(parts: readonly any[], args: readonly string[]): Spoken {
  const made = parts.filter(({ functionCall }) => functionCall !== undefined);
  return said({
    calls: made.map(({ functionCall }, index) => ({ tool: functionCall.name, arguments: args[index] ?? "" })),
    text: parts.map(({ text }) => text ?? "").join(""),
  });
}

/** Asks as a host would, and reads the answer. */
async function spoken({ url }: ScriptedModel, wire: Wire, isStreamed: boolean, results: number): Promise<Spoken> {
  const body = JSON.stringify(wire.body(isStreamed, results));
  const headers = { "content-type": "application/json", "x-api-key": "secret" };
  const response = await fetch(url + wire.path(isStreamed), { method: "POST", headers, body });
  assert.equal(response.status, 200);
  const text = await response.text();
  if (!isStreamed) return wire.whole(text);
  const lines = text.split("\n").filter((line) => line.startsWith("data: {"));
  return wire.streamed(lines.map((line) => ({ ...JSON.parse(line.slice(6)), raw: line.slice(6) })));
}

async function started(t: TestContext): Promise<ScriptedModel> {
  const model = await startModel(scripts);
  t.after(() => model.stop());
  return model;
}

suite("the scripted model", () => {
  for (const [name, wire] of Object.entries(wires))
    for (const isStreamed of [false, true])
      test(`${name}${isStreamed ? ", streamed," : ""} says the script's calls as they are written, and then its text`, async (t) => {
        const model = await started(t);
        assert.deepEqual(await spoken(model, wire, isStreamed, 0), { calls, text: "" });
        assert.deepEqual(await spoken(model, wire, isStreamed, 0), { calls, text: "" }, "a repeated request");
        assert.deepEqual(await spoken(model, wire, isStreamed, 1), { calls: [], text: "fin" });
        const last = model.shown.at(-1);
        assert.match(last?.results[0]?.text ?? "", /paid \[\[B\]\]/);
        assert.deepEqual(last?.tools, [{ name: "pay", description: "Pays.", schema }]);
        assert.equal(JSON.stringify(model.shown).includes("secret"), false, "no key is kept");
      });

  test("tools in forms of their own are read: of the provider, in a namespace, and without JSON arguments", async (t) => {
    const model = await started(t);
    const offered = async (path: string, tools: readonly object[]): Promise<readonly string[]> => {
      await fetch(model.url + path, { method: "POST", body: JSON.stringify({ tools, messages: [], input: [] }) });
      return model.shown.at(-1)?.tools.map((each) => `${each.name} ${each.schema === undefined}`) ?? [];
    };
    const search = { type: "web_search_20250305", name: "web_search" };
    assert.deepEqual(await offered("/v1/messages", [search]), ["web_search true"]);
    const custom = { type: "custom", custom: { name: "patch" } };
    assert.deepEqual(await offered("/v1/chat/completions", [custom]), ["patch true"]);
    const inner = { type: "function", ...tool };
    assert.deepEqual(
      await offered("/v1/responses", [
        { type: "namespace", name: "agents", tools: [inner] },
        { type: "custom", name: "apply_patch", format: {} },
        { type: "web_search" },
      ]),
      ["agents/pay false", "apply_patch true", "web_search true"],
    );
    const gemini = [{ functionDeclarations: [{ name: "pay", parametersJsonSchema: schema }] }, { googleSearch: {} }];
    assert.deepEqual(await offered("/v1beta/models/m:generateContent", gemini), ["pay false", "googleSearch true"]);
    assert.deepEqual(model.shown.at(-1)?.tools[0]?.schema, schema);
  });

  test("arguments that end too early are sent as they are", async (t) => {
    const model = await startModel({ A: [[{ tool: "pay", arguments: '{"amount":5' }]] });
    t.after(() => model.stop());
    const wire = wires["Anthropic Messages"] ?? assert.fail();
    assert.equal((await spoken(model, wire, true, 0)).calls[0]?.arguments, '{"amount":5');
  });

  test("the last marker of the user picks the script, and a batch in several messages is one turn", () => {
    const user = (text: string) => ({ from: "user", text, results: [] }) as const;
    const model = { from: "model", text: "[[X]]", results: [] } as const;
    assert.deepEqual(findPosition([user("[[A]]"), model, model, user("")]), { script: "A", turn: 1 });
    assert.deepEqual(findPosition([user("[[A]]"), model, user("and [[B]]")]), { script: "B", turn: 0 });
    assert.deepEqual(findPosition([user("hello")]), { script: undefined, turn: 0 });
  });

  test("an argument can use what the latest result says, and is 0 if none says it", () => {
    const turn = [{ tool: "write", arguments: '{"id":<<session (\\d+)>>}' }];
    const result = (text: string) => ({ call: "c", text });
    assert.deepEqual(fillTurn(turn, [result("session 1"), result("session 2"), result("other")]), [
      { tool: "write", arguments: '{"id":2}' },
    ]);
    assert.deepEqual(fillTurn(turn, []), [{ tool: "write", arguments: '{"id":0}' }]);
    assert.equal(fillTurn("<<x>>", []), "<<x>>");
  });

  test("a request without tools gets a text, and an unknown path gets 404 and is kept", async (t) => {
    const model = await started(t);
    const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "[[A]]" }] });
    const answer = await fetch(`${model.url}/v1/messages`, { method: "POST", body });
    const { content }: any = await answer.json();
    assert.equal(content[0].type, "text");
    assert.equal((await fetch(`${model.url}/v2/other`)).status, 404);
    assert.deepEqual(model.strange, ["GET /v2/other"]);
  });
});
