import { type Approval, type Asking, type OwnAmount, type Status } from "./approval.ts";
import { type ApprovalBook } from "./book.ts";
import type { Quorum } from "./quorum.ts";
/** What became of an ESCALATE, or of an approval that a call named. */
export type How = "opened" | "attached" | "used" | "denied" | "capped" | "closed";
/** The part of a row that says what was asked. */
export interface Asked {
  readonly how: How;
  /** True if the call named an approval that is unknown, or is bound to another call. */
  readonly mismatch?: true;
}
/** A call that the contract has judged, and that a person may have to decide. */
export interface Ask {
  readonly at: number;
  readonly key: string;
  readonly session: string | null;
  readonly tool: string;
  /** The rule that decided. */
  readonly rule: string;
  /** The answer that the contract and the mode give. */
  readonly answered: "ALLOW" | "BLOCK" | "ESCALATE";
  /** The approval that the call names. */
  readonly named: string | undefined;
  readonly binding: string;
  readonly attach: string;
  /** What an approval would be asked for now; undefined unless the answer is ESCALATE. */
  readonly asking: Asking | undefined;
}
export interface AskLimits {
  readonly key: number;
  readonly session: number;
  readonly ledger: number;
}
/** How a call is answered, and why. */
export type Judgement =
  | {
      readonly how: undefined;
      readonly mismatch: boolean;
    }
  | {
      readonly how: "opened";
      readonly mismatch: boolean;
      readonly supersedes: Approval | undefined;
    }
  | {
      readonly how: "attached";
      readonly mismatch: boolean;
      readonly approval: Approval;
      readonly isSame: boolean;
    }
  | {
      readonly how: "used";
      readonly mismatch: boolean;
      readonly approval: Approval;
      readonly needed: boolean;
    }
  | {
      readonly how: "denied";
      readonly mismatch: boolean;
      readonly approval: Approval;
    }
  | {
      readonly how: "closed";
      readonly mismatch: boolean;
      readonly approval: Approval;
      readonly status: Status;
    }
  | {
      readonly how: "capped";
      readonly mismatch: boolean;
      readonly waiting: number;
    };
/**
 * Judges what an approval does for a call, after the contract has judged the call. Only an explicit act of a person, or an
 * approval that is closed, makes an answer stricter than the contract. Only an approval makes it more lenient.
 *
 * @param quorumNow counts an approval's votes with the keys and groups of now
 */
export declare function judgeAsk(
  ask: Ask,
  book: ApprovalBook,
  limits: AskLimits,
  quorumNow: (approval: Approval) => Quorum,
): Judgement;
/** The value of a counter without the amounts that the approval's own calls added in its window. */
export declare function withoutOwn(
  value: string,
  own: readonly OwnAmount[],
  {
    counter,
    key,
    after,
  }: {
    readonly counter: string;
    readonly key: string;
    readonly after: number;
  },
): string;
