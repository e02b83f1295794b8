import type { Logger } from "pino";
import type { AnchoredCheck } from "./anchors.ts";
import type { Broken } from "../ledger/mod.ts";
import { bad, good, refuse, type Refusal, type Result } from "../wire/mod.ts";
import type { Gate } from "./gate.ts";

/** What came of deciding every check of a ledger again, and of folding its counters again. */
export interface DeepFound {
  /** The last row that was looked at. */
  readonly rows: number;
  /** Checks that came to what their receipts say: verdict, rule, reason, answer, trace, and what they moved. */
  readonly replayed: number;
  /** Checks that nothing can be said of, such as those of which a part was erased. */
  readonly notReplayable: number;
  readonly firstNotReplayable: { readonly seq: number; readonly why: string } | undefined;
  readonly differs: number;
  readonly firstDiffering:
    | { readonly seq: number; readonly what: string; readonly recorded: string; readonly again: string }
    | undefined;
  readonly counters: {
    readonly kept: number;
    /** Events of rows older than their counter, which no receipt commits to, found again. */
    readonly events: number;
    /** Counters that stand on rows which cannot be counted again, or that no receipt's contract names yet. */
    readonly unsure: number;
    readonly firstWrong: WrongCounter | undefined;
  };
  /** What the storage engine finds wrong in its own file, such as an index that lacks a row. */
  readonly structure: Broken | undefined;
}

export interface WrongCounter {
  readonly counter: string;
  readonly seq: number;
  readonly problem: string;
  readonly expected: string;
  readonly found: string;
}

/** Does all that was looked at agree? */
export function isSound({ differs, counters, structure }: DeepFound): boolean {
  return differs === 0 && counters.firstWrong === undefined && structure === undefined;
}

/** As GET /ledger/verify shows it. */
export function shownDeep({ rows, replayed, differs, counters, structure, ...firsts }: DeepFound): object {
  const { kept, events, unsure, firstWrong } = counters;
  return {
    rows,
    replayed,
    not_replayable: firsts.notReplayable,
    first_not_replayable: firsts.firstNotReplayable ?? null,
    differs,
    first_differing: firsts.firstDiffering ?? null,
    counters: { kept, events, unsure, first_wrong: firstWrong ?? null },
    structure: structure ?? null,
  };
}

/** Where a ledger lies: in a folder, or in a database under an id. */
export type LedgerPlace = { readonly folder: string } | { readonly url: string; readonly ledger: string };

export interface DeepProgress {
  /** Rows that were looked at, and how many there are. */
  readonly done: number;
  readonly rows: number;
}

/** Replays and folds a ledger beside everything else, in a thread of its own. */
export type DeepVerify = (
  place: LedgerPlace,
  told: (progress: DeepProgress) => void,
) => {
  /** Rejects when it was ended, or the ledger cannot be read. */
  readonly found: Promise<DeepFound>;
  readonly end: () => Promise<void>;
};

/** The walk over the chain, and what came of the replay: nothing of a chain that is broken, whose rows prove nothing. */
export interface DeepCheck extends AnchoredCheck {
  readonly deep: DeepFound | undefined;
}

export interface DeepOptions {
  readonly log: Logger;
  /** Undefined where the gate was started without. */
  readonly verify: DeepVerify | undefined;
  readonly placeOf: (tenant: string | null) => LedgerPlace;
}

interface Run {
  readonly tenant: string | null;
  readonly done: Promise<Result<DeepCheck, Refusal>>;
}

const progressMs = 5000;

/** Deep verifications, one at a time in this process: whoever asks for the one under way gets its result. */
export class DeepVerification {
  readonly #options: DeepOptions;
  #run: Run | undefined;
  #end: (() => Promise<void>) | undefined;
  #isStopping = false;

  constructor(options: DeepOptions) {
    this.#options = options;
  }

  /** Walks the chain of a tenant (null is the root), then decides and folds all of it again. */
  async verify(tenant: string | null, gate: Gate): Promise<Result<DeepCheck, Refusal>> {
    const { verify } = this.#options;
    if (verify === undefined) return bad(refuse("invalid-query", "this gate was started without deep verification"));
    if (this.#isStopping) return bad(stopping);
    if (this.#run !== undefined && this.#run.tenant !== tenant) return bad(busy);
    this.#run ??= { tenant, done: this.#begin(verify, tenant, gate).finally(() => (this.#run = undefined)) };
    return this.#run.done;
  }

  /** Ends the one under way; who waits for it is refused. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#end?.();
  }

  async #begin(verify: DeepVerify, tenant: string | null, gate: Gate): Promise<Result<DeepCheck, Refusal>> {
    const { log, placeOf } = this.#options;
    const began = performance.now();
    const check = await gate.verify();
    if (check.broken !== undefined) return good({ ...check, deep: undefined });
    if (this.#isStopping) return bad(stopping);
    let progress: DeepProgress = { done: 0, rows: check.rows };
    const seconds = (): number => Math.max(0.001, (performance.now() - began) / 1000);
    const rate = (): number => Math.round(progress.done / seconds());
    const telling = setInterval(
      () => log.info({ tenant, ...progress, rowsPerSecond: rate() }, "a deep verification is under way"),
      progressMs,
    ).unref();
    const { found, end } = verify(placeOf(tenant), (told) => (progress = told));
    this.#end = end;
    try {
      const deep = await found;
      const { differs, counters, ...counts } = deep;
      const told = { tenant, ...counts, differs, counters, seconds: Math.round(seconds()), rowsPerSecond: rate() };
      if (isSound(deep)) log.info(told, "a deep verification has ended: all that was decided again agrees");
      else log.error(told, "a deep verification has ended: the ledger does not agree with itself");
      return good({ ...check, deep });
    } catch (error) {
      if (this.#isStopping) return bad(stopping);
      throw error;
    } finally {
      clearInterval(telling);
      this.#end = undefined;
      await end();
    }
  }
}

const stopping = refuse("stopping", "the gate is stopping, and a deep verification ends with it");
const busy: Refusal = {
  ...refuse(
    "verification-busy",
    "another ledger of this gate is being verified deeply, one at a time; ask again later",
  ),
  retrySeconds: 10,
};
