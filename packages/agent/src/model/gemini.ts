/** Gemini: POST /v1beta/models/NAME:generateContent, and :streamGenerateContent. */
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
  type OfferedTool,
  type Protocol,
} from "./protocol.ts";
import type { ModelMessage } from "./script.ts";

export const gemini: Protocol = {
  accepts: (path) => /:(?:generateContent|streamGenerateContent)$/.test(path),
  read: (body, path) => ({
    messages: (body.contents ?? []).map(toModelMessage),
    tools: (body.tools ?? []).flatMap(toOfferedTools),
    isStreamed: path.endsWith(":streamGenerateContent"),
  }),
  whole: (answer) => json(responseOf(answer, toGeminiParts(answer), true)),
  streamed: (answer) => {
    const { says } = answer;
    // Calls of a batch come in one piece: a host that gets them one by one runs them in turns of their own.
    const parts = typeof says === "string" ? pieces(says).map((text) => [{ text }]) : [toGeminiParts(answer)];
    return parts.map((piece, index) => event(responseOf(answer, piece, index === parts.length - 1)));
  },
};

function toModelMessage({ role, parts }: AnyJson): ModelMessage {
  const all: readonly AnyJson[] = parts ?? [];
  const responses = all.map(({ functionResponse }) => functionResponse).filter((each) => each !== undefined);
  return {
    from: role === "model" ? "model" : "user",
    text: readContentText(all),
    results: responses.map(({ id, name, response }) => ({
      call: String(id ?? name),
      text: JSON.stringify(response),
    })),
  };
}

function toOfferedTools(tool: AnyJson): readonly OfferedTool[] {
  const declared: readonly AnyJson[] = tool.functionDeclarations ?? [];
  const others = Object.keys(tool).filter((name) => name !== "functionDeclarations");
  return [
    ...declared.map(({ name, description, parameters, parametersJsonSchema }) =>
      offeredTool(name, description, parametersJsonSchema ?? withTypes(parameters)),
    ),
    ...others.map((name) => offeredTool(name, "", undefined)),
  ];
}

/** Gemini's own schemas name types as `STRING`, where JSON Schema has `string`. */
function withTypes(schema: AnyJson): AnyJson {
  if (Array.isArray(schema)) return schema.map(withTypes);
  if (typeof schema !== "object" || schema === null) return schema;
  return Object.fromEntries(
    Object.entries(schema).map(([name, value]) => {
      const isType = name === "type" && typeof value === "string" && /^[A-Z]+$/.test(value);
      return [name, isType ? value.toLowerCase() : withTypes(value)];
    }),
  );
}

function toGeminiParts(answer: ModelAnswer): readonly object[] {
  const { says } = answer;
  if (typeof says === "string") return [{ text: says }];
  return says.map(({ tool, arguments: input }, index) => ({
    functionCall: { id: callId(answer, index), name: tool, args: raw(input) },
  }));
}

function responseOf(answer: ModelAnswer, parts: readonly object[], isLast: boolean): object {
  return {
    candidates: [{ content: { role: "model", parts }, index: 0, ...(isLast ? { finishReason: "STOP" } : {}) }],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    modelVersion: answer.model,
    responseId: `${answer.script ?? "none"}-${answer.turn}`,
  };
}
