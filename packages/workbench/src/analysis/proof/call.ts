import { planLookups, decide, prepare, type PolicySet, type Decision } from "../../../../readers/src/contract.ts";
import { isStricter, parseCheckRequest } from "../../../../core/src/wire/mod.ts";

/** A call with everything that its decision depends on. */
export interface SampleCall {
  readonly tool: string;
  /** The JSON text of an object. */
  readonly input: string;
  /** The JSON text of an object; null without facts. */
  readonly platform: string | null;
  readonly hasSession: boolean;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** The values of counters, as decimals, by identity or by name; a missing counter is 0. */
  readonly counters: ReadonlyMap<string, string>;
}

/** The JSON text of an object, from the texts of its members. */
export function objectText(members: Iterable<readonly [name: string, text: string]>): string {
  return `{${Array.from(members, ([name, text]) => `${JSON.stringify(name)}: ${text}`).join(", ")}}`;
}

/** The decisions of two contracts on one call. */
export interface CallComparison {
  readonly call: SampleCall;
  readonly before: Decision;
  readonly after: Decision;
}

export type ChangeDirection = "weaker" | "stricter";

/** A part of two contracts that differs. */
export interface ContractChange<Value = unknown> {
  /** `changed` if neither of the two values is stricter. */
  readonly direction: ChangeDirection | "changed";
  readonly before: Value;
  readonly after: Value;
}

/** Both decisions, by the engine; undefined for a call that the gate would refuse. */
export function compareCall(before: PolicySet, after: PolicySet, call: SampleCall): CallComparison | undefined {
  const a = decideCall(before, call);
  const b = a === undefined ? undefined : decideCall(after, call);
  return a === undefined || b === undefined ? undefined : { call, before: a, after: b };
}

/** Is the decision after the change more lenient, or stricter, than before? */
export function directionOf({ before, after }: CallComparison): ChangeDirection | undefined {
  if (isStricter(before.verdict, after.verdict)) return "weaker";
  return isStricter(after.verdict, before.verdict) ? "stricter" : undefined;
}

function decideCall(policySet: PolicySet, call: SampleCall): Decision | undefined {
  const session = call.hasSession ? ',"session_id":"s"' : "";
  const facts = call.platform ?? "null";
  const body = `{"tool_name":${JSON.stringify(call.tool)},"tool_input":${call.input}${session},"platform_state":${facts}}`;
  const request = parseCheckRequest(body);
  if (!request.ok) return undefined;
  const caller = { keyName: "k", sessionId: request.value.sessionId };
  const lookupPlan = planLookups(prepare(policySet, request.value, caller), call.now);
  const values = lookupPlan.lookups.map(({ counter }) => {
    const value = call.counters.get(counter.identity) ?? call.counters.get(counter.name) ?? "0";
    return counter.remembers && value !== "0" ? "1" : value;
  });
  return decide(lookupPlan, values);
}
