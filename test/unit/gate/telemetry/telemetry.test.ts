/**
 * Goal: the metrics are valid for Prometheus, count correctly, and stay few whatever callers send. Method: a strict
 * reader reads the text, and positive controls show it faults. A histogram's text is compared with prom-client's.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { Histogram, Registry } from "prom-client";
import { exposition } from "../../../../packages/gate/src/server/telemetry/exposition.ts";
import { histogramText } from "../../../../packages/gate/src/server/telemetry/histogram-text.ts";
import { requestId, traceIdOf } from "../../../../packages/gate/src/server/telemetry/requests.ts";
import { Series } from "../../../../packages/gate/src/server/telemetry/series.ts";
import { CheckCounts, otherTools, Metrics, toolsMax } from "../../../../packages/gate/src/server/telemetry/metrics.ts";
import type { Approval } from "../../../../packages/core/src/approvals/mod.ts";
import type { CheckTimings } from "../../../../packages/gate/src/server/telemetry/observer.ts";
import { control } from "../../../support/controls/control.ts";
import { lintExposition, readExposition } from "../../../support/exposition.ts";

const readings = {
  queue: { calls: 3, bytes: 450, paused: 2 },
  waitingReads: 4,
  rows: 7,
  inForce: { contract: "c".repeat(64), mode: "enforce" },
  keys: 2,
  tenants: 1,
  ready: true,
  waiting: { calls: 5, late: 2 },
  streams: 3,
  undelivered: new Map([["ops", 2]]),
  anchors: [
    { by: "file sink", lagRows: 2, behindMs: 1500, isDiverged: false },
    { by: "file sink", lagRows: 7, behindMs: 500, isDiverged: true },
  ],
} as const;

const textOf = (metrics: Metrics): Promise<string> => exposition(metrics, readings);

/** Timings in which each stage took as many milliseconds as its position. */
const timings: CheckTimings = {
  startedAt: 100,
  parse: 101,
  prepare: 103,
  queue: 106,
  looked: 106,
  decide: 110,
  commit: 115,
  answer: 121,
};

const receipt = { rule: "mail/limit", seq: 1, sessionId: null };

const check = {
  verdict: "BLOCK",
  answered: "ESCALATE",
  mode: "assist",
  toolName: "mail.send",
  routed: true,
  ...receipt,
} as const;

