import { collectDefaultMetrics, Counter, Gauge, Registry } from "prom-client";
import { hows, statuses } from "../../../../core/src/approvals/mod.ts";
import { modes, refusals, verdicts, type Mode, type RefusalCode } from "../../../../core/src/wire/mod.ts";
import type { AnchorReading } from "../anchoring/mod.ts";
import { engine } from "../version.ts";
import { histogramText, type HistogramOptions } from "./histogram-text.ts";
import { expiryReasons, type CheckCounts, type Metrics } from "./metrics.ts";
import { deliveryOutcomes, reloadOutcomes } from "./observer.ts";

/** Values that are read when the metrics are requested. */
export interface Readings {
  /** The number of calls that wait for a verdict, and the bytes of their bodies. */
  readonly queue: { readonly calls: number; readonly bytes: number; readonly paused: number };
  readonly waitingReads: number;
  /** The number of rows in open ledgers. */
  readonly rows: number;
  /** The policy of the root: the SHA-256 in hex of its contract's text, and its mode. Tenants have their own. */
  readonly inForce: { readonly contract: string; readonly mode: Mode };
  readonly keys: number;
  readonly tenants: number;
  readonly ready: boolean;
  /** The approvals of open ledgers that wait for a person; undefined if the ledgers do not answer in time. */
  readonly waiting: { readonly calls: number; readonly late: number } | undefined;
  /** The number of open streams of events. */
  readonly streams: number;
  /** Events that the endpoints of webhooks have not taken yet, by endpoint: the sum over open ledgers. */
  readonly undelivered: ReadonlyMap<string, number>;
  /** The anchors of each open ledger. */
  readonly anchors: readonly AnchorReading[];
}

/** Returns all metrics in the Prometheus text format, including those of the process. */
export async function exposition(metrics: Metrics, readings: Readings): Promise<string> {
  const anchors = anchorsRegistry(readings.anchors, metrics.anchorFailures);
  const checks = await checksRegistry(metrics).metrics();
  const registries = [
    eventsRegistry(metrics),
    approvalsRegistry(metrics),
    readingsRegistry(readings),
    webhooksRegistry(metrics, readings),
    anchors,
    ofProcess(),
  ];
  const others = await Promise.all(registries.map((registry) => registry.metrics()));
  return [checks, ...histograms(metrics).map(histogramText), ...others].join("\n");
}

function checksRegistry(metrics: Metrics): Registry {
  const registry = new Registry();
  showChecks(metrics.checks, registry);
  showAnswers(metrics.answers, registry);
  return registry;
}

/** A histogram of prom-client takes values, not counts; `histogramText` writes counts. */
function histograms(metrics: Metrics): readonly HistogramOptions[] {
  return [
    {
      name: "svc_gate_check_seconds",
      help: "From the last byte of a check's body to its answer.",
      series: { whole: metrics.whole },
    },
    {
      name: "svc_gate_stage_seconds",
      help: "The time of each stage of a check: parse, prepare, queue, decide, commit, answer.",
      label: "stage",
      series: metrics.stages,
    },
    {
      name: "svc_gate_batch_calls",
      help: "Calls decided together, under one flush.",
      series: { calls: metrics.batches },
    },
    {
      name: "svc_gate_flush_seconds",
      help: "The time until a batch was durable.",
      series: { flush: metrics.flushes },
    },
    {
      name: "svc_gate_approval_decision_seconds",
      help: "From the check that asked for a person to the decision: the last yes that was needed, or the no.",
      series: { decision: metrics.decisionTimes },
    },
  ];
}

function eventsRegistry(metrics: Metrics): Registry {
  const registry = new Registry();
  const refused = new Counter({
    name: "svc_gate_refusals_total",
    help: "Requests refused without a verdict, by the code of the refusal.",
    labelNames: ["code"],
    registers: [registry],
  });
  const codes = Object.keys(refusals) as RefusalCode[];
  for (const code of codes) refused.inc({ code }, metrics.refusals.get(code) ?? 0);
  const defects = new Counter({
    name: "svc_gate_defects_total",
    help: "Calls blocked because the engine itself failed on a rule. More than 0 is an alarm.",
    registers: [registry],
  });
  defects.inc(metrics.defects);
  const reloads = new Counter({
    name: "svc_gate_reloads_total",
    help: "Reloads while the gate ran: applied, or refused so that the old policy stayed.",
    labelNames: ["outcome"],
    registers: [registry],
  });
  for (const outcome of reloadOutcomes) reloads.inc({ outcome }, metrics.reloads.get(outcome) ?? 0);
  return registry;
}

/** Adds every label at the start, so that a count of zero is visible. */
function approvalsRegistry({ asks, approvals, expired }: Metrics): Registry {
  const registry = new Registry();
  const show = <Value extends string>(
    { name, label, help }: { readonly name: string; readonly label: string; readonly help: string },
    values: readonly Value[],
    counts: ReadonlyMap<Value, number>,
  ): void => {
    const counter = new Counter({ name, help, labelNames: [label], registers: [registry] });
    for (const value of values) counter.inc({ [label]: value }, counts.get(value) ?? 0);
  };
  const askHelp = "Checks that a person had to decide: it opened an approval, attached to one, was capped, and so on.";
  show({ name: "svc_gate_approval_asks_total", label: "how", help: askHelp }, hows, asks);
  const reached = statuses.filter((status) => status !== "pending");
  const reachedHelp = "Approvals that a person approved, or that ended.";
  show({ name: "svc_gate_approvals_total", label: "status", help: reachedHelp }, reached, approvals);
  const expiredHelp = "Approvals that expired: nobody voted, too few people voted, or nobody used the yes.";
  show({ name: "svc_gate_approvals_expired_total", label: "why", help: expiredHelp }, expiryReasons, expired);
  return registry;
}

