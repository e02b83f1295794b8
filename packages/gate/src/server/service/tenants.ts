import type { ServerResponse } from "node:http";
import type { InForce } from "../../ledger/mod.ts";
import { bad, good, refuse, type Mode, type Refusal, type Result } from "../../../../core/src/wire/mod.ts";
import type { Gate } from "./gate.ts";
import type { Notifier } from "../notify/notifier.ts";
import { openFrom, type GateSource, type SharedParts } from "./gate-source.ts";

export interface TenantsOptions extends SharedParts {
  /** The most tenants that are open at once, besides those that an operator works on. Each uses resources of its ledger's engine. */
  readonly openMax: number;
  /** A tenant without requests for this time is closed, in milliseconds. */
  readonly idleMs: number;
  /** Opens the gate of a tenant; by default from its files, and puts them in force. */
  readonly open?: ((source: GateSource, earlier: InForce | undefined) => Promise<Gate>) | undefined;
}

/** A tenant that could not be opened is not tried again before this time, because opening reads files. */
const retryMs = 5000;

interface TenantOpenOptions {
  /** An operator's work, such as a stop: it does not wait until another tenant is idle. */
  readonly forWork?: boolean;
  readonly keepsStricterMode?: boolean;
}

/** An open tenant. Pending answers keep it open. */
interface OpenTenant {
  readonly gate: Gate;
  readonly waiting: Set<ServerResponse>;
  /** The number of running operator requests. */
  works: number;
  /** The time of the last request, by the monotonic clock in milliseconds. */
  usedAt: number;
}

/**
 * The gates of all tenants, each with its own ledger. A tenant is opened at its first request and closed when it is
 * idle, so idle tenants cost nothing. A fault of one tenant only affects that tenant: its callers are refused, and the
 * next check opens it again, like a restart.
 */
export class Tenants {
  readonly #options: TenantsOptions;
  #sources: ReadonlyMap<string, GateSource>;
  readonly #open = new Map<string, OpenTenant>();
  readonly #opening = new Map<string, Promise<Result<OpenTenant, Refusal>>>();
  /** Tenants whose files are being closed. */
  readonly #closing = new Map<string, Promise<void>>();
  /** The policy of each closed tenant, which is used again when it opens. */
  readonly #earlier = new Map<string, InForce>();
  /** Tenants that could not be opened, with the time of the next attempt. */
  readonly #failed = new Map<string, { readonly until: number; readonly refusal: Refusal }>();
  readonly #sweep: NodeJS.Timeout;
  #isClosed = false;

  constructor(sources: readonly GateSource[], options: TenantsOptions) {
    this.#options = options;
    this.#sources = byTenant(sources);
    this.#sweep = setInterval(() => this.#closeIdle(), Math.max(100, options.idleMs / 4)).unref();
  }

  has(id: string): boolean {
    return this.#sources.has(id);
  }

  /** The tenants that are open now. */
  get open(): ReadonlyMap<string, Pick<OpenTenant, "gate">> {
    return this.#open;
  }

  /**
   * Opens the tenant's gate for one request. It stays open until the answer is sent.
   *
   * @returns a refusal if it cannot be opened, or too many other tenants are busy
   */
  async gateFor(id: string, response: ServerResponse): Promise<Result<Gate, Refusal>> {
    const found = this.#open.get(id);
    const opened = found === undefined ? await this.#openTenant(id) : good(found);
    if (!opened.ok) return opened;
    const { waiting, gate } = opened.value;
    opened.value.usedAt = performance.now();
    // If the client disconnected while the tenant was opening, its `close` event has already fired. Then a registered
    // response would keep the tenant open forever.
    if (!response.destroyed) {
      waiting.add(response);
      response.once("close", () => waiting.delete(response));
    }
    return good(gate);
  }