suite("the metrics in the text format of Prometheus", () => {
  test("a strict reader accepts the metrics, with help texts, units and complete histograms", async () => {
    const observer = new Metrics();
    observer.countAnswer(check, timings);
    observer.countBatch(4, 2);
    const families = readExposition(await textOf(observer));
    assert.deepEqual(lintExposition(families), []);
    assert.ok(families.size > 40, "with the metrics of the process");
  });

  test("the metrics count every check, refusal, flush, defect, reload and anchor failure", async () => {
    const observer = new Metrics();
    observer.countAnswer(check, timings);
    observer.countAnswer({ ...check, toolName: "no.such.tool", routed: false }, timings);
    observer.countBatch(2, 4);
    observer.countRefusal("queue-full");
    observer.countDefect();
    observer.countReload("refused");
    observer.countAnchorFailure("file sink");
    observer.countJudgement("opened");
    observer.countJudgement("capped");
    const opened = { at: 1000, votes: [], useBy: null, denial: null };
    const [vote, late] = [13_000, 21_000].map((at) => ({ row: 1, at, key: "k", person: "p" }));
    const changes = [
      { ...opened, status: "approved", votes: [vote, late], useBy: 99 },
      { ...opened, status: "used", votes: [vote, late], useBy: 99 },
      { ...opened, status: "denied", denial: { at: 41_000 } },
      { ...opened, status: "denied", votes: [vote], useBy: 99, denial: { at: 90_000 } },
      { ...opened, status: "expired" },
      { ...opened, status: "expired", votes: [vote] },
      { ...opened, status: "expired", votes: [vote], useBy: 99 },
    ] as unknown as readonly Approval[];
    for (const approval of changes) observer.countApproval(approval);
    const families = readExposition(await textOf(observer));
    const value = (name: string, labels: Readonly<Record<string, string>> = {}): number | undefined =>
      families
        .get(name.replace(/_(?:bucket|sum|count)$/, ""))
        ?.samples.find(
          (each) => each.name === name && Object.entries(labels).every(([label, text]) => each.labels[label] === text),
        )?.value;
    assert.equal(value("svc_gate_checks_total", { verdict: "BLOCK", mode: "assist", tool: "mail.send" }), 1);
    assert.equal(value("svc_gate_checks_total", { verdict: "BLOCK", mode: "assist", tool: otherTools }), 1);
    assert.equal(value("svc_gate_answers_total", { verdict: "ESCALATE", mode: "assist" }), 2);
    assert.equal(value("svc_gate_answers_total", { verdict: "ALLOW", mode: "enforce" }), 0);
    for (const [index, stage] of ["parse", "prepare", "queue", "decide", "commit", "answer"].entries()) {
      const sum = value("svc_gate_stage_seconds_sum", { stage }) ?? 0;
      assert.equal(Math.round(sum * 1000), 2 * (index + 1), stage);
    }
    assert.equal(value("svc_gate_check_seconds_sum"), 0.042);
    assert.equal(value("svc_gate_batch_calls_bucket", { le: "1" }), 0);
    assert.equal(value("svc_gate_batch_calls_bucket", { le: "2" }), 1);
    assert.equal(value("svc_gate_flush_seconds_sum"), 0.004);
    assert.equal(value("svc_gate_refusals_total", { code: "queue-full" }), 1);
    assert.equal(value("svc_gate_refusals_total", { code: "unauthorized" }), 0);
    assert.equal(value("svc_gate_defects_total"), 1);
    assert.equal(value("svc_gate_reloads_total", { outcome: "refused" }), 1);
    assert.equal(value("svc_gate_queue_bytes"), 450);
    assert.equal(value("svc_gate_ledger_rows"), 7);
    const anchor = "file sink";
    assert.equal(value("svc_gate_anchor_lag_rows", { anchor }), 7);
    assert.equal(value("svc_gate_anchor_behind_seconds", { anchor }), 1.5);
    assert.equal(value("svc_gate_anchor_diverged", { anchor }), 1);
    assert.equal(value("svc_gate_anchor_failures_total", { anchor }), 1);
    assert.equal(value("svc_gate_contract_info", { contract: "c".repeat(64), mode: "enforce" }), 1);
    assert.equal(value("svc_gate_ready"), 1);
    const asks = ["opened", "attached", "capped"].map((how) => value("svc_gate_approval_asks_total", { how }));
    assert.deepEqual(asks, [1, 0, 1]);
    const reached = ["approved", "used", "denied", "expired", "cancelled", "superseded", "pending"];
    const statuses = reached.map((status) => value("svc_gate_approvals_total", { status }));
    assert.deepEqual(statuses, [1, 1, 2, 3, 0, 0, undefined]);
    const expired = ["no-vote", "too-few", "unused"].map((why) => value("svc_gate_approvals_expired_total", { why }));
    assert.deepEqual(expired, [1, 1, 1]);
    // The last yes that was needed came after 20 seconds, and the first no after 40.
    assert.equal(value("svc_gate_approval_decision_seconds_sum"), 60);
    assert.equal(value("svc_gate_approval_decision_seconds_count"), 2);
    assert.equal(value("svc_gate_approval_decision_seconds_bucket", { le: "30" }), 1);
    assert.deepEqual([value("svc_gate_approvals_waiting"), value("svc_gate_approvals_late")], [5, 2]);
  });

  test("if the ledgers do not answer in time, only the gauges of waiting approvals are missing", async () => {
    const families = readExposition(await exposition(new Metrics(), { ...readings, waiting: undefined }));
    assert.deepEqual(lintExposition(families), []);
    assert.ok(!families.has("svc_gate_approvals_waiting") && !families.has("svc_gate_approvals_late"));
    assert.ok(families.has("svc_gate_ready"));
  });

  const announced = "# HELP a_total help\n# TYPE a_total counter\n";
  const histogram = "# HELP h help\n# TYPE h histogram\n";
  for (const [what, text] of [
    ["a metric without help", "# TYPE a_total counter\na_total 1\n"],
    ["a sample of an undeclared metric", `${announced}b_total 1\n`],
    ["a duplicate metric", announced + announced],
    ["a duplicate label", `${announced}a_total{x="1",x="2"} 1\n`],
    ["an unclosed label", `${announced}a_total{x="1} 1\n`],
    ["a value that is not a number", `${announced}a_total one\n`],
  ] as const) {
    test(`the strict reader refuses ${what}`, () => assert.throws(() => readExposition(text)));
  }
  for (const [what, text] of [
    ["a counter without _total", "# HELP a help\n# TYPE a counter\na 1\n"],
    ["a unit of milliseconds", "# HELP a_ms help\n# TYPE a_ms gauge\na_ms 1\n"],
    ["a duplicate series", `${announced}a_total{x="1",y="2"} 1\na_total{y="2",x="1"} 1\n`],
    ["buckets that shrink", `${histogram}h_bucket{le="1"} 3\nh_bucket{le="+Inf"} 2\nh_sum 1\nh_count 2\n`],
    ["a count that differs from the last bucket", `${histogram}h_bucket{le="+Inf"} 2\nh_sum 1\nh_count 3\n`],
    ["a histogram without its sum", `${histogram}h_bucket{le="+Inf"} 2\nh_count 2\n`],
  ] as const) {
    control(`the lint notices ${what}`, () => assert.equal(lintExposition(readExposition(text)).length, 1));
  }
});

