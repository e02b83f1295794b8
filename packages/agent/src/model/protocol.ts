/** What the four protocols have in common: reading a request, and writing an answer whole or in pieces. */
import type { ModelMessage, ScriptPosition, ScriptedTurn } from "./script.ts";

/** A JSON value of a host's request, before it is read. */
export type AnyJson = any;

/** A tool as a host offers it to its model. */
export interface OfferedTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments. Undefined: the host gives none, as for a text in a grammar and for the provider's own tools. */
  readonly schema: object | undefined;
}

/** A request as the script needs it. */
export interface ModelRequest {
  readonly messages: readonly ModelMessage[];
  readonly tools: readonly OfferedTool[];
  readonly isStreamed: boolean;
}

/** An answer to be written. */
export interface ModelAnswer extends ScriptPosition {
  readonly says: ScriptedTurn;
  /** The model's name as in the request. */
  readonly model: string;
}

/** One wire protocol. */
export interface Protocol {
  /** Returns whether a POST to this path is a request to the model. */
  readonly accepts: (path: string) => boolean;
  readonly read: (body: AnyJson, path: string) => ModelRequest;
  /** Returns the body of an answer in one piece. */
  readonly whole: (answer: ModelAnswer) => string;
  /** Returns server-sent events, each with its final empty line. */
  readonly streamed: (answer: ModelAnswer) => readonly string[];
}

/** Reads a tool of any protocol. */
export function offeredTool(name: AnyJson, description: AnyJson, schema: AnyJson): OfferedTool {
  const isSchema = typeof schema === "object" && schema !== null && !Array.isArray(schema);
  return {
    name: String(name),
    description: typeof description === "string" ? description : "",
    schema: isSchema ? schema : undefined,
  };
}

/** Returns the id of a call. It is the same whenever the request is repeated. */
export function callId({ script, turn }: ScriptPosition, index: number): string {
  return `${script ?? "none"}_${turn}_${index}`.replaceAll(/[^\w-]/g, "_");
}

/** Cuts a text into two pieces, as a model streams its tokens. */
export function pieces(text: string): readonly string[] {
  const middle = Math.ceil(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)].filter((piece) => piece !== "");
}

/** Returns one server-sent event. */
export function event(data: object | string, name?: string): string {
  const line = typeof data === "string" ? data : json(data);
  return `${name === undefined ? "" : `event: ${name}\n`}data: ${line}\n\n`;
}

const raws = new WeakMap<object, string>();

/** A value that `json` writes as this text, even if the text is not JSON. */
export function raw(text: string): object {
  const value = {};
  raws.set(value, text);
  return value;
}

/** Writes JSON in which values of `raw` keep their text. */
export function json(value: AnyJson): string {
  const found: string[] = [];
  const mark = (index: number): string => `\u0001raw ${index}\u0001`;
  const text = JSON.stringify(value, (_, member: AnyJson) => {
    const kept = typeof member === "object" && member !== null ? raws.get(member) : undefined;
    return kept === undefined ? member : mark(found.push(kept) - 1);
  });
  return found.reduce((all, kept, index) => all.replace(JSON.stringify(mark(index)), () => kept), text);
}

/** Returns the texts of a content: a text, or a list of parts with a text. */
export function readContentText(content: AnyJson): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return content === null || content === undefined ? "" : JSON.stringify(content);
  return content.map((part: AnyJson) => (typeof part?.text === "string" ? part.text : "")).join("\n");
}
