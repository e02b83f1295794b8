import type { FastifyReply } from "fastify";
import type { InForce } from "../../ledger/mod.ts";
import { bad, good, refuse, type Mode, type Refusal, type Result } from "../../wire/mod.ts";
import type { Gate } from "../core/gate.ts";
import { openFrom, type OpenGate, type GateSource, type SharedParts } from "./gate-source.ts";

export interface TenantsOptions extends SharedParts {
  /** How many may be open at once: each holds what its ledger's engine needs. */
  readonly openMax: number;
  /** A tenant that nothing asked of for this long is closed, in milliseconds. */
  readonly idleMs: number;
}

/** One that could not be opened is not tried again before this: opening reads files. */
const retryMs = 5000;

/** A tenant that is open: who waits for an answer keeps it so. */
interface Open {
  readonly source: OpenGate;
  readonly waiting: Set<FastifyReply>;
  /** How many works of an operator are under way. */
  works: number;
  /** By the monotonic clock, in milliseconds. */
  askedAt: number;
}

/**
 * The gates of all tenants, each with a ledger of its own. One is opened when it is first asked and closed when it has
 * been idle: a thousand of them cost what the few do that are asked. What is wrong with one is its own matter: its
 * callers are refused, and its fault ends it alone; the next check opens it again, as a restart would.
 */
export class Tenants {
  readonly #options: TenantsOptions;
  #sources: ReadonlyMap<string, GateSource>;
  readonly #open = new Map<string, Open>();
  readonly #opening = new Map<string, Promise<Result<Open, Refusal>>>();
  /** Those whose files are being let go. */
  readonly #closing = new Map<string, Promise<void>>();
  /** What was in force when a tenant was closed: it comes back as it was. */
  readonly #earlier = new Map<string, InForce>();
  /** Those that could not be opened, until when nothing is tried. */
  readonly #failed = new Map<string, { readonly until: number; readonly refusal: Refusal }>();
  readonly #sweep: NodeJS.Timeout;

  constructor(sources: readonly GateSource[], options: TenantsOptions) {
    this.#options = options;
    this.#sources = byTenant(sources);
    this.#sweep = setInterval(() => this.#closeIdle(), Math.max(100, options.idleMs / 4)).unref();
  }

  has(id: string): boolean {
    return this.#sources.has(id);
  }

  /** Those that are open now. */
  get open(): ReadonlyMap<string, { readonly source: OpenGate }> {
    return this.#open;
  }

  /**
   * The tenant's gate, for one request: it stays open until its answer is out.
   *
   * @returns a refusal where it cannot be opened, or too many others are busy
   */
  async gateFor(id: string, reply: FastifyReply): Promise<Result<Gate, Refusal>> {
    const found = this.#open.get(id);
    const opened = found === undefined ? await this.#opened(id) : good(found);
    if (!opened.ok) return opened;
    const { waiting, source } = opened.value;
    opened.value.askedAt = performance.now();
    // Whose connection ended while the tenant was opened hears of no end any more, and would keep it open for ever.
    if (!reply.raw.destroyed) {
      waiting.add(reply);
      reply.raw.once("close", () => waiting.delete(reply));
    }
    return good(source.gate);
  }

  /**
   * Does an operator's work on the tenant's gate, such as a reload, which stays open meanwhile.
   *
   * @param mode the one that the work puts in force: a tenant's own weaker mode is then no reason to refuse it
   */
  async workOn<Value>(
    id: string,
    work: (gate: Gate) => Promise<Result<Value, Refusal>>,
    mode?: Mode,
  ): Promise<Result<Value, Refusal>> {
    this.#failed.delete(id);
    const opened = await this.#opened(id, mode !== undefined);
    if (!opened.ok) return opened;
    const open = opened.value;
    open.works += 1;
    try {
      return await work(open.source.gate);
    } finally {
      open.works -= 1;
      open.askedAt = performance.now();
    }
  }

  sourceOf(id: string): GateSource | undefined {
    return this.#sources.get(id);
  }

