/**
 * Goal: the dashboard and the alerts in ops/ use only metrics that a gate has. Method: Prometheus's own grammar parses
 * each query of the dashboard and of the alert rules, and the test compares it with a running gate's metrics;
 * docs/guides/observe.md lists both.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test, type TestContext } from "node:test";
import { parse } from "yaml";
import { control } from "../../support/controls/control.ts";
import { check, root, startGate, temporaryFolder } from "../../support/gate.ts";
import { readExposition, type Family } from "../../support/exposition.ts";
import { queryFaults } from "../../support/promql.ts";

const read = (path: string): string => readFileSync(join(root, path), "utf8");
const page = read("docs/guides/observe.md");

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string }[];
}

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly description: string };
}

const dashboard = JSON.parse(read("ops/grafana/svc-gate.json")) as { readonly panels: readonly Panel[] };
const alerts = (
  parse(read("ops/prometheus/alerts.yml")) as { readonly groups: readonly { readonly rules: readonly Alert[] }[] }
).groups.flatMap(({ rules }) => rules);

/** Grafana's own variables, with values as it would fill them in. */
function filledIn(query: string): string {
  return query.replaceAll(/\$__(?:rate_interval|range)\b/g, "5m").replaceAll("$instance", "gate:8788");
}

/** Returns the metrics of a gate that has answered requests; all tests share one gate. */
async function shownBy(t: TestContext): Promise<ReadonlyMap<string, Family>> {
  const sinks = `file:${join(temporaryFolder(t), "heads")}`;
  const notify = join(temporaryFolder(t), "notify.json");
  const endpoint = { name: "pager", url: "https://hooks.example/", secrets: [`whsec_${"A".repeat(43)}=`] };
  writeFileSync(notify, JSON.stringify({ endpoints: [endpoint] }), { mode: 0o600 });
  const gate = await startGate(t, { flags: { "ops-port": "0", sinks, notify } });
  await check(gate, { tool_name: "note.add", tool_input: {} });
  return readExposition(await (await fetch(`${gate.ops}/metrics`)).text());
}

let looked: Promise<ReadonlyMap<string, Family>> | undefined;
const look = (t: TestContext): Promise<ReadonlyMap<string, Family>> => (looked ??= shownBy(t));

suite("ops/", () => {
  const panels = dashboard.panels.filter(({ type }) => type !== "row");
  for (const { title, targets = [] } of panels) {
    test(`the panel "${title}" queries only metrics that a gate has`, async (t) => {
      const shown = await look(t);
      assert.ok(targets.length > 0);
      for (const { expr } of targets) assert.deepEqual(queryFaults(filledIn(expr), shown), []);
    });
  }

  test("each panel has its own position and number", () => {
    const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)} ${y + Math.floor(cell / w)}`),
    );
    assert.equal(new Set(cells).size, cells.length);
    assert.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length);
    assert.ok(dashboard.panels.every(({ gridPos: { x, w } }) => x + w <= 24));
  });

  for (const { alert, expr, labels, annotations } of alerts) {
    test(`the alert ${alert} queries existing metrics, has a description and is in docs/guides/observe.md`, async (t) => {
      const shown = await look(t);
      assert.deepEqual(queryFaults(expr, shown), []);
      assert.match(labels.severity, /^(?:page|ticket)$/);
      assert.ok(annotations.summary !== "" && annotations.description !== "");
      assert.ok(
        page.includes(`\n| \`${alert}\` | ${labels.severity} |`),
        `docs/guides/observe.md has no row for ${alert}`,
      );
    });
  }

  for (const [what, query, fault] of [
    ["an unknown metric", "sum(rate(svc_gate_chekcs_total[5m]))", /no gate shows the metric svc_gate_chekcs_total/],
    ["an unknown label", 'svc_gate_checks_total{verdcit="ALLOW"}', /no label verdcit/],
    ["a label of another metric", 'svc_gate_ready{code="x"} + svc_gate_refusals_total', /no label code/],
    ["an unknown refusal code", 'svc_gate_refusals_total{code=~"queue-full|busy"}', /no refusal has the code busy/],
    ["an unknown outcome", 'svc_gate_approvals_total{status=~"approved|refused"}', /has the status refused/],
    ["a group by an unknown label", "sum by (tenant) (svc_gate_checks_total)", /no metric has the label tenant/],
    ["a syntax error", "sum(rate(svc_gate_checks_total[5m])", /not PromQL/],
    ["a counter used as a histogram", "svc_gate_checks_total_bucket", /no gate shows/],
  ] as const) {
    control(`positive control: a query with ${what} is noticed`, async (t) =>
      assert.match(queryFaults(query, await look(t)).join("\n"), fault),
    );
  }

  test("docs/guides/observe.md lists every metric of the gate with the gate's description", async (t) => {
    const shown = await look(t);
    const rows = [...shown.values()]
      .filter(({ name }) => name.startsWith("svc_gate_"))
      .map(({ name, type, help, samples }) => {
        const labels = new Set(
          samples.flatMap((sample) => Object.keys(sample.labels)).filter((label) => label !== "le"),
        );
        return `| \`${name}\` | ${type} | ${[...labels].map((label) => `\`${label}\``).join(" ")} | ${help} |`;
      });
    const table = `| metric | type | labels | |\n|---|---|---|---|\n${rows.join("\n")}\n\n`;
    assert.ok(page.includes(table), table);
  });
});