  /**
   * Runs an operator's work, such as a reload, on the tenant's gate. The gate stays open meanwhile.
   *
   * @param mode the mode that the work puts in force; then a weaker mode in the tenant's own entry does not refuse it
   */
  async workOn<Value>(
    id: string,
    work: (gate: Gate) => Promise<Result<Value, Refusal>>,
    mode?: Mode,
  ): Promise<Result<Value, Refusal>> {
    this.#failed.delete(id);
    const opened = await this.#openTenant(id, { forWork: true, keepsStricterMode: mode !== undefined });
    if (!opened.ok) return opened;
    const open = opened.value;
    open.works += 1;
    try {
      return await work(open.gate);
    } finally {
      open.works -= 1;
      open.usedAt = performance.now();
    }
  }

  /** Opens each tenant whose events are sent, one after another, so that events from before this start are sent. */
  async openForSenders(notifier: Notifier | undefined): Promise<void> {
    for (const id of this.#sources.keys()) {
      if (this.#isClosed) return;
      // If a tenant cannot be opened, its log line says why.
      if (notifier?.wants(id) === true) await this.#openTenant(id).catch(() => undefined);
    }
  }

  /**
   * Waits until each ledger has ended the batches that started before, so that the next ones follow the root's stops. A tenant
   * that is not open here has none, unless other gates share its ledger.
   *
   * @returns the tenants
   * @throws {NotKept} if a ledger cannot be reached
   */
  async followRoot(): Promise<Result<readonly string[], Refusal>> {
    const ids = [...this.#sources.keys()];
    for (const id of ids) {
      await this.#closing.get(id);
      await this.#opening.get(id);
      const open = this.#open.get(id);
      const { shared } = this.#sources.get(id)?.ledger ?? {};
      if (open === undefined) await shared?.database.passHead(shared.ledger);
      else {
        const passed = await open.gate.passHead();
        if (!passed.ok) return passed;
      }
    }
    return good(ids);
  }

  sourceOf(id: string): GateSource | undefined {
    return this.#sources.get(id);
  }

  /** Replaces the tenants after the file was read again. Tenants that are no longer in it are closed. */
  async redefine(sources: readonly GateSource[]): Promise<void> {
    this.#sources = byTenant(sources);
    this.#failed.clear();
    const gone = [...this.#open.keys()].filter((id) => !this.#sources.has(id));
    await Promise.all(gone.map((id) => this.#close(id)));
  }

  /** The tenants that have been open in this process, so that a reload must include them. */
  get opened(): readonly string[] {
    return [...new Set([...this.#open.keys(), ...this.#earlier.keys()])].filter((id) => this.#sources.has(id));
  }

  /** Answers the waiting calls, then closes all tenants. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#sweep);
    await Promise.all(this.#opening.values());
    await Promise.all([...this.#open.keys()].map((id) => this.#close(id)));
  }

  #openTenant(id: string, how: TenantOpenOptions = {}): Promise<Result<OpenTenant, Refusal>> {
    const open = this.#open.get(id);
    if (open !== undefined) return Promise.resolve(good(open));
    const failed = this.#failed.get(id);
    if (failed !== undefined && failed.until > performance.now()) return Promise.resolve(bad(failed.refusal));
    const known = this.#opening.get(id);
    if (known !== undefined) return known;
    const opening = this.#start(id, how).finally(() => this.#opening.delete(id));
    this.#opening.set(id, opening);
    return opening;
  }

  async #start(
    id: string,
    { forWork = false, keepsStricterMode = false }: TenantOpenOptions,
  ): Promise<Result<OpenTenant, Refusal>> {
    const source = this.#sources.get(id);
    if (source === undefined) return bad(noSuchTenant);
    if (!(await this.#makeRoom()) && !forWork) {
      return bad(refuse("tenant-unavailable", "too many tenants are busy at once; ask again in a moment"));
    }
    try {
      await this.#closing.get(id);
      const { open: openGate = (each, earlier) => openAndStart(each, this.#options, earlier) } = this.#options;
      const gate = await openGate({ ...source, keepsStricterMode }, this.#earlier.get(id));
      if (!this.#sources.has(id)) {
        await closeGate(gate);
        return bad(noSuchTenant);
      }
      const open: OpenTenant = { gate, waiting: new Set(), works: 0, usedAt: performance.now() };
      this.#open.set(id, open);
      gate.failed.catch((error: unknown) => this.#fault(id, open, error));
      return good(open);
    } catch (error) {
      return bad(this.#unavailable(id, error));
    }
  }

  /** Makes room for one more tenant: closes the idle tenant whose last request is the oldest. */
  async #makeRoom(): Promise<boolean> {
    // The new tenant is not in `#opening` yet.
    if (this.#open.size + this.#opening.size < this.#options.openMax) return true;
    const [oldest] = [...this.#open].filter(([, open]) => isIdle(open)).toSorted(([, a], [, b]) => a.usedAt - b.usedAt);
    if (oldest === undefined) return false;
    await this.#close(oldest[0]);
    return true;
  }

  #closeIdle(): void {
    const before = performance.now() - this.#options.idleMs;
    for (const [id, open] of this.#open) {
      if (isIdle(open) && open.usedAt < before) {
        this.#close(id).catch((error: unknown) => this.#unavailable(id, error));
      }
    }
  }

  /** Closes a tenant after it has answered its waiting calls. Later requests open it again. */
  #close(id: string): Promise<void> {
    const open = this.#open.get(id);
    if (open === undefined) return Promise.resolve();
    this.#open.delete(id);
    this.#remember(id, open);
    const closing = open.gate
      .drain()
      .then(() => closeGate(open.gate))
      .finally(() => this.#closing.delete(id));
    this.#closing.set(id, closing);
    return closing;
  }

  #remember(id: string, { gate }: OpenTenant): void {
    const { contract, mode, engine } = gate.policy;
    this.#earlier.set(id, { contract, mode, engine });
  }

  /**
   * Ends a tenant like a crashed process: it answers nothing more, and its pending connections are closed. The next
   * check opens it again.
   */
  #fault(id: string, open: OpenTenant, error: unknown): void {
    this.#options.log.fatal(
      { tenant: id, err: error },
      "a fault ended this tenant; it answers again after the next check has opened it",
    );
    if (this.#open.get(id) === open) this.#open.delete(id);
    this.#remember(id, open);
    this.#unavailable(id, error);
    for (const response of open.waiting) response.destroy();
    open.gate.anchors?.close().catch(() => undefined);
    open.gate.ledger.close().catch(() => undefined);
  }

  #unavailable(id: string, error: unknown): Refusal {
    const { message } = error as Error;
    this.#options.log.error({ tenant: id }, `the tenant ${id} cannot be served: ${message}`);
    const refusal = refuse(
      "tenant-unavailable",
      "this tenant cannot be served now; the gate's log shows the reason to the operator",
    );
    this.#failed.set(id, { until: performance.now() + retryMs, refusal });
    return refusal;
  }
}

async function openAndStart(source: GateSource, shared: SharedParts, earlier: InForce | undefined): Promise<Gate> {
  const { gate, start } = await openFrom(source, shared, earlier);
  await start().catch(async (error: unknown) => {
    await closeGate(gate);
    throw error;
  });
  return gate;
}

export const noSuchTenant: Refusal = refuse("not-found", "the tenant does not exist");

export async function closeGate({ anchors, ledger }: Gate): Promise<void> {
  await anchors?.close();
  await ledger.close();
}

function isIdle({ gate, waiting, works }: OpenTenant): boolean {
  return waiting.size === 0 && works === 0 && gate.isIdle;
}

function byTenant(sources: readonly GateSource[]): ReadonlyMap<string, GateSource> {
  return new Map(sources.map((source) => [source.tenant ?? "", source]));
}
