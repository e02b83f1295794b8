import { parser } from "@prometheus-io/lezer-promql";
import { refusals } from "../../packages/svc-gate/src/wire/mod.ts";
import type { Family } from "./exposition.ts";

/** Labels that Prometheus itself puts on what it scrapes. */
const fromScrape = ["job", "instance"];

/** Metrics that no gate shows: Prometheus makes them. */
const ofPrometheus = ["up"];

/**
 * What is wrong with a PromQL query against what a gate shows, a sentence each: its grammar by Prometheus's own parser,
 * a metric that is not there, a label that the metric does not have, whether selected or grouped by, a code of no refusal.
 */
export function queryFaults(query: string, shown: ReadonlyMap<string, Family>): readonly string[] {
  const faults: string[] = [];
  const labelsKnown = new Set(fromScrape);
  const labelsUsed: string[] = [];
  let selectable = new Set<string>();
  parser.parse(query).iterate({
    enter({ name: node, type, from, to }) {
      const written = query.slice(from, to);
      if (type.isError) faults.push(`not PromQL at ${from}: ${query}`);
      if (node === "Identifier") {
        const found = labelsOf(written, shown);
        if (found === undefined) faults.push(`no gate shows the metric ${written}`);
        selectable = new Set([...fromScrape, ...(found ?? [])]);
        for (const label of selectable) labelsKnown.add(label);
      }
      if (node === "UnquotedLabelMatcher") {
        const [, label = "", values = ""] = /^(\w+)\s*[!=~]+\s*"(.*)"$/.exec(written) ?? [];
        if (!selectable.has(label)) faults.push(`the metric has no label ${label}: ${query}`);
        for (const value of label === "code" ? values.split("|") : [])
          if (!(value in refusals)) faults.push(`no refusal has the code ${value}`);
      }
      if (node === "LabelName") labelsUsed.push(written);
    },
  });
  for (const label of labelsUsed)
    if (!labelsKnown.has(label)) faults.push(`no metric has the label ${label}: ${query}`);
  return [...new Set(faults)];
}

/** The labels of the samples of that name; undefined where there are none. */
function labelsOf(name: string, shown: ReadonlyMap<string, Family>): readonly string[] | undefined {
  if (ofPrometheus.includes(name)) return [];
  const samples = (shown.get(name) ?? shown.get(name.replace(/_(?:bucket|sum|count)$/, "")))?.samples ?? [];
  const named = samples.filter((sample) => sample.name === name);
  return named.length === 0 ? undefined : named.flatMap(({ labels }) => Object.keys(labels));
}
