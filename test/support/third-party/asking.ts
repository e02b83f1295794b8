import assert from "node:assert/strict";
import { check, type Running } from "../gate.ts";

const calls = [
  { tool_name: "note.add", tool_input: { text: "é€😂" } },
  { tool_name: "safe.open", tool_input: {} },
  { tool_name: "mail.send", tool_input: { to: "a" }, platform_state: { day: 1 } },
  { tool_name: "nobody.knows", tool_input: {} },
];

/** Makes this many checks of every verdict at a gate, fifty at a time. */
export async function askMany(gate: Pick<Running, "address">, count: number): Promise<void> {
  for (let from = 0; from < count; from += 50) {
    const batch = Array.from({ length: Math.min(50, count - from) }, (_, at) => ({
      session_id: `s${at % 7}`,
      ...calls[at % calls.length],
    }));
    for (const { status, text } of await Promise.all(batch.map((body) => check(gate, body))))
      assert.equal(status, 200, text);
  }
}
