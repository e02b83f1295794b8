import { readStopAct, type RecordedStopAct, type StopAct } from "../../approvals/mod.ts";
import { resumeAct } from "./approval-rows.ts";
import { partText } from "./evidence.ts";
import { parseLeaf } from "./leaf.ts";
import type { StoredRow } from "./row.ts";

/** Texts of which the leaf of each row about stops has one. */
export const stopMarks: readonly string[] = ['"act":"stop.', `"act":"${resumeAct}"`];

/** False for an act that never changes stops. */
export function isAboutStops(act: string): boolean {
  return act === resumeAct || act.startsWith("stop.");
}

/**
 * Reads what an act does to stops. A row that resumes a ledger after a restore sets a stop for all calls, because a stop
 * may be in the rows that are lost.
 *
 * @param by the name of the key of the act
 * @returns undefined if the act is about something else
 * @throws {SyntaxError} if the body is damaged
 */
export function stopActOf(act: string, body: string, by: string): StopAct | undefined {
  if (act !== resumeAct) return readStopAct(act, body);
  const { lost } = JSON.parse(body) as { readonly lost?: unknown };
  if (lost === undefined) return undefined;
  const why = "the ledger was resumed after a restore, and lacks rows";
  return { act: "stop.set", approvals: "end", ends: [], person: by, reopens: [], root: null, scope: "all", why };
}

/** Reads the act about stops in a row; undefined if the row has none. @throws {SyntaxError} if it is damaged */
export function stopActIn({ leaf, evidence }: Pick<StoredRow, "evidence" | "leaf">): RecordedStopAct | undefined {
  if (!stopMarks.some((mark) => leaf.includes(mark))) return undefined;
  const { act = null, seq = 0, at = 0, key } = parseLeaf(leaf) ?? {};
  const found = act === null ? undefined : stopActOf(act, partText(evidence, "input") ?? "null", key ?? "");
  return found && { seq, at, act: found };
}
