import { hash } from "node:crypto";
import { recount, type Counter, type PolicySet } from "../../../../core/src/contract/mod.ts";
import { readResume } from "../../ledger/mod.ts";
import { readJudgement, readCall, readCutInput, wholeText, type Leaf } from "../../../../core/src/record/entry/mod.ts";
import { isVerdict } from "../../../../core/src/wire/mod.ts";

/** A counter with the contracts that define how calls change it. */
export interface OwnedCounter {
  readonly counter: Counter;
  readonly policySet: PolicySet;
}

/** One counter for each definition; it starts empty only if all contracts that share it say so. */
export function countersOf(policySet: PolicySet): readonly OwnedCounter[] {
  const found = new Map<string, OwnedCounter>();
  for (const counter of policySet.counters) {
    const same = found.get(counter.identity);
    const startsEmpty = counter.startsEmpty && same?.counter.startsEmpty !== false;
    found.set(counter.identity, { policySet, counter: { ...counter, startsEmpty } });
  }
  return [...found.values()];
}

/** The digest under which the ledger keeps a counter, and with which receipts name it. @param identity of the counter */
export function counterDigest(identity: string): string {
  return hash("sha256", identity, "hex");
}

/**
 * Recomputes the events of a counter for a recorded check.
 *
 * @param isDone whether to compute what the outcome `done` of the call adds
 * @returns undefined if the receipt lacks the data, or records that earlier receipts are lost
 */
export function recountRow(
  { counter, policySet }: OwnedCounter,
  leaf: Leaf,
  evidence: string,
  isDone = false,
): ReturnType<typeof recount> {
  if (leaf.kind !== "check") return readResume(leaf, evidence)?.lost === undefined ? [] : undefined;
  const call = readCall(leaf, evidence);
  if (call === undefined) return undefined;
  const { verdict, answered, key } = leaf;
  if (verdict === null || answered === null || !isVerdict(verdict)) return [];
  const isInputCut = readCutInput(evidence) !== undefined;
  // An erased row has no open approval any more. So it counts like a row whose approval was opened, and has ended.
  const isErasedAsk = answered === "ESCALATE" && wholeText(evidence, "outcome") === undefined;
  return recount(counter, policySet, {
    toolName: call.tool,
    sessionId: call.session_id,
    keyName: key ?? "",
    keyKind: call.key_kind,
    inputText: isInputCut ? undefined : wholeText(evidence, "input"),
    isInputCut,
    platformText: wholeText(evidence, "platform"),
    verdict,
    answered,
    rule: leaf.rule ?? "",
    how: isErasedAsk ? "opened" : readJudgement(evidence)?.how,
    isDone,
  });
}
