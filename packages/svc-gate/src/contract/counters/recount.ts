import { readJson, type JsonObject, type Verdict } from "../../wire/mod.ts";
import type { PolicySet } from "../compile.ts";
import type { Counter } from "./counter.ts";
import type { CounterUpdate } from "../run/plan-lookups.ts";
import { count, isCounted, prepare } from "../run/decide.ts";

/** A check as its receipt tells of it. A text is undefined where it was erased. */
export interface RecordedCheck {
  readonly toolName: string;
  readonly sessionId: string | null;
  readonly keyName: string;
  readonly inputText: string | undefined;
  /** Was the input too large to be kept whole? Then its text is undefined, and the call was refused before any rule. */
  readonly isInputCut?: boolean;
  /** `null` when no snapshot came. */
  readonly platformText: string | undefined;
  readonly verdict: Verdict;
  readonly answered: Verdict;
  /** What decided, as `Decision.rule` names it; empty where it was erased. */
  readonly rule: string;
}

/**
 * What a counter would have counted of a recorded check, had it been in force then.
 *
 * If a call was refused before any rule, did not run, and its input was not kept whole, it updates no counter that needs the
 * input. Otherwise an agent could make every new counter unknown.
 *
 * @returns undefined where that cannot be known: a part was erased, the counter cannot be moved by a call that ran, or
 *   the call is refused before any rule today though it was not refused so then
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
  const prepared = prepare(policySet, request, { keyName: recorded.keyName, sessionId: recorded.sessionId });
  if (prepared.early !== undefined && !writer.blind)
    return wasRefusedSo(recorded.rule, prepared.early.rule) ? [] : undefined;
  // It would have been refused and not counted. Where it was refused anyway, that is what happened.
  if (prepared.broken.some(([rule]) => rule.replace(".$counters.", ".") === writer.counter.name))
    return recorded.answered === "BLOCK" ? [] : undefined;
  return count(prepared, recorded).filter((move) => move.counter.identity === counter.identity);
}

/** Was it refused before any rule then too? A requirement on presence leaves open what the schemas would have said. */
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
