import { setTimeout } from "node:timers/promises";
import type { Logger } from "pino";
import {
  bad,
  good,
  isMode,
  modes,
  refuse,
  type Mode,
  type Refusal,
  type Result,
} from "../../../../core/src/wire/mod.ts";
import { NotKept } from "../../ledger/errors.ts";
import { NoSuchFile } from "../errors.ts";
import type { Gate } from "./gate.ts";
import type { ReloadResult } from "./policy-changes.ts";
import type { Notifier } from "../notify/notifier.ts";
import type { Places } from "../admission/places.ts";
import type { QueueBudget } from "../admission/queue.ts";
import type { KeyRing } from "../keys/keys.ts";
import { loadPolicySet, type GateSource } from "./gate-source.ts";
import { HookedCalls } from "./hooked-calls.ts";
import type { Rates } from "../keys/rate.ts";
import { explainRates, streamPlaces, waitPlaces } from "../admission/open-requests.ts";
import { ReadAdmission } from "../admission/reads.ts";
import type { ContractTests, ServeHooks } from "../policy/hooks.ts";
import type { Readings } from "../telemetry/exposition.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Traces } from "../telemetry/traces.ts";
import { noSuchTenant, type Tenants } from "./tenants.ts";

/** The tests that a reload runs first, and where they are. */
export interface ReloadTests {
  readonly path: string;
  readonly run: ContractTests;
}

export interface ServiceOptions {
  readonly log: Logger;
  readonly keys: KeyRing;
  readonly root: Gate;
  readonly rootSource: GateSource;
  /** Undefined on a gate without tenants. */
  readonly tenants: Tenants | undefined;
  /** Reads the tenants file again. */
  readonly readSources: () => Promise<Result<readonly GateSource[], string>>;
  /** The tests that must pass before a reload takes effect. */
  readonly tests: ReloadTests | undefined;
  readonly metrics: Metrics;
  /** The most connections at once. */
  readonly connections: number;
  /** The memory that waiting checks use. While they use some, reads wait. */
  readonly budget?: Pick<QueueBudget, "bytesUsed">;
  /** Undefined if no endpoint of webhooks is set. */
  readonly notifier?: Notifier | undefined;
  /** Undefined if no collector is set. */
  readonly traces: Traces | undefined;
  /** The rate limits of keys. */
  readonly rates: Rates;
  /** The address under which others reach this gate; undefined if it is not set. */
  readonly publicUrl?: string | undefined;
  /** The functions of the command line that routes call; by default there are none. */
  readonly hooks?: ServeHooks;
}

/** The gates of one process, for the root and the tenants, and the keys that open them. */
export class Service {
  readonly #options: ServiceOptions;
  readonly keys: KeyRing;
  readonly root: Gate;
  readonly tenants: Tenants | undefined;
  readonly metrics: Metrics;
  readonly rates: Rates;
  readonly log: Logger;
  readonly traces: Traces | undefined;
  readonly hooks: ServeHooks;
  readonly publicUrl: string | undefined;
  /** Where people open the console, once the gate listens; undefined if it serves none. */
  consoleOrigin: string | undefined;
  /** The most connections at once. */
  readonly connections: number;
  /** The requests that wait for a person, and the streams of events that are open. */
  readonly waits: Places;
  readonly streams: Places;
  readonly reads: ReadAdmission;
  readonly explainRates: Rates = explainRates();
  /** The calls of hosts that were let through, to report what became of them. */
  readonly hookedCalls: HookedCalls = new HookedCalls();
  #reloading: Promise<unknown> = Promise.resolve();

  constructor(options: ServiceOptions) {
    this.#options = options;
    this.keys = options.keys;
    this.root = options.root;
    this.tenants = options.tenants;
    this.metrics = options.metrics;
    this.rates = options.rates;
    this.log = options.log;
    this.traces = options.traces;
    this.hooks = options.hooks ?? {};
    this.publicUrl = options.publicUrl;
    this.connections = options.connections;
    this.waits = waitPlaces(options.connections);
    this.streams = streamPlaces(options.connections);
    this.reads = new ReadAdmission(() => (options.budget?.bytesUsed ?? 0) > 0);
  }

