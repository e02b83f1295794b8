import { readJson, type JsonObject, type Verdict } from "../wire/mod.ts";
import type { ContractInForce } from "./compile.ts";
import type { Counter } from "./counters.ts";
import { count, prepare, type Move } from "./decide.ts";

/** A check as its receipt tells of it. A text is undefined where it was erased. */
export interface RecordedCheck {
  readonly toolName: string;
  readonly sessionId: string | null;
  readonly keyName: string;
  readonly inputText: string | undefined;
  /** `null` when no snapshot came. */
  readonly platformText: string | undefined;
  readonly verdict: Verdict;
  readonly answered: Verdict;
  /** It was refused before any rule: by a requirement or a schema. */
  readonly failedEarly: boolean;
}

/**
 * What a counter would have counted of a recorded check, had it been in force then.
 *
 * @returns undefined where that cannot be known: a part was erased, or the call does not fit today's schemas though it
 *   was not refused for it then
 */
export function recount(
  counter: Counter,
  force: ContractInForce,
  recorded: RecordedCheck,
): readonly Move[] | undefined {
  const mover = force.tools
    .get(recorded.toolName)
    ?.movers.find((candidate) => candidate.counter.identity === counter.identity);
  if (mover === undefined) return [];
  const toolInput = objectOf(recorded.inputText);
  const platformState = recorded.platformText === "null" ? null : objectOf(recorded.platformText);
  if (!mover.blind && (toolInput === undefined || platformState === undefined)) return undefined;
  const request = {
    toolName: recorded.toolName,
    toolInput: toolInput ?? noMembers,
    sessionId: recorded.sessionId,
    platformState: platformState ?? null,
    inputText: "",
    platformText: null,
  };
  const prepared = prepare(force, request, { keyName: recorded.keyName, sessionId: recorded.sessionId });
  if (prepared.early !== undefined && !mover.blind) return recorded.failedEarly ? [] : undefined;
  if (prepared.broken.some(([rule]) => rule.replace(".$counters.", ".") === counter.name)) return undefined;
  return count(prepared, recorded)
    .filter((move) => move.counter.identity === counter.identity)
    .slice(0, 1);
}

const noMembers: JsonObject = new Map();

function objectOf(text: string | undefined): JsonObject | undefined {
  const document = text === undefined ? undefined : readJson(text);
  return document?.ok === true ? document.value.members : undefined;
}
