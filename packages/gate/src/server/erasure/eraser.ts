import { setTimeout as wait } from "node:timers/promises";
import type { Ledger, Rows, ScrubResult } from "../../ledger/mod.ts";
import {
  covers,
  eraseAct,
  erasureBody,
  missingParts,
  parseLeaf,
  presentParts,
  rangesMax,
  rangesOf,
  withWhatQuotes,
  type Durable,
  type ErasablePart,
  type PartName,
  type Receipt,
  type RowRange,
  type StoredRow,
  readCutInput,
} from "../../../../core/src/record/entry/mod.ts";
import { bad, good, refuse, type Refusal, type Result } from "../../../../core/src/wire/mod.ts";
import { actBody, type ApprovalAct } from "../../../../core/src/approvals/mod.ts";
import type { AdminEvent, AdminEvents } from "../policy/admin-event.ts";
import type { EraseRequest, EraseTarget } from "./request.ts";
import { hasValues, type Where } from "./where.ts";

export interface ErasureResult {
  /** The number of named checks that were examined, erased before or not. */
  readonly matched: number;
  /** Named parts that some of these checks never had: no contract listed the member, or it was not sent. */
  readonly not_present: readonly NotPresent[];
  /** The number of rows that lost a part now. */
  readonly rows: number;
  /** The number of parts that were erased now. */
  readonly parts: number;
  /** The number of named rows that record administrative events, which are never erased. */
  readonly acts: number;
  /** The rows that record the erasure. */
  readonly receipts: readonly Receipt[];
  /** Rows are left: send the request again. */
  readonly more: boolean;
  /**
   * A sentence about files that may still have the erased data and that the gate cannot clear; null if there are none.
   */
  readonly remains: string | null;
  /** Only with `where`: the number of checks that were not searched, because their input was not kept whole. */
  readonly unsearched?: number;
  /** Only for a preview, which erases nothing. */
  readonly preview?: ErasurePreview;
}

/** What a preview finds: the parts and the receipts that an erasure would change. */
export interface ErasurePreview {
  /** The number of receipts for each part, ordered by name. */
  readonly parts: readonly { readonly part: PartName; readonly count: number }[];
  /** The receipts as ranges; the list is cut at the greatest number of ranges that one answer can have. */
  readonly rows: readonly RowRange[];
}

/** A part that some receipts never had. */
export interface NotPresent {
  readonly part: ErasablePart;
  /** The number of receipts. `rows` has as many of their ranges as one answer can have. */
  readonly count: number;
  readonly rows: readonly RowRange[];
}

export interface EraserOptions {
  readonly ledger: Pick<Ledger, "head" | "rows">;
  readonly appendAdminEvent: AdminEvents["appendAdminEvent"];
  /** Clears the engine's files; see `Ledger.scrub`. */
  readonly scrub: Ledger["scrub"];
}

/** The most rows, and characters of evidence, in one transaction. No check is decided during it. */
const slice = { rows: 500, characters: 4_000_000 } as const;
/** The most rows that one request erases. */
const rowsMax = 20_000;
/** How often, and at which interval, the gate tries to clear files that a reader has open. */
const patience = { times: 10, ms: 200 } as const;
/** The interval of later attempts. */
const retryMs = 60_000;

interface ErasureTask {
  readonly candidates: AsyncIterable<readonly StoredRow[]>;
  /** Only rows that have one of these parts are erased. Their other erased parts do not select a row. */
  readonly wanted: readonly ErasablePart[];
  /** Only rows of this key are erased. */
  readonly key?: string | undefined;
  /** Makes the reason for the row that records a slice. */
  readonly reason: (slice: Pick<ErasureSlice, "parts" | "seqs">) => string;
  readonly by: string;
  readonly rowsMax: number;
}

/**
 * Erases parts of receipts, in slices between batches of checks. Each slice becomes durable together with the row that
 * records it. Then the eraser clears the store's files of old copies.
 */
export class Eraser {
  readonly #options: EraserOptions;
  #retry: NodeJS.Timeout | undefined;

