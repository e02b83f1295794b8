import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { functions } from "../../packages/readers/src/ir.ts";

export type Json = Readonly<Record<string, unknown>>;

export interface Row {
  readonly text: string;
  readonly expected: "error" | Json;
  readonly why: string;
}

/** Reads the corpus of a function that returns a record: see spec/vectors/functions/README.md. */
export function readRows(name: string): readonly Row[] {
  const file = new URL(`../../spec/vectors/functions/${name}.json`, import.meta.url);
  const { rows } = JSON.parse(readFileSync(file, "utf8")) as {
    readonly rows: readonly (Row & { readonly text: unknown })[];
  };
  return rows.map(({ text, ...row }) => ({ ...row, text: whole(text) }));
}

function whole(text: unknown): string {
  if (typeof text === "string") return text;
  return (text as readonly (readonly [string, number])[]).map(([part, times]) => part.repeat(times)).join("");
}

/** Returns a function's result for a text as JSON, or the message of its EvaluationError. Throws any other error. */
export function record({ run }: (typeof functions)[number], text: string): Json | string {
  try {
    return plain(run([text])) as Json;
  } catch (error) {
    assert.equal((error as Error).constructor.name, "EvaluationError", `${String(error)} on ${JSON.stringify(text)}`);
    return (error as Error).message;
  }
}

function plain(value: unknown): unknown {
  if (value instanceof Map) return Object.fromEntries([...value].map(([name, member]) => [name, plain(member)]));
  return Array.isArray(value) ? value.map(plain) : value;
}
