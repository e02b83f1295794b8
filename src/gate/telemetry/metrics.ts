import { collectDefaultMetrics, Counter, Gauge, Registry } from "prom-client";
import { modes, refusals, verdicts, type Mode, type RefusalCode } from "../../wire/mod.ts";
import { engine } from "../version.ts";
import { CheckCounts } from "./checks.ts";
import { Distribution } from "./distribution.ts";
import { stages, type AnsweredCheck, type Course, type ReloadOutcome, type Watch } from "./watch.ts";

/** What stands at the moment when somebody looks. */
export interface Readings {
  /** Calls that wait for a verdict, and their bodies together. */
  readonly queue: { readonly calls: number; readonly bytes: number };
  /** Rows of the ledgers that are open. */
  readonly rows: number;
  /** What the gate itself decides by: the SHA-256 in hex of its contract's text, and its mode. Tenants have their own. */
  readonly inForce: { readonly contract: string; readonly mode: Mode };
  readonly keys: number;
  readonly tenants: number;
  readonly ready: boolean;
}

const stageBounds = [50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 100e-3, 500e-3, 2.5];
const batchBounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/**
 * The gate's metrics in the Prometheus text format. What lies on the way of a check is counted in arrays and handed to
 * prom-client when somebody asks; the rest is read then.
 */
export class Metrics implements Watch {
  readonly #readings: () => Promise<Readings>;
  readonly #registry = new Registry();
  readonly #checks = new CheckCounts();
  readonly #answers = new CheckCounts();
  readonly #whole: Distribution<"">;
  readonly #stages: Distribution<(typeof stages)[number]>;
  readonly #batches: Distribution<"">;
  readonly #flushes: Distribution<"">;
  readonly #refusals: Counter<"code">;
  readonly #defects: Counter;
  readonly #reloads: Counter<"outcome">;

  constructor(readings: () => Promise<Readings>) {
    this.#readings = readings;
    const registry = this.#registry;
    registry.registerMetric(checksShown(this.#checks));
    registry.registerMetric(answersShown(this.#answers));
    const times = { bounds: stageBounds, registry };
    this.#whole = new Distribution({
      ...times,
      name: "svc_gate_check_seconds",
      help: "From the last byte of a check's body to its answer.",
      label: "",
      values: [""],
    });
    this.#stages = new Distribution({
      ...times,
      name: "svc_gate_stage_seconds",
      help: "What a check passed through: parse, prepare, queue, decide, commit, answer.",
      label: "stage",
      values: stages,
    });
    this.#batches = new Distribution({
      name: "svc_gate_batch_calls",
      help: "Calls decided together, under one flush.",
      bounds: batchBounds,
      label: "",
      values: [""],
      registry,
    });
    this.#flushes = new Distribution({
      ...times,
      name: "svc_gate_flush_seconds",
      help: "How long a batch took until it was durable.",
      label: "",
      values: [""],
    });
    this.#refusals = new Counter({
      name: "svc_gate_refusals_total",
      help: "Requests refused without a verdict, by the code of the refusal.",
      labelNames: ["code"],
      registers: [registry],
    });
    for (const code of Object.keys(refusals)) this.#refusals.inc({ code }, 0);
    this.#defects = new Counter({
      name: "svc_gate_defects_total",
      help: "Calls blocked because the engine itself failed on a rule. More than none is an alarm.",
      registers: [registry],
    });
    this.#reloads = new Counter({
      name: "svc_gate_reloads_total",
      help: "Changes asked for while the gate ran: applied, or refused and the old one kept.",
      labelNames: ["outcome"],
      registers: [registry],
    });
    for (const outcome of ["applied", "refused"]) this.#reloads.inc({ outcome }, 0);
  }

  answered({ verdict, answered, mode, toolName, routed }: AnsweredCheck, course: Course): void {
    this.#checks.add(toolName, routed, verdict, mode);
    this.#answers.add("", false, answered, mode);
    let from = course.began;
    for (const stage of stages) {
      const to = course[stage];
      this.#stages.series[stage].add((to - from) / 1000);
      from = to;
    }
    this.#whole.series[""].add((from - course.began) / 1000);
  }

  flushed(calls: number, ms: number): void {
    this.#batches.series[""].add(calls);
    this.#flushes.series[""].add(ms / 1000);
  }

  refused(code: RefusalCode): void {
    this.#refusals.inc({ code });
  }

  defect(): void {
    this.#defects.inc();
  }

  reloaded(outcome: ReloadOutcome): void {
    this.#reloads.inc({ outcome });
  }

  /** All of it, with what the process says of itself. */
  async text(): Promise<string> {
    const now = readingsRegistry(await this.#readings());
    const texts = [this.#registry, now, ofProcess()].map((registry) => registry.metrics());
    return (await Promise.all(texts)).join("\n");
  }
}

export const metricsType: string = Registry.PROMETHEUS_CONTENT_TYPE;

function checksShown(counts: CheckCounts): Counter {
  return new Counter({
    name: "svc_gate_checks_total",
    help: "Checks decided and recorded, by the verdict reached. Tools that no contract routes are `other`.",
    labelNames: ["verdict", "mode", "tool"],
    registers: [],
    collect() {
      this.reset();
      for (const { count, ...labels } of counts.entries()) this.inc(labels, count);
    },
  });
}

/** Every combination from the start, so that a rate of none is seen as none. */
function answersShown(counts: CheckCounts): Counter {
  return new Counter({
    name: "svc_gate_answers_total",
    help: "Checks answered, by the verdict that the mode let out.",
    labelNames: ["verdict", "mode"],
    registers: [],
    collect() {
      this.reset();
      for (const verdict of verdicts) for (const mode of modes) this.inc({ verdict, mode }, 0);
      for (const { count, verdict, mode } of counts.entries()) this.inc({ verdict, mode }, count);
    },
  });
}

/** Gauges are read, not kept: a contract that is no longer in force leaves no series behind. */
function readingsRegistry({ queue, rows, inForce, keys, tenants, ready }: Readings): Registry {
  const registry = new Registry();
  const gauge = (name: string, help: string, value: number): void =>
    new Gauge({ name, help, registers: [registry] }).set(value);
  gauge("svc_gate_queue_calls", "Calls that wait for a verdict.", queue.calls);
  gauge("svc_gate_queue_bytes", "Bodies of the calls that wait.", queue.bytes);
  gauge("svc_gate_ledger_rows", "Rows of the ledgers that are open.", rows);
  gauge("svc_gate_keys", "Keys that may be used now.", keys);
  gauge("svc_gate_tenants", "Tenants whose ledger is open, the gate's own among them.", tenants);
  gauge("svc_gate_ready", "1 when checks can be answered, as GET /ready says.", ready ? 1 : 0);
  const info = new Gauge({
    name: "svc_gate_contract_info",
    help: "1, with the digest of the contract in force, the mode and the engine: replicas must agree.",
    labelNames: ["contract", "mode", "engine"],
    registers: [registry],
  });
  info.set({ ...inForce, engine }, 1);
  return registry;
}

/** Gauges that call themselves counters; what they add up is there by type. */
const misnamed = ["nodejs_active_resources_total", "nodejs_active_handles_total", "nodejs_active_requests_total"];

/** The process has one memory and one event loop, however many gates a test starts in it. */
let processRegistry: Registry | undefined;

function ofProcess(): Registry {
  if (processRegistry === undefined) {
    processRegistry = new Registry();
    collectDefaultMetrics({ register: processRegistry });
    for (const name of misnamed) processRegistry.removeSingleMetric(name);
  }
  return processRegistry;
}
