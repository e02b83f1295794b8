import {
  planLookups,
  count,
  decide,
  prepare,
  type LookupPlan,
  type PolicySet,
  type Decision,
  type Lookup,
  type Prepared,
} from "../../contract/mod.ts";
import { answeredVerdict, outcomeOf } from "../../gate/mod.ts";
import { renderDiagnostics } from "../../gate/policy/mod.ts";
import { canonical, type Canonical, type Mode, type Verdict } from "../../wire/mod.ts";
import { contractOf, type ContractSource, type History } from "../history.ts";
import type { Recorded } from "./recorded.ts";
import { counterDigest, ReplayCounters } from "./replay-counters.ts";

/** A repeated decision, with the values to compare. */
export interface Again {
  readonly decision: Decision;
  readonly answered: Verdict;
  readonly prepared: Prepared;
}

/** A recorded call with its time, and the lookups of its rules. */
export interface AskedAgain {
  readonly lookupPlan: LookupPlan;
  readonly lookups: readonly Lookup[];
}

/** Decides under one contract, with the current values of counters. */
export function decideAgain(policySet: PolicySet, recorded: Recorded, counters: ReplayCounters, mode: Mode): Again {
  const own = recorded.trace.asked?.own;
  return decideAsked(askAgain(policySet, recorded), (lookup) => counters.value(lookup, own), mode);
}

/** The part of the decision that does not depend on counters. */
export function askAgain(policySet: PolicySet, { leaf, request, keyKind }: Recorded): AskedAgain {
  const caller = { keyName: leaf.key ?? "", keyKind, sessionId: request.sessionId };
  const lookupPlan = planLookups(prepare(policySet, request, caller), leaf.at);
  return { lookupPlan, lookups: lookupPlan.lookups };
}

/** @param value the value of a counter; undefined if its history is unknown */
export function decideAsked(
  { lookupPlan }: AskedAgain,
  value: (lookup: Lookup) => string | undefined,
  mode: Mode,
): Again {
  const decision = decide(lookupPlan, lookupPlan.lookups.map(value));
  return { decision, answered: answeredVerdict(decision, mode), prepared: lookupPlan.prepared };
}

/** More compiled contracts than that are not kept: bounds memory for any history. */
const contractsMax = 64;

/** Contracts by the digest on receipts, each compiled once as long as few others follow. */
export class Contracts {
  readonly #history: ContractSource;
  readonly #found = new Map<string, Promise<PolicySet | string>>();

  constructor(history: ContractSource) {
    this.#history = history;
  }

  /** The contract in force, or a clause with the reason why it is unavailable. */
  of(named: string): Promise<PolicySet | string> {
    const known = this.#found.get(named);
    if (known !== undefined) return known;
    const found = this.#compile(named);
    if (this.#found.size >= contractsMax) for (const oldest of this.#found.keys().take(1)) this.#found.delete(oldest);
    this.#found.set(named, found);
    return found;
  }

  async #compile(named: string): Promise<PolicySet | string> {
    const compiled = await contractOf(this.#history, named);
    if (compiled === undefined) {
      const digest = named.replace(/^sha256:/, "");
      return `the text of its contract (sha256:${digest.slice(0, 12)}…) is missing`;
    }
    return compiled.ok
      ? compiled.value
      : `its contract does not compile under this version:\n${renderDiagnostics(compiled.problem)}`;
  }
}

/** The difference between a receipt and the repeated decision; undefined if they agree. */
export function difference(recorded: Recorded, again: Again, history: History): Difference | undefined {
  const { leaf, reasonText, outcomeText, effectsText } = recorded;
  const { decision } = again;
  const parts: readonly (readonly [what: string, was: string | null, is: string])[] = [
    ["tool", JSON.stringify(leaf.tool), JSON.stringify(again.prepared.plan?.tool ?? null)],
    ["verdict", leaf.verdict, decision.verdict],
    ["rule", leaf.rule, decision.rule],
    ["reason", reasonText, JSON.stringify(decision.reason)],
    ["answer", leaf.answered, answeredWith(again, recorded)],
    ["trace", withoutAsk(outcomeText), canonical(outcomeOf(decision))],
    ["effects", ...effectsOf(recorded, again, history, effectsText)],
  ];
  const found = parts.find(([, was, is]) => was !== is);
  return found && { what: found[0], was: String(found[1]), is: found[2] };
}

/** The answer to a call, with what a person or an approval did to it. */
export function answeredWith({ answered }: Pick<Again, "answered">, { trace }: Pick<Recorded, "trace">): Verdict {
  const how = trace.asked?.how;
  if (how === "stopped") return "BLOCK";
  if ((how === "used" || how === "grant") && answered !== "BLOCK") return "ALLOW";
  return (how === "denied" || how === "closed") && answered === "ESCALATE" ? "BLOCK" : answered;
}

/** The part of an outcome that the contract decides. */
function withoutAsk(outcomeText: string): string {
  if (!outcomeText.includes('"asked":')) return outcomeText;
  const {
    asked: _asked,
    approval: _approval,
    ...decided
  } = JSON.parse(outcomeText) as { readonly [name: string]: Canonical };
  return canonical(decided);
}

export interface Difference {
  readonly what: string;
  readonly was: string;
  readonly is: string;
}

interface Effect {
  readonly amount: string;
  readonly counter: string;
  readonly held?: true;
  readonly key?: string;
}

/** Both as canonical text. Without the ledger's secret, keys cannot be compared: amounts and counters still are. */
function effectsOf(
  { leaf, effects, trace }: Recorded,
  { prepared }: Again,
  { keyDigest }: History,
  effectsText: string,
): readonly [was: string, is: string] {
  const { verdict, answered } = leaf;
  const outcome = { verdict: verdict ?? "BLOCK", answered: answered ?? "BLOCK", how: trace.asked?.how } as const;
  const updates = count(prepared, outcome);
  if (updates.length === 0) return [effectsText, "[]"];
  const distinct = new Map(
    updates.map(({ counter, key, amount, held }): [string, Effect] => {
      const digest = counterDigest(counter.identity);
      const under = keyDigest?.(key);
      const effect = { amount, counter: digest, ...(held === true && { held }) };
      return [`${digest} ${under ?? key}`, { ...effect, ...(under === undefined ? {} : { key: under }) }];
    }),
  );
  const is = [...distinct].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, effect]) => effect);
  if (keyDigest !== undefined) return [effectsText, canonical(is.map((effect) => ({ ...effect })))];
  const was = effects.map(({ amount, counter }) => ({ amount, counter }));
  return [unordered(was), unordered(is)];
}

function unordered(effects: readonly Effect[]): string {
  return effects
    .map(({ amount, counter }) => `${counter} ${amount}`)
    .toSorted()
    .join(", ");
}