  /** The gate of the root (null) or of a tenant, if it is open now. */
  openGate(tenant: string | null): Gate | undefined {
    return tenant === null ? this.root : this.tenants?.open.get(tenant)?.gate;
  }

  /** Makes the tenants follow the root's stops; returns the tenants. */
  async followRoot(): Promise<Result<readonly string[], Refusal>> {
    try {
      return (await this.tenants?.followRoot()) ?? good([]);
    } catch (error) {
      if (!(error instanceof NotKept)) throw error;
      return bad(
        refuse(
          "ledger-unavailable",
          "the stop is set, but a tenant's ledger cannot be reached: it follows with its next call",
        ),
      );
    }
  }

  async metricsText(): Promise<string> {
    const { exposition } = await import("../telemetry/exposition.ts");
    return exposition(this.metrics, await this.#readings());
  }

  async #readings(): Promise<Readings> {
    const { contract, mode } = this.root.policy;
    const open = [...(this.tenants?.open.values() ?? [])].map(({ gate }) => gate);
    const gates = [this.root, ...open];
    const queued = gates.map(({ admission }) => admission.queued);
    return {
      queue: {
        calls: sum(queued.map(({ calls }) => calls)),
        bytes: sum(queued.map(({ bytes }) => bytes)),
        paused: sum(queued.map(({ paused }) => paused)),
      },
      waitingReads: this.reads.waiting,
      rows: sum(gates.map(({ ledger }) => ledger.head.seq)),
      inForce: { contract, mode },
      keys: this.keys.known.live,
      tenants: open.length,
      ready: (await this.root.unready()) === undefined,
      waiting: await waitingIn(gates),
      streams: this.streams.taken,
      undelivered: undeliveredIn(gates, this.#options.notifier?.names ?? []),
      anchors: gates.flatMap(({ anchorReadings }) => anchorReadings),
    };
  }

  /**
   * Refuses the reads that wait for a place, and reads the requests of all paused connections. Ends waits and streams. Then
   * the root takes no more checks, and answers those that wait.
   */
  async drain(): Promise<void> {
    this.reads.close();
    for (const { gate } of this.tenants?.open.values() ?? []) {
      const { admission, approvals, events } = gate;
      await admission.endPauses();
      approvals.waits.close();
      events.close();
    }
    await this.root.drain();
  }

  /** Runs an operator's work on the gate of the root (null) or of a tenant. Opens the tenant for it. */
  workOn<Value>(
    tenant: string | null,
    work: (gate: Gate) => Promise<Result<Value, Refusal>>,
  ): Promise<Result<Value, Refusal>> {
    if (tenant === null) return work(this.root);
    return this.tenants?.workOn(tenant, work) ?? Promise.resolve(bad(noSuchTenant));
  }

  /**
   * Reads the files again and puts them in force, for the root (null) or a tenant.
   *
   * @param mode undefined keeps the mode
   * @param by the name of the key that asks
   */
  reload(tenant: string | null, mode: string | undefined, by: string): Promise<Result<ReloadResult, Refusal>> {
    const reloading = this.#reloading.then(() => this.#reload(tenant, mode, by));
    this.#reloading = reloading.then(
      ({ ok }) => this.metrics.countReload(ok ? "applied" : "refused"),
      () => this.metrics.countReload("refused"),
    );
    return reloading;
  }

  /** Reloads the root and all tenants, after a signal. Nobody waits for the result. */
  async reloadAll(by: string): Promise<void> {
    const { log, tenants } = this;
    const opened = tenants?.opened ?? [];
    for (const tenant of [null, ...opened]) {
      try {
        const reloaded = await this.reload(tenant, undefined, by);
        if (!reloaded.ok) log.error({ tenant }, `nothing was put in force: ${reloaded.problem.detail}`);
      } catch (error) {
        // A fault of one tenant, such as a damaged ledger, must not affect the others or calls that wait for answers.
        log.error({ tenant, err: error }, "nothing was put in force: the reload failed");
      }
    }
  }