function showChecks(counts: CheckCounts, registry: Registry): void {
  const checks = new Counter({
    name: "svc_gate_checks_total",
    help: "Checks decided and recorded, by the verdict reached. Tools that no contract routes are `other`.",
    labelNames: ["verdict", "mode", "tool"],
    registers: [registry],
  });
  for (const { count, ...labels } of counts.entries()) checks.inc(labels, count);
}

/** Adds every combination at the start, so that a count of zero is visible. */
function showAnswers(counts: CheckCounts, registry: Registry): void {
  const answers = new Counter({
    name: "svc_gate_answers_total",
    help: "Checks answered, by the verdict after the mode.",
    labelNames: ["verdict", "mode"],
    registers: [registry],
  });
  for (const verdict of verdicts) for (const mode of modes) answers.inc({ verdict, mode }, 0);
  for (const { count, verdict, mode } of counts.entries()) answers.inc({ verdict, mode }, count);
}

function readingsRegistry(readings: Readings): Registry {
  const { queue, rows, inForce, keys, tenants, ready, waiting, waitingReads, streams } = readings;
  const registry = new Registry();
  const gauge = (name: string, help: string, value: number): void =>
    new Gauge({ name, help, registers: [registry] }).set(value);
  gauge("svc_gate_queue_calls", "Calls that wait for a verdict.", queue.calls);
  gauge("svc_gate_queue_bytes", "Bytes of the bodies of calls that wait.", queue.bytes);
  gauge(
    "svc_gate_paused_connections",
    "Connections whose next request is read when there is room for it.",
    queue.paused,
  );
  gauge("svc_gate_waiting_reads", "Requests that read, and wait for a place.", waitingReads);
  gauge("svc_gate_ledger_rows", "Rows in open ledgers.", rows);
  gauge("svc_gate_event_streams", "Streams of events that are open.", streams);
  gauge("svc_gate_keys", "Keys that are valid now.", keys);
  gauge("svc_gate_tenants", "Tenants whose ledger is open.", tenants);
  gauge("svc_gate_ready", "1 if checks can be answered, as in GET /ready.", ready ? 1 : 0);
  if (waiting !== undefined) {
    gauge("svc_gate_approvals_waiting", "Approvals in open ledgers that wait for a person.", waiting.calls);
    gauge("svc_gate_approvals_late", "Those of them that have waited for more than half of their time.", waiting.late);
  }
  const info = new Gauge({
    name: "svc_gate_contract_info",
    help: "1, with the digest of the contract in force, the mode and the engine: replicas must agree.",
    labelNames: ["contract", "mode", "engine"],
    registers: [registry],
  });
  info.set({ ...inForce, engine }, 1);
  return registry;
}

/** Adds every endpoint of the file and every outcome at the start, so that a count of zero is visible. */
function webhooksRegistry({ deliveries }: Metrics, { undelivered }: Readings): Registry {
  const registry = new Registry();
  const attempts = new Counter({
    name: "svc_gate_webhook_attempts_total",
    help: "Attempts to send a webhook: the endpoint took it, it is sent again later, or it is given up after three days.",
    labelNames: ["endpoint", "outcome"],
    registers: [registry],
  });
  const waits = new Gauge({
    name: "svc_gate_webhook_waiting",
    help: "Events that an endpoint has not taken yet and that are sent again.",
    labelNames: ["endpoint"],
    registers: [registry],
  });
  for (const [endpoint, count] of undelivered) {
    waits.set({ endpoint }, count);
    for (const outcome of deliveryOutcomes)
      attempts.inc({ endpoint, outcome }, deliveries.get(endpoint)?.get(outcome) ?? 0);
  }
  return registry;
}

/** Returns one series for each anchor: the value of the ledger that is furthest behind. A tenant is not a label. */
function anchorsRegistry(anchors: readonly AnchorReading[], failures: ReadonlyMap<string, number>): Registry {
  const registry = new Registry();
  const names = [...new Set(anchors.map(({ by }) => by))];
  const most = (name: string, help: string, value: (reading: AnchorReading) => number): void => {
    const gauge = new Gauge({ name, help, labelNames: ["anchor"], registers: [registry] });
    for (const anchor of names)
      gauge.set({ anchor }, Math.max(...anchors.filter(({ by }) => by === anchor).map(value)));
  };
  most("svc_gate_anchor_lag_rows", "Rows that an anchor does not vouch for yet.", ({ lagRows }) => lagRows);
  most(
    "svc_gate_anchor_behind_seconds",
    "The time for which such rows have existed.",
    ({ behindMs }) => behindMs / 1000,
  );
  most(
    "svc_gate_anchor_diverged",
    "1 if an anchor has seen a history that is not the gate's: an alarm.",
    ({ isDiverged }) => (isDiverged ? 1 : 0),
  );
  const failed = new Counter({
    name: "svc_gate_anchor_failures_total",
    help: "Heads that an anchor did not receive or accept; they are sent again.",
    labelNames: ["anchor"],
    registers: [registry],
  });
  for (const anchor of names) failed.inc({ anchor }, failures.get(anchor) ?? 0);
  return registry;
}

/** Gauges whose names are those of counters. Other metrics have the same values by type. */
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
