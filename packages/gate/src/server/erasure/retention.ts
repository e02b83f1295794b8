import type { Logger } from "pino";
import type { Rows } from "../../ledger/mod.ts";
import { eraseAct, erasableParts, parseLeaf, readErasure } from "../../../../core/src/record/entry/mod.ts";
import type { Refusal, Result } from "../../../../core/src/wire/mod.ts";
import { retentionName } from "../policy/reserved-names.ts";
import type { ErasureResult, Eraser } from "./eraser.ts";

export interface RetentionOptions {
  readonly eraser: Pick<Eraser, "clear" | "eraseOlder">;
  readonly ledger: { readonly rows: Pick<Rows, "find"> };
  /** Evidence of older checks is erased. */
  readonly days: number;
  /** Null is the root. */
  readonly tenant: string | null;
  readonly log: Pick<Logger, "error" | "info" | "warn">;
  /** Milliseconds since the epoch; replaced in tests. */
  readonly now?: () => number;
}

const dayMs = 86_400_000;
const everyMs = 3_600_000;

/**
 * Erases evidence by its age, at a start and each hour, in rows of its own. Pages of the file's indexes may keep older
 * copies. Rewriting the indexes delays checks, so this is done at most once a day.
 */
export class Retention {
  readonly #options: RetentionOptions;
  readonly #now: () => number;
  #rewrittenAt = Number.NEGATIVE_INFINITY;
  /** Something was erased since the indexes were last rewritten. */
  #isDue = false;
  #timer: NodeJS.Timeout | undefined;
  #isEnding = false;
  #running: Promise<unknown> = Promise.resolve();

  constructor(options: RetentionOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  /** Starts the work in the background. */
  start(): void {
    this.#tick();
    this.#timer = setInterval(() => this.#tick(), everyMs).unref();
  }

  /** Waits for the slice that is being erased. Call this before the ledger is closed. */
  async stop(): Promise<void> {
    this.#isEnding = true;
    clearInterval(this.#timer);
    await this.#running;
  }

  #tick(): void {
    this.#running = this.#running.then(() => this.#attempt());
  }

  async #attempt(): Promise<void> {
    if (this.#isEnding) return;
    const { log, tenant, days } = this.#options;
    try {
      const erased = await this.run();
      if (!erased.ok) return log.warn({ tenant }, `no evidence was erased by its age: ${erased.problem.detail}`);
      const { rows, parts, remains } = erased.value;
      if (rows > 0) log.info({ tenant, rows, parts, days, remains }, "evidence was erased by its age");
    } catch (error) {
      // The next check reports a fault of the ledger. The next hour tries again.
      if (!this.#isEnding) log.error({ tenant, err: error }, "evidence could not be erased by its age");
    }
  }

  /** Erases all evidence that is too old now. */
  async run(): Promise<Result<ErasureResult, Refusal>> {
    const { eraser, days } = this.#options;
    const now = this.#now();
    const before = now - days * dayMs;
    const rewrites = now - this.#rewrittenAt >= dayMs;
    const shown = new Date(before).toISOString();
    const reason = `Svc: SVC_RETENTION_DAYS is ${days}, so evidence of checks before ${shown} is erased`;
    const work = { from: (await this.#findLastErased()) + 1, before, parts: erasableParts, reason, by: retentionName };
    const erased = await eraser.eraseOlder(work, rewrites);
    if (!erased.ok) return erased;
    const { rows } = erased.value;
    if (rows === 0 && rewrites && this.#isDue) await eraser.clear(true);
    if (rewrites && (rows > 0 || this.#isDue)) this.#rewrittenAt = now;
    this.#isDue = !rewrites && (this.#isDue || rows > 0);
    return erased;
  }

  /** The last row that was erased by age. All rows before it are done. */
  async #findLastErased(): Promise<number> {
    const newest = { before: Number.MAX_SAFE_INTEGER, limit: Number.MAX_SAFE_INTEGER, verdict: "CHANGE" };
    for await (const rows of this.#options.ledger.rows.find(newest)) {
      for (const { leaf, evidence } of rows) {
        const { act, key, seq = 0 } = parseLeaf(leaf) ?? {};
        if (act !== eraseAct || key !== retentionName) continue;
        return readErasure(evidence, seq)?.rows.at(-1)?.[1] ?? 0;
      }
    }
    return 0;
  }
}
