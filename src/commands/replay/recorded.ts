import type { CheckRequest, JsonObject } from "../../wire/mod.ts";
import { readJson } from "../../wire/mod.ts";
import { parseLeaf, partText, readCall, type Leaf } from "../../ledger/mod.ts";
import type { RecordedRow } from "../history.ts";

/** A check, as its receipt tells of it. */
export interface Recorded {
  readonly row: RecordedRow;
  readonly leaf: Leaf;
  readonly request: CheckRequest;
  /** JSON texts, as they were written. */
  readonly reasonText: string;
  readonly outcomeText: string;
  readonly effectsText: string;
}

/** Reads a receipt back; a clause that says why it cannot be decided again, where it cannot. */
export function readRecorded(row: RecordedRow): Recorded | string {
  const leaf = parseLeaf(row.leaf);
  if (leaf === undefined) return "its leaf is not one that this version reads";
  const call = readCall(row.evidence);
  const inputText = partText(row.evidence, "input");
  const platformText = partText(row.evidence, "platform");
  const reasonText = partText(row.evidence, "reason");
  const outcomeText = partText(row.evidence, "outcome");
  const effectsText = partText(row.evidence, "effects");
  if (
    call === undefined ||
    inputText === undefined ||
    platformText === undefined ||
    reasonText === undefined ||
    outcomeText === undefined ||
    effectsText === undefined
  )
    return "a part of its evidence was erased";
  const toolInput = objectOf(inputText);
  const platformState = platformText === "null" ? null : objectOf(platformText);
  if (toolInput === undefined || platformState === undefined) return "its input or its snapshot is not readable";
  const request = {
    toolName: call.tool_name,
    toolInput,
    sessionId: call.session_id,
    platformState,
    inputText,
    platformText: platformState === null ? null : platformText,
  };
  return { row, leaf, request, reasonText, outcomeText, effectsText };
}

function objectOf(text: string): JsonObject | undefined {
  const document = readJson(text);
  return document.ok ? document.value.members : undefined;
}
