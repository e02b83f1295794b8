/** OpenAI Responses: POST /v1/responses. The request must have the whole conversation, without previous_response_id. */
import {
  callId,
  event,
  json,
  offeredTool,
  pieces,
  readContentText,
  type AnyJson,
  type ModelAnswer,
  type OfferedTool,
  type Protocol,
} from "./protocol.ts";
import type { ModelMessage } from "./script.ts";

export const openaiResponses: Protocol = {
  accepts: (path) => path.endsWith("/responses"),
  read: (body) => ({
    messages: (Array.isArray(body.input) ? body.input : [{ role: "user", content: body.input }]).map(toModelMessage),
    tools: (body.tools ?? []).flatMap(toOfferedTools),
    isStreamed: body.stream === true,
  }),
  whole: (answer) => json(responseOf(answer, "completed", itemsOf(answer))),
  streamed: (answer) => {
    const items = itemsOf(answer);
    const events: readonly ResponseEvent[] = [
      { type: "response.created", response: responseOf(answer, "in_progress", []) },
      { type: "response.in_progress", response: responseOf(answer, "in_progress", []) },
      ...items.flatMap((item, index) => eventsOf(item, index)),
      { type: "response.completed", response: responseOf(answer, "completed", items) },
    ];
    return events.map((each, index) => event({ ...each, sequence_number: index }, each.type));
  },
};

/** A namespace has tools of its own: they are written `namespace/tool`. */
function toOfferedTools({ type, name, description, parameters, tools }: AnyJson): readonly OfferedTool[] {
  if (type !== "namespace") return [offeredTool(name ?? type, description, parameters)];
  return (tools ?? []).flatMap(toOfferedTools).map((tool: OfferedTool) => ({ ...tool, name: `${name}/${tool.name}` }));
}

function toModelMessage({ type, role, content, call_id, output }: AnyJson): ModelMessage {
  if (type === "function_call_output")
    return { from: "user", text: "", results: [{ call: String(call_id), text: readContentText(output) }] };
  const isUser = role !== undefined && role !== "assistant";
  return { from: isUser ? "user" : "model", text: role === "user" ? readContentText(content) : "", results: [] };
}

function responseOf(answer: ModelAnswer, status: string, output: readonly object[]): object {
  return {
    id: `resp_${callId(answer, 0)}`,
    object: "response",
    created_at: 1,
    status,
    error: null,
    incomplete_details: null,
    instructions: null,
    metadata: {},
    model: answer.model,
    output,
    parallel_tool_calls: true,
    temperature: null,
    tool_choice: "auto",
    tools: [],
    top_p: null,
    usage: status === "completed" ? usage : null,
  };
}

const usage = {
  input_tokens: 1,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 1,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 2,
};

function itemsOf(answer: ModelAnswer): readonly AnyJson[] {
  const { says } = answer;
  if (typeof says === "string") {
    const content = [{ type: "output_text", text: says, annotations: [], logprobs: [] }];
    return [{ type: "message", id: `msg_${callId(answer, 0)}`, status: "completed", role: "assistant", content }];
  }
  return says.map(({ tool, arguments: input }, index) => ({
    type: "function_call",
    id: `fc_${callId(answer, index)}`,
    call_id: `call_${callId(answer, index)}`,
    status: "completed",
    ...splitToolName(tool),
    arguments: input,
  }));
}

/** A tool in a namespace is written `namespace/tool` in scripts. */
function splitToolName(tool: string): { readonly name: string; readonly namespace?: string } {
  const [namespace = "", name] = tool.split("/");
  return name === undefined ? { name: tool } : { namespace, name };
}

type ResponseEvent = Readonly<Record<string, unknown>> & { readonly type: string };

function eventsOf(item: AnyJson, index: number): readonly ResponseEvent[] {
  const of = (type: string, more: object): ResponseEvent => ({
    type: `response.${type}`,
    output_index: index,
    ...more,
  });
  const isCall = item.type === "function_call";
  const started = isCall ? { arguments: "" } : { content: [] };
  const inItem = isCall ? { item_id: item.id } : { item_id: item.id, content_index: 0 };
  const part = item.content?.[0];
  const inner = isCall
    ? [
        ...pieces(item.arguments).map((delta) => of("function_call_arguments.delta", { ...inItem, delta })),
        of("function_call_arguments.done", { ...inItem, name: item.name, arguments: item.arguments }),
      ]
    : [
        of("content_part.added", { ...inItem, part: { ...part, text: "" } }),
        ...pieces(part.text).map((delta) => of("output_text.delta", { ...inItem, delta, logprobs: [] })),
        of("output_text.done", { ...inItem, text: part.text, logprobs: [] }),
        of("content_part.done", { ...inItem, part }),
      ];
  return [
    of("output_item.added", { item: { ...item, ...started, status: "in_progress" } }),
    ...inner,
    of("output_item.done", { item }),
  ];
}