  async #reload(tenant: string | null, mode: string | undefined, by: string): Promise<Result<ReloadResult, Refusal>> {
    if (mode !== undefined && !isMode(mode))
      return bad(refuse("invalid-request", `the mode "${mode}" does not exist; modes are ${modes.join(", ")}`));
    const { tenants, readSources, rootSource, root } = this.#options;
    if (tenants !== undefined) {
      const sources = await readSources();
      if (!sources.ok) return bad(this.#refuseSources(tenant, sources.problem));
      await tenants.redefine(sources.value);
    }
    if (tenant === null) return this.#reloadGate(root, rootSource, mode, by);
    const source = tenants?.sourceOf(tenant);
    if (tenants === undefined || source === undefined) return bad(noSuchTenant);
    return tenants.workOn(tenant, (gate) => this.#reloadGate(gate, source, mode, by), mode);
  }

  /** An error in the tenants file may show lines of other tenants, so only the root's administrators see it. */
  #refuseSources(tenant: string | null, problem: string): Refusal {
    if (tenant === null) return refuse("contract-refused", problem);
    this.#options.log.error({ tenant }, `nothing was put in force: ${problem}`);
    return refuse("contract-refused", "the tenants file has an error; the gate's log shows it to the operator");
  }

  async #reloadGate(
    gate: Gate,
    source: GateSource,
    mode: Mode | undefined,
    by: string,
  ): Promise<Result<ReloadResult, Refusal>> {
    const { log, tests } = this.#options;
    const { tenant } = source;
    try {
      const policySet = await loadPolicySet(source, log);
      if (!policySet.ok) return bad(refuse("contract-refused", policySet.problem));
      const failed = await tests?.run(tests.path);
      if (failed !== undefined) return bad(refuse("contract-refused", failed));
      const setting = mode === undefined && source.statedMode !== undefined ? source.modeSetting : undefined;
      const reloaded = await gate.policies.reload(
        { policySet: policySet.value, mode: mode ?? source.statedMode, setting },
        by,
      );
      if (reloaded.ok) this.#say(tenant, reloaded.value, by);
      return reloaded;
    } catch (error) {
      if (error instanceof NoSuchFile) return bad(refuse("contract-refused", error.message));
      throw error;
    }
  }

  #say(tenant: string | null, { changed, now, folded }: ReloadResult, by: string): void {
    const { log } = this.#options;
    const { contract, mode } = now;
    log.info({ tenant, contract, mode, by }, changed ? "put in force" : "reloaded; nothing has changed");
    for (const counter of folded) log.info({ tenant, ...counter }, "a counter starts to be kept");
  }
}

/** How long metrics wait for the ledgers: a database that is down must not hide the other metrics. */
const countMs = 1000;

/** Counts the approvals that wait for a person; undefined if a ledger does not answer in time. */
async function waitingIn(gates: readonly Gate[]): Promise<Readings["waiting"]> {
  const counting = Promise.all(gates.map(({ ledger }) => ledger.tables.countWaiting(Date.now()))).catch(
    () => undefined,
  );
  const counts = await Promise.race([counting, setTimeout(countMs, undefined, { ref: false })]);
  return counts && { calls: sum(counts.map(({ calls }) => calls)), late: sum(counts.map(({ late }) => late)) };
}

function undeliveredIn(gates: readonly Gate[], endpoints: readonly string[]): Readings["undelivered"] {
  const states = gates.flatMap(({ senders }) => senders?.states ?? []);
  const countWaiting = (name: string): number =>
    sum(states.filter(({ endpoint }) => endpoint === name).map(({ waiting: events }) => events.length));
  return new Map(endpoints.map((name) => [name, countWaiting(name)]));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
