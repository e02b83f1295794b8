/** OpenAI Chat Completions: POST /v1/chat/completions. */
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

export const openaiChat: Protocol = {
  accepts: (path) => path.endsWith("/chat/completions"),
  read: (body) => ({
    messages: (body.messages ?? []).map(toModelMessage),
    tools: (body.tools ?? []).map(toolOf),
    isStreamed: body.stream === true,
  }),
  whole: (answer) =>
    json({
      ...envelope(answer, "chat.completion"),
      choices: [{ index: 0, message: messageIn(answer), logprobs: null, finish_reason: finishReason(answer) }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    }),
  streamed: (answer) => {
    const chunk = (delta: object, reason: string | null = null): string =>
      event({
        ...envelope(answer, "chat.completion.chunk"),
        choices: [{ index: 0, delta, logprobs: null, finish_reason: reason }],
      });
    return [
      chunk({ role: "assistant", content: null }),
      ...deltasOf(answer).map((delta) => chunk(delta)),
      chunk({}, finishReason(answer)),
      event({
        ...envelope(answer, "chat.completion.chunk"),
        choices: [],
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      }),
      event("[DONE]"),
    ];
  },
};

/** A tool has its definition in a member that is named as its type: `function`, `custom`. */
function toolOf(tool: AnyJson): OfferedTool {
  const { name, description, parameters }: AnyJson = tool[tool.type] ?? {};
  return offeredTool(name ?? tool.type, description, parameters);
}

function toModelMessage({ role, content, tool_call_id }: AnyJson): ModelMessage {
  const results = role === "tool" ? [{ call: String(tool_call_id), text: readContentText(content) }] : [];
  return {
    from: role === "assistant" ? "model" : "user",
    text: role === "user" ? readContentText(content) : "",
    results,
  };
}

function envelope(answer: ModelAnswer, object: string): object {
  return { id: `chatcmpl-${callId(answer, 0)}`, object, created: 1, model: answer.model };
}

function finishReason({ says }: ModelAnswer): string {
  return typeof says === "string" ? "stop" : "tool_calls";
}

function messageIn(answer: ModelAnswer): object {
  const { says } = answer;
  if (typeof says === "string") return { role: "assistant", content: says, refusal: null };
  const calls = says.map(({ tool, arguments: input }, index) => ({
    id: `call_${callId(answer, index)}`,
    type: "function",
    function: { name: tool, arguments: input },
  }));
  return { role: "assistant", content: null, refusal: null, tool_calls: calls };
}

function deltasOf(answer: ModelAnswer): readonly object[] {
  const { says } = answer;
  if (typeof says === "string") return pieces(says).map((content) => ({ content }));
  return says.flatMap(({ tool, arguments: input }, index) => [
    {
      tool_calls: [
        { index, id: `call_${callId(answer, index)}`, type: "function", function: { name: tool, arguments: "" } },
      ],
    },
    ...pieces(input).map((piece) => ({ tool_calls: [{ index, function: { arguments: piece } }] })),
  ]);
}
