import { readApprovalId } from "../../../../core/src/approvals/mod.ts";
import { leafHash, parseLeaf, wholeText, type StoredRow } from "../../../../core/src/record/entry/mod.ts";
import type { Ledger } from "../../ledger/mod.ts";
import { bad, good, limits, refuse, type Refusal, type Result } from "../../../../core/src/wire/mod.ts";
import type { Deciders } from "../approvals/deciders.ts";
import { quorumNow } from "../approvals/acts.ts";
import type { AnswerApproval } from "../approvals/call-judge.ts";
import type { TimedTransaction } from "../policy/active-ledger.ts";
import type { ActivePolicy } from "../policy/active-policy.ts";
import { answerBody, repeatedBody, type DecidedCheck } from "./answer.ts";
import { ownReason, type IdentifiedCheck, type RepeatAnswer } from "./recorded-answer.ts";

/** The body of the answer that an exact repeat of a check gets. */
export interface RepeatedAnswer {
  readonly body: string;
}

/** What identifies a check, before it is decided. */
export interface CheckIdentity {
  readonly keyName: string;
  readonly callId: string | undefined;
  /** SHA-256 of the body, in hex. */
  readonly digest: string;
}

/** What happens to one call of a batch: it is decided, or it gets the answer of a call before it. */
export type Repetition =
  | { readonly how: "decide"; readonly check: IdentifiedCheck | undefined }
  /** The answer of an earlier call of the same batch, by its index. */
  | { readonly how: "same"; readonly as: number }
  | { readonly how: "answered"; readonly answer: Result<RepeatedAnswer, Refusal> };

export interface RepeatContext {
  readonly ledger: Pick<Ledger, "rows">;
  readonly deciders: Deciders;
  readonly policy: ActivePolicy;
}

const otherBody = refuse(
  "call-id-used",
  "this key has used the call_id for another body within ten minutes: draw a new call_id for each check",
);

/** Says for each call of a batch whether it repeats a check that is answered already. */
export async function repetitionsOf(
  timed: TimedTransaction,
  calls: readonly CheckIdentity[],
  context: RepeatContext,
): Promise<readonly Repetition[]> {
  const { transaction, at } = timed;
  const checks = calls.map(({ keyName, callId, digest }): IdentifiedCheck | undefined => {
    if (callId === undefined) return undefined;
    const bodyDigest = transaction.digest(`svc-gate/body/1\n${digest}`);
    return { id: transaction.repeatId(keyName, callId), bodyDigest };
  });
  const ids = [...new Set(checks.flatMap((check) => check?.id ?? []))];
  const recorded = await transaction.recordedAnswers(ids);
  const firsts = new Map<string, number>();
  const found: Repetition[] = [];
  for (const [index, check] of checks.entries()) {
    const first = check && firsts.get(check.id);
    const answer = check && recorded.get(check.id);
    if (check === undefined) found.push({ how: "decide", check });
    else if (first !== undefined)
      found.push(
        checks[first]?.bodyDigest === check.bodyDigest
          ? { how: "same", as: first }
          : { how: "answered", answer: bad(otherBody) },
      );
    else if (answer !== undefined && at < answer.at + limits.repeatWithinMs) {
      const { digest } = calls[index] as CheckIdentity;
      const again =
        answer.bodyDigest === check.bodyDigest ? await answerAgain(timed, answer, digest, context) : bad(otherBody);
      found.push({ how: "answered", answer: again });
    } else {
      firsts.set(check.id, index);
      found.push({ how: "decide", check });
    }
  }
  return found;
}

/** Answers an exact repeat from the row of its check. @param digest SHA-256 of the body, in hex */
async function answerAgain(
  timed: TimedTransaction,
  answer: RepeatAnswer,
  digest: string,
  context: RepeatContext,
): Promise<Result<RepeatedAnswer, Refusal>> {
  const [row] = await timed.transaction.rowsAt([answer.row]);
  const leaf = row && parseLeaf(row.leaf);
  const reason = row && wholeText(row.evidence, "reason");
  if (leaf === undefined || reason === undefined || leaf.answered === null || leaf.mode === null)
    return bad(notAgain(`a part of row ${answer.row} was erased since`));
  const why = leaf.answered === "ALLOW" ? await endOfAllow(timed, answer, context) : undefined;
  if (why !== undefined) return bad(notAgain(why));
  const own = (JSON.parse(reason) as string).replace(/^Svc: /, "");
  const said = {
    answered: leaf.answered,
    mode: leaf.mode,
    reason: answer.reason.replace(ownReason, () => own),
    receipt: { seq: answer.row, hash: leafHash((row as StoredRow).leaf) },
    approval: answer.approval,
  };
  return good({ body: repeatedBody(said, digest) });
}

function notAgain(why: string): Refusal {
  return refuse(
    "call-id-used",
    `this check was answered, and its answer is not valid any more: ${why}; check the call again with a new call_id`,
  );
}

/** Acts after which an ALLOW that was recorded before them is still valid. */
const harmlessActs: ReadonlySet<string> = new Set([
  "approval.approve",
  "approval.deny",
  "approval.expire",
  "approval.supersede",
  "approval.use",
  "grant.approve",
  "grant.create",
  "keys.create",
  "persons.add",
  "sessions.end",
]);

/** Returns why a recorded ALLOW is not valid any more; undefined if it is. */
async function endOfAllow(
  { transaction, at }: TimedTransaction,
  { row, approval }: RepeatAnswer,
  { ledger, deciders, policy }: RepeatContext,
): Promise<string | undefined> {
  const later = transaction.store.changed > row ? await ledger.rows.changes(row) : [];
  const end = later.find(({ act }) => !harmlessActs.has(act));
  if (end !== undefined) return `row ${end.seq} of act ${end.act} followed it`;
  if (approval === null) return undefined;
  const said = JSON.parse(approval) as Pick<AnswerApproval, "id" | "status" | "use_by">;
  if (said.status === "granted" && at >= (said.use_by ?? 0)) return "the time of its grant is over";
  const id = readApprovalId(String(said.id));
  if (id === undefined) return undefined;
  const { approvals } = await transaction.approvals({ attaches: [], rows: [id.row], keys: [], at });
  const [used] = approvals;
  if (used === undefined || at >= (used.useBy ?? 0)) return "the time to use its approval is over";
  await deciders.refresh();
  return quorumNow(used, deciders, policy, at).isMet ? undefined : "a vote for its approval does not count any more";
}

/** Answers a call as another call of the same batch, which has the same body. */
export function answerAs(check: DecidedCheck, digest: string): RepeatedAnswer {
  return { body: answerBody(check, digest, true) };
}