suite("the labels of the metrics", () => {
  test("labels name at most two hundred routed tools, and all other tools share one label", () => {
    const counts = new CheckCounts();
    for (let tool = 0; tool < toolsMax + 50; tool += 1) counts.add(`tool.${tool}`, true, "ALLOW", "enforce");
    for (let tool = 0; tool < 1000; tool += 1) counts.add(`made.up.${tool}`, false, "BLOCK", "enforce");
    const entries = [...counts.entries()];
    assert.equal(new Set(entries.map(({ tool }) => tool)).size, toolsMax + 1);
    const others = entries.filter(({ tool }) => tool === otherTools);
    assert.deepEqual(
      others.map(({ verdict, count }) => [verdict, count]),
      [
        ["ALLOW", 50],
        ["BLOCK", 1000],
      ],
    );
  });

  test("a tool named `other`, or with quotes and line breaks in its name, is one series", async () => {
    const observer = new Metrics();
    for (const toolName of ["other", 'a"b\\c\nd'])
      for (const routed of [true, false]) observer.countAnswer({ ...check, toolName, routed }, timings);
    const families = readExposition(await textOf(observer));
    assert.deepEqual(lintExposition(families), []);
    const tools = families.get("svc_gate_checks_total")?.samples.map(({ labels, value }) => [labels["tool"], value]);
    assert.deepEqual(tools, [
      ["other", 3],
      ['a"b\\c\nd', 1],
    ]);
  });
});

suite("the text of a histogram compared with prom-client's", () => {
  const options = { name: "x_seconds", help: "help" };
  const bounds = [0.00005, 0.1, 0.5, 2];
  const values = [0, 0.00005, 0.1, 0.100001, 0.5, 1, 2, 3, 1e9];

  test("a histogram with a label has the same text as prom-client's", async () => {
    const series = { one: new Series(bounds), two: new Series(bounds) };
    const registry = new Registry();
    const histogram = new Histogram({ ...options, buckets: bounds, labelNames: ["stage"], registers: [registry] });
    for (const [index, value] of values.entries()) {
      const stage = index % 2 === 0 ? "one" : "two";
      series[stage].add(value);
      histogram.observe({ stage }, value);
    }
    assert.equal(histogramText({ ...options, label: "stage", series }), await registry.metrics());
    series.two.add(0.3);
    assert.notEqual(histogramText({ ...options, label: "stage", series }), await registry.metrics());
  });

  test("a histogram without a label has the same text as prom-client's, empty or filled", async () => {
    const series = { x: new Series(bounds) };
    const registry = new Registry();
    const histogram = new Histogram({ ...options, buckets: bounds, registers: [registry] });
    assert.equal(histogramText({ ...options, series }), await registry.metrics());
    for (const value of values) {
      series.x.add(value);
      histogram.observe(value);
    }
    assert.equal(histogramText({ ...options, series }), await registry.metrics());
  });
});

suite("the request id and the trace id of a request", () => {
  const long = "x".repeat(128);
  for (const sent of ["a", "01J8-trace/7", long]) {
    test(`the gate keeps the request id ${sent.slice(0, 12)}`, () => assert.equal(requestId(sent), sent));
  }
  for (const sent of [undefined, "", "a b", `${long}x`, "a\u0000", "é", ["a", "b"]]) {
    test(`the gate replaces the request id ${JSON.stringify(sent)?.slice(0, 20)} with a new one`, () => {
      const [one, two] = [requestId(sent), requestId(sent)];
      assert.match(one, /^[\w-]{12}-[0-9a-z]+$/);
      assert.notEqual(one, two);
    });
  }

  const [trace, span] = ["4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"];
  for (const [sent, id] of [
    [`00-${trace}-${span}-01`, trace],
    [`cc-${trace}-${span}-01-what-comes`, trace],
    [`ff-${trace}-${span}-01`, undefined],
    [`00-${"0".repeat(32)}-${span}-01`, undefined],
    [`00-${trace}-${"0".repeat(16)}-01`, undefined],
    [`00-${trace.toUpperCase()}-${span}-01`, undefined],
    [`00-${trace}-${span}`, undefined],
    [undefined, undefined],
  ] as const) {
    test(`the trace id of the traceparent ${sent} is ${id}`, () => assert.equal(traceIdOf(sent), id));
  }
});
