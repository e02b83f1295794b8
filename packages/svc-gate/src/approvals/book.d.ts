import { type Approval } from "./approval.ts";
/** How many approvals are open. */
export interface OpenCounts {
  readonly ledger: number;
  readonly byKey: ReadonlyMap<string, number>;
  /** By `sessionId` of the key and the session. */
  readonly bySession: ReadonlyMap<string, number>;
}
export declare const nothingOpen: OpenCounts;
/** A name for a session, which is unique over the keys. */
export declare function sessionName(key: string, session: string | null): string;
/** The approvals that a batch of calls may meet, as its earlier calls leave them. */
export declare class ApprovalBook {
  #private;
  constructor(found?: readonly Approval[], counts?: OpenCounts);
  get isEmpty(): boolean;
  get counts(): OpenCounts;
  at(row: number): Approval | undefined;
  /** The approval of calls with this digest that is open at a moment. There is at most one for each session. */
  open(digest: string, at: number): readonly Approval[];
  /** The approvals of a key that a person denied. */
  denied(key: string): readonly Approval[];
  put(approval: Approval): void;
  /** The approvals that the batch changed. */
  get changed(): readonly Approval[];
}