  constructor(options: EraserOptions) {
    this.#options = options;
  }

  /**
   * @returns a refusal if a named row does not exist, or if the ledger takes no row now. Earlier slices stay erased.
   */
  async erase(
    { target, parts, reason, preview = false }: EraseRequest,
    by: string,
  ): Promise<Result<ErasureResult, Refusal>> {
    const last = this.#options.ledger.head.seq;
    const beyond = "rows" in target ? target.rows.find(([, to]) => to > last) : undefined;
    if (beyond !== undefined)
      return bad(refuse("invalid-request", `row ${beyond[1]} does not exist: the ledger ends at row ${last}`));
    const skipped: UnsearchedChecks = { count: 0 };
    const work = {
      candidates: this.#find(target, skipped),
      wanted: parts,
      key: "session" in target ? target.key : undefined,
      reason: ({ parts: gone, seqs }: Pick<ErasureSlice, "parts" | "seqs">) =>
        `Svc: ${by} erased ${gone.join(", ")} of ${seqs.length} receipt${seqs.length === 1 ? "" : "s"}: ${reason}`,
      by,
      rowsMax,
    };
    const erased = preview ? good(await previewOf(work)) : await this.#run(work, true);
    return erased.ok && "wheres" in target ? good({ ...erased.value, unsearched: skipped.count }) : erased;
  }

  /**
   * Erases all parts of old checks, from a row on.
   *
   * @param rewrite also rewrites the indexes of the ledger's file, which may delay checks
   */
  eraseOlder(
    { from, before, parts, reason, by }: OlderThan,
    rewrite: boolean,
  ): Promise<Result<ErasureResult, Refusal>> {
    const candidates = olderThan(this.#options.ledger.rows.scan(from), before);
    const work = { candidates, wanted: parts, reason: () => reason, by, rowsMax: Number.POSITIVE_INFINITY };
    return this.#run(work, rewrite);
  }

  /** Cancels later attempts to clear files. The next start clears them. */
  close(): void {
    clearTimeout(this.#retry);
  }

  async #run(work: ErasureTask, rewrite: boolean): Promise<Result<ErasureResult, Refusal>> {
    const found = { matched: 0, rows: 0, parts: 0, acts: 0 };
    const notPresent: NotPresentRows = new Map();
    const receipts: Receipt[] = [];
    let more = false;
    for await (const one of slicesOf(work, notPresent)) {
      const { matched, seqs, count, acts } = one;
      found.matched += matched;
      found.acts += acts;
      more = seqs.length > 0 && found.rows >= work.rowsMax;
      if (more) break;
      if (seqs.length === 0) continue;
      const receipt = await this.#eraseSlice(one, work);
      if (!receipt.ok) return receipt;
      receipts.push(receipt.value);
      found.rows += seqs.length;
      found.parts += count;
    }
    const remains = receipts.length === 0 ? null : await this.clear(rewrite && !more);
    return good({ ...found, not_present: [...notPresent].map(notPresentOf), receipts, more, remains });
  }

  #eraseSlice({ parts, seqs }: ErasureSlice, { reason, by }: ErasureTask): Promise<Result<Durable<Receipt>, Refusal>> {
    const erases = { parts, rows: rangesOf(seqs.toSorted((a, b) => a - b)) };
    const act = { by, act: eraseAct, body: erasureBody(erases), reason: reason({ parts, seqs }), erases };
    return this.#options.appendAdminEvent(async (transaction) => {
      const erased = new Set(seqs);
      const open = (await transaction.openApprovals()).map(({ seq }) => seq).filter((seq) => erased.has(seq));
      return good({ ...act, first: open.length === 0 ? [] : [makeCancelEvent(open, by)] });
    });
  }

  #find(target: EraseTarget, skipped: UnsearchedChecks): AsyncIterable<readonly StoredRow[]> {
    const { rows } = this.#options.ledger;
    const all = { before: Number.MAX_SAFE_INTEGER, limit: Number.MAX_SAFE_INTEGER };
    if ("before" in target) return olderThan(rows.scan(1), target.before);
    if ("wheres" in target) return withValues(rows.scan(1), target.wheres, skipped);
    if ("session" in target) return rows.find({ ...all, session: target.session });
    return rowsIn(rows, target.rows);
  }

  /**
   * Clears the store's files of old copies after the tables were changed.
   *
   * @returns a sentence about files that cannot be cleared now; null if all are clear
   */
  async clear(rewrite: boolean): Promise<string | null> {
    clearTimeout(this.#retry);
    for (let time = 1; ; time += 1) {
      const left = await this.#options.scrub(rewrite);
      if (left !== "busy" || time === patience.times) {
        if (left === "busy") this.#retryLater();
        return sentences[left];
      }
      await wait(patience.ms);
    }
  }

  #retryLater(): void {
    const again = (): void => void this.clear(false).catch(() => undefined); // If the disk has failed, the next check reports it.
    this.#retry = setTimeout(again, retryMs).unref();
  }
}

