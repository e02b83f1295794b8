import type { PolicySet } from "../../../../core/src/contract/mod.ts";
import type { Rows } from "../../ledger/mod.ts";
import type { Mode, Refusal, Result } from "../../../../core/src/wire/mod.ts";

/** Functions that the command line gives to the service. */
export interface ServeHooks {
  /** Runs the tests of contracts before a reload. */
  readonly runTests?: ContractTests;
  /** Shows a person at the gate's terminal the code for the first sign-in to the console; by default in the log. */
  readonly showCode?: (sentence: string) => void;
  /** Answers POST /explain. */
  readonly explain?: ExplainCall;
  /** Answers GET /report. */
  readonly report?: ReportRows;
}

/** Runs the tests of contracts before the contracts are put in force; returns the failures, or undefined. */
export type ContractTests = (path: string) => Promise<string | undefined>;

/**
 * Explains how a verdict is reached; returns the JSON of the answer. It records and counts nothing.
 *
 * @param rest called while it pauses, with the milliseconds that it has worked since the last pause: checks go first
 */
export type ExplainCall = (
  request: ExplanationRequest,
  history: GateHistory,
  rest: (workedMs: number) => Promise<void>,
) => Promise<Result<string, Refusal>>;

/** Lets others have their turn; undefined if that is not due. */
export type NextTurn = () => Promise<void> | undefined;

/** @returns the JSON of the report. It calls `next` after each row */
export type ReportRows = (request: ReportRequest, history: GateHistory, next: NextTurn) => Promise<string>;

/** A gate's rows, through the last one when they were requested. */
export interface GateHistory extends Pick<Rows, "contractText" | "firstSince" | "scan"> {
  readonly rows: number;
  /** The contract with this digest if it is compiled already. */
  findCompiled(digest: string): PolicySet | undefined;
  /** The digest of a counter's key in effects. */
  readonly keyDigest: (key: string) => string;
}

export interface ExplanationRequest {
  /** The body of a POST /check that was read strictly, or the number of a receipt. */
  readonly of: string | number;
  /** The contract that decides: the one that the receipt names, the one in force, or a pasted one. */
  readonly under: "in-force" | "recorded" | { readonly pasted: string };
  /** Values of counters by name, as decimals. */
  readonly counters: ReadonlyMap<string, string>;
  /** The name of the key that asks, which a typed call gets. */
  readonly key: string;
  readonly inForce: { readonly text: string; readonly mode: Mode };
}

export interface ReportRequest {
  /** Milliseconds since the epoch: rows of this time and later. */
  readonly since: number | undefined;
  /** Milliseconds since the epoch: rows before this time. */
  readonly until: number | undefined;
  /** The last so many rows of these. */
  readonly last: number;
}
