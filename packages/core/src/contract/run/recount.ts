import { readJson, type JsonObject, type KeyKind, type Verdict } from "../../wire/mod.ts";
import type { PolicySet } from "../compile/compile.ts";
import type { Counter } from "../core/counter.ts";
import type { CounterUpdate } from "./plan-lookups.ts";
import { count, isCounted, prepare } from "./decide.ts";

/** A check as its receipt describes it. Erased texts are undefined. */
export interface RecordedCheck {
  /** The name by which it was judged then, which is not resolved again. */
  readonly toolName: string;
  readonly sessionId: string | null;
  readonly keyName: string;
  readonly keyKind?: KeyKind | undefined;
  readonly inputText: string | undefined;
  /**
   * Was the input too large to be stored whole? Then its text is undefined, and the call was refused before any rule.
   */
  readonly isInputCut?: boolean;
  /** `null` if there were no facts. */
  readonly platformText: string | undefined;
  readonly verdict: Verdict;
  readonly answered: Verdict;
  /** The deciding rule, as `Decision.rule` names it; empty if it was erased. */
  readonly rule: string;
  /** What became of the call if a person had to decide it. */
  readonly how?: string | undefined;
  /** True if the question is what the outcome `done` of the call adds. */
  readonly isDone?: boolean | undefined;
}

/**
 * Computes how a recorded check would have updated a counter if the counter had been in force then.
 *
 * If a call was refused before any rule, did not run, and its input was not stored whole, it updates no counter that
 * needs the input. Otherwise an agent could make every new counter unknown.
 *
 * @returns undefined if the updates cannot be known. This is so if a part was erased, if a call that ran cannot update
 *   the counter, or if only today's contract refuses the call before any rule
 */
export function recount(
  counter: Counter,
  policySet: PolicySet,
  recorded: RecordedCheck,
): readonly CounterUpdate[] | undefined {
  if (!isCounted(counter, recorded)) return [];
  const writer = policySet.tools
    .get(recorded.toolName)
    ?.writers.find((candidate) => candidate.counter.identity === counter.identity);
  if (writer === undefined) return [];
  const toolInput = objectOf(recorded.inputText);
  const platformState = recorded.platformText === "null" ? null : objectOf(recorded.platformText);
  if (!writer.blind && recorded.isInputCut && recorded.answered === "BLOCK") return [];
  if (!writer.blind && (toolInput === undefined || platformState === undefined)) return undefined;
  const request = {
    toolName: recorded.toolName,
    toolInput: toolInput ?? noMembers,
    sessionId: recorded.sessionId,
    platformState: platformState ?? null,
    inputText: "",
    platformText: null,
  };
  const { keyName, keyKind, sessionId } = recorded;
  const prepared = prepare(policySet, request, { keyName, keyKind, sessionId });
  if (prepared.early !== undefined && !writer.blind)
    return wasRefusedSo(recorded.rule, prepared.early.rule) ? [] : undefined;
  // The call would have been refused and not counted. If it was refused anyway, the result is the same.
  if (prepared.broken.some(([rule]) => rule.replace(".$counters.", ".") === writer.counter.name))
    return recorded.answered === "BLOCK" ? [] : undefined;
  return count(prepared, recorded).filter((move) => move.counter.identity === counter.identity);
}

/**
 * Was it refused before any rule then too? A requirement on presence fails before the schemas are checked, so their
 * result is unknown.
 */
function wasRefusedSo(then: string, today: string): boolean {
  return /^\$route$|\.\$(?:input|platform)$/.test(then) || (isRequirement(then) && isRequirement(today));
}

function isRequirement(rule: string): boolean {
  return /\.\$requires\.[0-9]+$/.test(rule);
}

const noMembers: JsonObject = new Map();

function objectOf(text: string | undefined): JsonObject | undefined {
  const document = text === undefined ? undefined : readJson(text);
  return document?.ok === true ? document.value.members : undefined;
}