export interface OlderThan {
  /** The first row to look at. */
  readonly from: number;
  /** Milliseconds since the epoch. */
  readonly before: number;
  readonly parts: readonly ErasablePart[];
  readonly reason: string;
  readonly by: string;
}

const sentences: Readonly<Record<ScrubResult, string | null>> = {
  clean: null,
  later:
    "unused parts of index pages may still have session ids and tool names: the gate rewrites them with the next erasure by " +
    "an operator, within a day of an erasure by age, or at the next start",
  busy:
    "the write-ahead log still has the erased data, because another program is reading the ledger's file: the gate removes " +
    "it when that program has ended, at the latest at the next start",
  vacuum:
    "PostgreSQL keeps the old rows until VACUUM (FULL, ANALYZE) svc_gate.receipts and then VACUUM FULL pg_statistic have " +
    "run. Its write-ahead log keeps them until the segments are removed. Standbys, archives and backups have copies too",
};

/** An approval ends with a row of its own, so that everyone who waits for it hears of the end. */
function makeCancelEvent(rows: readonly number[], by: string): AdminEvent {
  const cancel: ApprovalAct = { act: "approval.cancel", rows: rows.toSorted((a, b) => a - b), why: "erased" };
  const what = rows.length === 1 ? "an approval" : `${rows.length} approvals`;
  return { by, act: cancel.act, body: actBody(cancel), reason: `Svc: ${what} ended, because the call is erased` };
}

async function* olderThan(
  slices: AsyncIterable<readonly StoredRow[]>,
  before: number,
): AsyncGenerator<readonly StoredRow[]> {
  for await (const rows of slices) {
    const older = rows.filter(({ leaf }) => (parseLeaf(leaf)?.at ?? before) < before);
    yield older;
    if (older.length < rows.length) return;
  }
}

/** The number of checks whose values are unknown. */
interface UnsearchedChecks {
  count: number;
}

async function* withValues(
  slices: AsyncIterable<readonly StoredRow[]>,
  wheres: readonly Where[],
  skipped: UnsearchedChecks,
): AsyncGenerator<readonly StoredRow[]> {
  const needsInput = wheres.some(({ part }) => part === "input");
  for await (const rows of slices) {
    yield rows.filter((row) => {
      const isCut = needsInput && readCutInput(row.evidence) !== undefined;
      if (isCut) skipped.count += 1;
      return !isCut && hasValues(row, wheres);
    });
  }
}

