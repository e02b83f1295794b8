/** Anthropic Messages: POST /v1/messages. */
import {
  callId,
  event,
  json,
  offeredTool,
  pieces,
  raw,
  readContentText,
  type AnyJson,
  type ModelAnswer,
  type Protocol,
} from "./protocol.ts";
import type { ModelMessage } from "./script.ts";

export const anthropic: Protocol = {
  accepts: (path) => path.endsWith("/v1/messages"),
  read: (body) => ({
    messages: (body.messages ?? []).map(toModelMessage),
    tools: (body.tools ?? []).map((tool: AnyJson) => offeredTool(tool.name, tool.description, tool.input_schema)),
    isStreamed: body.stream === true,
  }),
  whole: (answer) => json({ ...envelope(answer), content: contentOf(answer), stop_reason: stopReason(answer) }),
  streamed: (answer) => {
    const start = { ...envelope(answer), content: [], stop_reason: null };
    return [
      formatEvent({ type: "message_start", message: start }),
      ...blocksOf(answer).flat(),
      formatEvent({
        type: "message_delta",
        delta: { stop_reason: stopReason(answer), stop_sequence: null },
        usage: { output_tokens: 1 },
      }),
      formatEvent({ type: "message_stop" }),
    ];
  },
};

function toModelMessage({ role, content }: AnyJson): ModelMessage {
  const parts: readonly AnyJson[] = Array.isArray(content) ? content : [{ type: "text", text: content }];
  const results = parts.filter(({ type }) => type === "tool_result");
  return {
    from: role === "assistant" ? "model" : "user",
    text: readContentText(parts.filter(({ type }) => type === "text")),
    results: results.map((part) => ({ call: String(part.tool_use_id), text: readContentText(part.content) })),
  };
}

function envelope(answer: ModelAnswer): object {
  return {
    id: `msg_${callId(answer, 0)}`,
    type: "message",
    role: "assistant",
    model: answer.model,
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 1, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 },
  };
}

function stopReason({ says }: ModelAnswer): string {
  return typeof says === "string" ? "end_turn" : "tool_use";
}

function contentOf(answer: ModelAnswer): readonly object[] {
  if (typeof answer.says === "string") return [{ type: "text", text: answer.says }];
  return answer.says.map(({ tool, arguments: input }, index) => ({
    type: "tool_use",
    id: `toolu_${callId(answer, index)}`,
    name: tool,
    input: raw(input),
  }));
}

function blocksOf(answer: ModelAnswer): readonly (readonly string[])[] {
  const { says } = answer;
  if (typeof says === "string")
    return [
      block(
        0,
        { type: "text", text: "" },
        pieces(says).map((text) => ({ type: "text_delta", text })),
      ),
    ];
  return says.map(({ tool, arguments: input }, index) => {
    const start = { type: "tool_use", id: `toolu_${callId(answer, index)}`, name: tool, input: {} };
    return block(
      index,
      start,
      pieces(input).map((partial) => ({ type: "input_json_delta", partial_json: partial })),
    );
  });
}

function block(index: number, start: object, deltas: readonly object[]): readonly string[] {
  return [
    formatEvent({ type: "content_block_start", index, content_block: start }),
    ...deltas.map((delta) => formatEvent({ type: "content_block_delta", index, delta })),
    formatEvent({ type: "content_block_stop", index }),
  ];
}

function formatEvent(data: { readonly type: string; readonly [member: string]: AnyJson }): string {
  return event(data, data.type);
}
