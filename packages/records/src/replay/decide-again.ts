import type { PolicySet, Decision, Prepared } from "../../../core/src/contract/mod.ts";
import {
  decideBatch,
  planCall,
  prepareCall,
  type ActivePolicy,
  type JudgedCall,
  type PlannedCall,
} from "../../../gate/src/server/mod.ts";
import { renderDiagnostics } from "../../../gate/src/server/policy/mod.ts";
import type { CheckEntry, StoredEffect } from "../../../gate/src/ledger/mod.ts";
import { outcomeRows } from "../../../core/src/record/entry/mod.ts";
import { canonical, type Canonical, type Verdict } from "../../../core/src/wire/mod.ts";
import { contractOf, type ContractSource, type History } from "../history.ts";
import { recordedJudge, type JudgeOptions } from "./recorded-judge.ts";
import type { ReceiptCheck } from "./recorded.ts";
import type { ReplayLedger } from "./replay-ledger.ts";

/** A repeated decision, with the values to compare. */
export interface Again {
  readonly decision: Decision;
  readonly answered: Verdict;
  readonly prepared: Prepared;
  readonly lookups: PlannedCall["lookups"];
  /** The row that the gate would write, and what it would add to counters. */
  readonly entry: CheckEntry;
  readonly effects: readonly StoredEffect[];
  /** What a stop, a person or an approval did to the call. */
  readonly how: JudgedCall["how"];
  /** The digests of counters whose values are not known. */
  readonly unknown: readonly string[];
}

/** Decides a recorded call as the gate would, with the current values of counters. It counts nothing. */
export async function decideAgain(
  ledger: ReplayLedger,
  policy: ActivePolicy,
  recorded: ReceiptCheck,
  options: JudgeOptions = {},
): Promise<Again> {
  const { leaf, request, keyKind } = recorded;
  const caller = { keyName: leaf.key ?? "", keyKind, sessionId: request.sessionId };
  const planned = planCall(prepareCall(policy, request, caller), leaf.at);
  const judge = recordedJudge(ledger, policy, recorded, options);
  const [decided] = await decideBatch(judge, [planned], [], { keepRefused: (call) => call, onDefect: () => undefined });
  const { entry, effects } = judge.timed.transaction;
  if (decided === undefined || entry === undefined) throw new Error(`row ${leaf.seq} was not decided again`);
  const { decision, answered } = decided;
  const { prepared } = planned.lookupPlan;
  const { how, unknown } = judge;
  return { decision, answered, prepared, lookups: planned.lookups, entry, effects, how, unknown };
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
    const [oldest = ""] = this.#found.keys();
    if (!this.#found.has(named) && this.#found.size >= contractsMax) this.#found.delete(oldest);
    return this.#found.getOrInsertComputed(named, () => this.#compile(named));
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
export function difference(recorded: ReceiptCheck, again: Again, history: History): Difference | undefined {
  const { leaf, reasonText, outcomeText } = recorded;
  const { answered, decision, entry } = again;
  const parts: readonly (readonly [what: string, was: string | null, is: string])[] = [
    ["tool", JSON.stringify(leaf.tool), JSON.stringify(entry.routed ? entry.toolName : null)],
    ["verdict", leaf.verdict, decision.verdict],
    ["rule", leaf.rule, decision.rule],
    ["reason", reasonText, JSON.stringify(decision.reason)],
    ["answer", leaf.answered, answered],
    ["trace", withoutAsk(outcomeText), canonical(entry.outcome)],
    ["effects", ...effectsOf(recorded, again, history)],
  ];
  const found = parts.find(([, was, is]) => was !== is);
  return found && { what: found[0], was: String(found[1]), is: found[2] };
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

/** Without the ledger's secret, keys cannot be compared: amounts and counters still are. */
function effectsOf(
  { effects: was, effectsText: text }: ReceiptCheck,
  { effects }: Again,
  { keyDigest }: History,
): readonly [was: string, is: string] {
  if (keyDigest !== undefined || effects.length === 0) return [text, outcomeRows.effectsText(effects)];
  return [formatEffects(was), formatEffects(effects)];
}

function formatEffects(effects: readonly Pick<StoredEffect, "amount" | "counter">[]): string {
  return effects
    .map(({ amount, counter }) => `${counter} ${amount}`)
    .toSorted()
    .join(", ");
}