async function previewOf(work: ErasureTask): Promise<ErasureResult> {
  const notPresent: NotPresentRows = new Map();
  const counts = new Map<PartName, number>();
  const seqs: number[] = [];
  let [matched, parts] = [0, 0];
  for await (const one of slicesOf(work, notPresent)) {
    matched += one.matched;
    parts += one.count;
    seqs.push(...one.seqs);
    for (const name of one.gone) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const sorted = [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const preview = {
    parts: sorted.map(([part, count]) => ({ part, count })),
    rows: rangesOf(seqs.toSorted((a, b) => a - b)).slice(0, rangesMax),
  };
  const nothing = { acts: 0, receipts: [], more: false, remains: null };
  return { matched, not_present: [...notPresent].map(notPresentOf), rows: seqs.length, parts, ...nothing, preview };
}

async function* rowsIn(
  rows: Pick<Rows, "find">,
  ranges: Extract<EraseTarget, { readonly rows: unknown }>["rows"],
): AsyncGenerator<readonly StoredRow[]> {
  for (const [from, to] of ranges) yield* rows.find({ before: to + 1, limit: to - from + 1 });
}

function notPresentOf([part, seqs]: readonly [ErasablePart, readonly number[]]): NotPresent {
  const rows = rangesOf(seqs.toSorted((a, b) => a - b));
  return { part, count: seqs.length, rows: rows.slice(0, rangesMax) };
}

/** Requested parts, each with the rows that never had it. */
type NotPresentRows = Map<ErasablePart, number[]>;

interface ErasureSlice {
  readonly matched: number;
  readonly seqs: readonly number[];
  /**
   * The requested parts that at least one row has, and the parts that go with them. Parts that no row has are left out.
   */
  readonly parts: readonly ErasablePart[];
  /** The parts to erase in all rows. A part occurs once for each row that has it. */
  readonly gone: readonly PartName[];
  readonly count: number;
  readonly acts: number;
}

/** The rows that have something to erase, few enough for one transaction. */
async function* slicesOf(
  { candidates, wanted, key }: ErasureTask,
  notPresent: NotPresentRows,
): AsyncGenerator<ErasureSlice> {
  let batch = new EraseBatch(wanted, notPresent);
  for await (const rows of candidates) {
    for (const { seq, leaf, evidence } of rows) {
      const { kind, key: by } = parseLeaf(leaf) ?? {};
      if (kind === "change") batch.acts += 1;
      if (kind === undefined || kind === "change" || (key !== undefined && by !== key)) continue;
      batch.add(seq, evidence, kind === "check");
      if (!batch.isFull) continue;
      yield batch.slice();
      batch = new EraseBatch(wanted, notPresent);
    }
  }
  yield batch.slice();
}

/** Collects the rows of one transaction. */
class EraseBatch {
  readonly #wanted: readonly ErasablePart[];
  readonly #met = new Set<ErasablePart>();
  readonly #seqs: number[] = [];
  readonly #present: (readonly PartName[])[] = [];
  readonly #notPresent: NotPresentRows;
  #matched = 0;
  #characters = 0;
  acts = 0;

  constructor(wanted: readonly ErasablePart[], notPresent: NotPresentRows) {
    this.#wanted = wanted;
    this.#notPresent = notPresent;
  }

  get isFull(): boolean {
    return this.#seqs.length >= slice.rows || this.#characters >= slice.characters;
  }

  /** @param isCheck false for a result, which cannot lack a member */
  add(seq: number, evidence: string, isCheck: boolean): void {
    this.#matched += 1;
    const present = presentParts(evidence);
    const met = this.#wanted.filter((part) => present.some((name) => covers([part], name)));
    if (isCheck && met.length < this.#wanted.length) this.#note(seq, missingParts(evidence), met);
    if (met.length === 0) return;
    for (const part of met) this.#met.add(part);
    this.#present.push(present);
    this.#characters += evidence.length;
    this.#seqs.push(seq);
  }

  #note(seq: number, missing: readonly PartName[], met: readonly ErasablePart[]): void {
    for (const part of this.#wanted) {
      if (met.includes(part) || missing.some((name) => covers([part], name))) continue;
      const rows = this.#notPresent.get(part) ?? [];
      rows.push(seq);
      this.#notPresent.set(part, rows);
    }
  }

  slice(): ErasureSlice {
    const parts = withWhatQuotes([...this.#met]);
    const gone = this.#present.flat().filter((name) => covers(parts, name));
    return { matched: this.#matched, seqs: this.#seqs, parts, gone, count: gone.length, acts: this.acts };
  }
}