  /** Takes a file of tenants as it is now; those that are no longer in it are closed. */
  async redefine(sources: readonly GateSource[]): Promise<void> {
    this.#sources = byTenant(sources);
    this.#failed.clear();
    const gone = [...this.#open.keys()].filter((id) => !this.#sources.has(id));
    await Promise.all(gone.map((id) => this.#close(id)));
  }

  /** Those that were open at some time: what is in force on them is more than what a file says. */
  get begun(): readonly string[] {
    return [...new Set([...this.#open.keys(), ...this.#earlier.keys()])].filter((id) => this.#sources.has(id));
  }

  /** Answers what waits, then lets everything go. */
  async close(): Promise<void> {
    clearInterval(this.#sweep);
    await Promise.all(this.#opening.values());
    await Promise.all([...this.#open.keys()].map((id) => this.#close(id)));
  }

  #opened(id: string, keepsStricterMode = false): Promise<Result<Open, Refusal>> {
    const open = this.#open.get(id);
    if (open !== undefined) return Promise.resolve(good(open));
    const failed = this.#failed.get(id);
    if (failed !== undefined && failed.until > performance.now()) return Promise.resolve(bad(failed.refusal));
    const known = this.#opening.get(id);
    if (known !== undefined) return known;
    const opening = this.#begin(id, keepsStricterMode).finally(() => this.#opening.delete(id));
    this.#opening.set(id, opening);
    return opening;
  }

  async #begin(id: string, keepsStricterMode: boolean): Promise<Result<Open, Refusal>> {
    const source = this.#sources.get(id);
    if (source === undefined) return bad(noSuchTenant);
    if (!(await this.#makeRoom())) {
      return bad(refuse("tenant-unavailable", "too many tenants are busy at once; ask again in a moment"));
    }
    try {
      await this.#closing.get(id);
      const opened = await openFrom({ ...source, keepsStricterMode }, this.#options, this.#earlier.get(id));
      await opened.begin().catch(async (error: unknown) => {
        await letGo(opened);
        throw error;
      });
      if (!this.#sources.has(id)) {
        await letGo(opened);
        return bad(noSuchTenant);
      }
      const open: Open = { source: opened, waiting: new Set(), works: 0, askedAt: performance.now() };
      this.#open.set(id, open);
      opened.gate.failed.catch((error: unknown) => this.#fault(id, open, error));
      return good(open);
    } catch (error) {
      return bad(this.#unavailable(id, error));
    }
  }

  /** Room for one more: the one that was asked longest ago gives way, if nobody waits for it. */
  async #makeRoom(): Promise<boolean> {
    // The one that asks is not among those that are being opened yet.
    if (this.#open.size + this.#opening.size < this.#options.openMax) return true;
    const [oldest] = [...this.#open]
      .filter(([, open]) => isIdle(open))
      .toSorted(([, a], [, b]) => a.askedAt - b.askedAt);
    if (oldest === undefined) return false;
    await this.#close(oldest[0]);
    return true;
  }

  #closeIdle(): void {
    const before = performance.now() - this.#options.idleMs;
    for (const [id, open] of this.#open) {
      if (isIdle(open) && open.askedAt < before) {
        this.#close(id).catch((error: unknown) => this.#unavailable(id, error));
      }
    }
  }

  /** From here on it is asked anew; what was asked before is answered first. */
  #close(id: string): Promise<void> {
    const open = this.#open.get(id);
    if (open === undefined) return Promise.resolve();
    this.#open.delete(id);
    this.#remember(id, open);
    const closing = open.source.gate
      .drain()
      .then(() => letGo(open.source))
      .finally(() => this.#closing.delete(id));
    this.#closing.set(id, closing);
    return closing;
  }

  #remember(id: string, { source }: Open): void {
    const { contract, mode, engine } = source.gate.policy;
    this.#earlier.set(id, { contract, mode, engine });
  }

  /** As the end of a process would: nothing more is answered, what waits is cut off. The next check begins anew. */
  #fault(id: string, open: Open, error: unknown): void {
    this.#options.log.fatal(
      { tenant: id, err: error },
      "a fault of one tenant; it answers nothing more until it is opened anew",
    );
    if (this.#open.get(id) === open) this.#open.delete(id);
    this.#remember(id, open);
    this.#unavailable(id, error);
    for (const reply of open.waiting) reply.raw.destroy();
    open.source.gate.anchors?.close().catch(() => undefined);
    open.source.ledger.close().catch(() => undefined);
  }

  #unavailable(id: string, error: unknown): Refusal {
    const { message } = error as Error;
    this.#options.log.error({ tenant: id }, `the tenant ${id} cannot be served: ${message}`);
    const refusal = refuse("tenant-unavailable", "this tenant cannot be served now; its operator finds why in the log");
    this.#failed.set(id, { until: performance.now() + retryMs, refusal });
    return refusal;
  }
}

export const noSuchTenant: Refusal = refuse("not-found", "there is no such tenant");

async function letGo({ gate, ledger }: OpenGate): Promise<void> {
  await gate.anchors?.close();
  await ledger.close();
}

function isIdle({ source, waiting, works }: Open): boolean {
  return waiting.size === 0 && works === 0 && source.gate.isIdle;
}

function byTenant(sources: readonly GateSource[]): ReadonlyMap<string, GateSource> {
  return new Map(sources.map((source) => [source.tenant ?? "", source]));
}
