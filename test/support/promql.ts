import { parser } from "@prometheus-io/lezer-promql";
import { refusals } from "../../packages/core/src/wire/mod.ts";
import type { Family } from "./exposition.ts";

/** Labels that Prometheus itself adds to scraped series. */
const fromScrape = ["job", "instance"];

/** Labels whose values a gate shows from its start, so that a query cannot name another one. */
const closedLabels = ["how", "status", "why"];

/** Metrics that Prometheus makes, not a gate. */
const ofPrometheus = ["up"];

/**
 * Returns the faults of a PromQL query compared with a gate's metrics, one sentence each: its grammar by Prometheus's
 * own parser, a missing metric, a label that the metric lacks (selected or grouped by), a code that is not a refusal,
 * and another value that no series has.
 */
export function queryFaults(query: string, shown: ReadonlyMap<string, Family>): readonly string[] {
  const faults: string[] = [];
  const labelsKnown = new Set(fromScrape);
  const labelsUsed: string[] = [];
  let selectable = new Set<string>();
  let metric = "";
  parser.parse(query).iterate({
    enter({ name: node, type, from, to }) {
      const written = query.slice(from, to);
      if (type.isError) faults.push(`not PromQL at ${from}: ${query}`);
      if (node === "Identifier") {
        const found = labelsOf(written, shown);
        metric = written;
        if (found === undefined) faults.push(`no gate shows the metric ${written}`);
        selectable = new Set([...fromScrape, ...(found ?? [])]);
        for (const label of selectable) labelsKnown.add(label);
      }
      if (node === "UnquotedLabelMatcher") {
        const [, label = "", values = ""] = /^(\w+)\s*[!=~]+\s*"(.*)"$/.exec(written) ?? [];
        if (!selectable.has(label)) faults.push(`the metric has no label ${label}: ${query}`);
        for (const value of label === "code" ? values.split("|") : [])
          if (!(value in refusals)) faults.push(`no refusal has the code ${value}`);
        for (const value of closedLabels.includes(label) ? values.split("|") : [])
          if (!valuesOf(metric, label, shown).includes(value))
            faults.push(`no series of ${metric} has the ${label} ${value}`);
      }
      if (node === "LabelName") labelsUsed.push(written);
    },
  });
  for (const label of labelsUsed)
    if (!labelsKnown.has(label)) faults.push(`no metric has the label ${label}: ${query}`);
  return [...new Set(faults)];
}

function valuesOf(name: string, label: string, shown: ReadonlyMap<string, Family>): readonly (string | undefined)[] {
  return shown.get(name)?.samples.map(({ labels }) => labels[label]) ?? [];
}

/** Returns the labels of the samples of that name; undefined if there are none. */
function labelsOf(name: string, shown: ReadonlyMap<string, Family>): readonly string[] | undefined {
  if (ofPrometheus.includes(name)) return [];
  const samples = (shown.get(name) ?? shown.get(name.replace(/_(?:bucket|sum|count)$/, "")))?.samples ?? [];
  const named = samples.filter((sample) => sample.name === name);
  return named.length === 0 ? undefined : named.flatMap(({ labels }) => Object.keys(labels));
}
