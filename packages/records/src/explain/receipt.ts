import { bad, good, visible, type Result } from "../../../core/src/wire/mod.ts";
import type { TimedCall } from "../evaluate.ts";
import type { RecordedRow } from "../history.ts";
import { inputNotKept, otherKind, readReceiptCheck, type ReceiptCheck } from "../replay/recorded.ts";
import type { ReceiptExplained } from "./explain-call.ts";

const notDecided = {
  change: "it records an act, such as a change of keys or contracts",
  result: "it records the result of a tool",
} as const;

/** Reads the check of a row, or returns a sentence with the reason why it cannot be explained. */
export function readCheck(row: RecordedRow): Result<ReceiptCheck, string> {
  const kind = otherKind(row);
  if (kind !== undefined) return bad(`receipt ${row.seq} is not a check: ${notDecided[kind]}`);
  const recorded = readReceiptCheck(row);
  if (typeof recorded === "string") return bad(`receipt ${row.seq} cannot be explained: ${recorded}`);
  if (recorded.cutInput === undefined) return good(recorded);
  const { bytes, head, sha256 } = recorded.cutInput;
  const kept = `it had ${bytes} bytes, its SHA-256 is ${sha256}, and it starts with ${visible(head)}`;
  return bad(`receipt ${row.seq} cannot be explained: ${inputNotKept}; ${kept}`);
}

/** The call of a receipt, with its time and mode. */
export function toTimedCall(recorded: ReceiptCheck): TimedCall {
  const { key, at, mode } = recorded.leaf;
  return { body: bodyOf(recorded), key: key ?? "", keyKind: recorded.keyKind, at, mode: mode ?? "enforce" };
}

export function receiptExplained({ leaf, trace, reasonText }: ReceiptCheck): ReceiptExplained {
  const { seq, verdict, rule } = leaf;
  return { seq, contract: leaf.contract ?? "", counters: trace.counters, verdict, rule, reasonText };
}

/** The body that was evaluated, as far as the receipt has it. */
function bodyOf({ request }: ReceiptCheck): string {
  const { toolName, inputText, sessionId, platformText } = request;
  const members = [`"tool_name":${JSON.stringify(toolName)}`, `"tool_input":${inputText}`];
  if (sessionId !== null) members.push(`"session_id":${JSON.stringify(sessionId)}`);
  if (platformText !== null) members.push(`"platform_state":${platformText}`);
  return `{${members.join(",")}}`;
}
